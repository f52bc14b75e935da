"""Ops by name; PyTorch's `torch.ops`.

Inner ops of PyTorch's are loaded on first use; `library` adds the user's own.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return `aten`, when code asks for it."""
    if name == "aten":
        import importlib

        return importlib.import_module("tracejit.core.ops.inner_names").aten
    raise AttributeError(f"module 'tracejit.ops' has no attribute {name!r}")


def load_library(path: Any) -> None:
    """Refuse a library: there is no extension of PyTorch's that this package could load.

    >>> load_library("/nowhere/_C.so")
    Traceback (most recent call last):
    OSError: /nowhere/_C.so: cannot open shared object file: No such file or directory
    """
    import os

    if not os.path.exists(path):
        raise OSError(f"{path}: cannot open shared object file: No such file or directory")
    raise OSError(f"{path}: extensions of PyTorch's cannot be loaded here")
