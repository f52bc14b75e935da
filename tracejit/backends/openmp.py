"""PyTorch's `torch.backends.openmp`: threads are not OpenMP's here."""


def is_available() -> bool:
    """Whether kernels run on OpenMP's threads: no."""
    return False
