"""What surrounds training; PyTorch's `torch.utils`: data loading."""

from tracejit.utils import data  # noqa: F401
