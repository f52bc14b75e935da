"""PyTorch's `torch.xpu`: nothing runs on Intel's devices here, and programs ask."""


def is_available() -> bool:
    """Whether tensors can live there: no."""
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def is_current_stream_capturing() -> bool:
    """Whether calls are recorded instead of run: no."""
    return False


def empty_cache() -> None:
    """Nothing is kept for such devices."""


def manual_seed(seed: int) -> None:
    """There is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """There are no generators to seed."""
