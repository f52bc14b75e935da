"""What surrounds training; PyTorch's `torch.utils`: data loading, checkpointing, trees, logs."""

from tracejit.utils import _pytree, checkpoint, data  # noqa: F401
