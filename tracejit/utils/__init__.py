"""Helpers around training; PyTorch's `torch.utils`: data loading, checkpointing, trees, logs."""

from tracejit.core.eager.swapping import swap_tensors  # noqa: F401
from tracejit.utils import _pytree, checkpoint, data, dlpack, hooks  # noqa: F401
