"""PyTorch's `torch.backends.mps`: nothing runs on Apple's devices here."""


def is_available() -> bool:
    """Whether tensors can live there: no."""
    return False


def is_built() -> bool:
    """Whether this installation could: no."""
    return False
