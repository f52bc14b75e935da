"""Configuration of the package; PyTorch's `torch.__config__`.

Out: a text, for programs that print it or look for a name in it.
"""

from __future__ import annotations

from tracejit import version
from tracejit.backends.cpu import blas


def show() -> str:
    """Return the version, and the library of products.

    >>> show().startswith("tracejit ")
    True
    """
    return f"tracejit {version.tracejit}, BLAS: {blas()}"
