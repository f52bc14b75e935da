"""What surrounds training; PyTorch's `torch.utils`: data loading, trees, logs."""

from tracejit.utils import _pytree, data  # noqa: F401
