"""Marks the room; `tracejit.ops.aten`, PyTorch's inner names, is loaded on first use."""

from typing import Any


def __getattr__(name: str) -> Any:
    """`aten`, when it is asked for."""
    if name == "aten":
        import importlib

        return importlib.import_module("tracejit.ops.inner_names").aten
    raise AttributeError(f"module 'tracejit.ops' has no attribute {name!r}")
