"""PyTorch's `torch.backends.mps`: nothing runs on Apple's devices here."""


def is_available() -> bool:
    """Return False: no tensor can live on Apple's devices."""
    return False


def is_built() -> bool:
    """Return False: this installation has no code for Apple's devices."""
    return False
