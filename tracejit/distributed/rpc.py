"""Functions called in other processes; PyTorch's `torch.distributed.rpc`, which is not available
here.

In: nothing. Out: the answer that there are none.
"""


def is_available() -> bool:
    """Return False: no functions can be called in other processes.

    >>> is_available()
    False
    """
    return False
