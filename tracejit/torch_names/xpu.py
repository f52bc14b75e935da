"""PyTorch's `torch.xpu`: nothing runs on Intel's devices here, and programs ask."""


def is_available() -> bool:
    """Return False: no tensor can live on Intel's devices."""
    return False


def device_count() -> int:
    """Return 0: there are no Intel devices."""
    return 0


def is_initialized() -> bool:
    """Return False: no Intel device is in use."""
    return False


def is_current_stream_capturing() -> bool:
    """Return False: calls are never recorded instead of run."""
    return False


def empty_cache() -> None:
    """Do nothing: no memory is kept for such devices."""


def manual_seed(seed: int) -> None:
    """Do nothing: there is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """Do nothing: there are no generators to seed."""
