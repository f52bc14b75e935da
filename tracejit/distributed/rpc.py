"""Functions called in other processes; PyTorch's `torch.distributed.rpc`: not there, as it says.

In: nothing. Out: the answer that there are none.
"""


def is_available() -> bool:
    """Whether functions can be called in other processes: no.

    >>> is_available()
    False
    """
    return False
