"""PyTorch's `torch.backends.openmp`: threads are not OpenMP's here."""


def is_available() -> bool:
    """Return False: kernels do not run on OpenMP's threads."""
    return False
