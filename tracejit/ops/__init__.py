"""Marks the room; `tracejit.ops.aten`, PyTorch's inner names, is loaded on first use."""

from typing import Any


def __getattr__(name: str) -> Any:
    """`aten`, when it is asked for."""
    if name == "aten":
        import importlib

        return importlib.import_module("tracejit.ops.inner_names").aten
    if name == "load_library":
        return _load_library
    raise AttributeError(f"module 'tracejit.ops' has no attribute {name!r}")


def _load_library(path: Any) -> None:
    """OSError: there is no extension of PyTorch's that this package could load.

    >>> _load_library("/nowhere/_C.so")
    Traceback (most recent call last):
    OSError: /nowhere/_C.so: cannot open shared object file: No such file or directory
    """
    import os

    if not os.path.exists(path):
        raise OSError(f"{path}: cannot open shared object file: No such file or directory")
    raise OSError(f"{path}: extensions of PyTorch's cannot be loaded here")
