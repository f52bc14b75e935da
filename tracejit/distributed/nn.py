"""Talk of processes through which gradients go, where there is one; `torch.distributed.nn`.

In: tensors. Out: the error of a group that was never made.
"""

from tracejit.distributed import all_gather, all_reduce, broadcast, reduce  # noqa: F401
