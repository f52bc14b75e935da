"""How the package was made; PyTorch's `torch.__config__`.

Out: a text, for programs that print it or look for a name in it.
"""

from __future__ import annotations

from tracejit import version
from tracejit.backends.cpu import blas


def show() -> str:
    """The version, and the library of products.

    >>> show().startswith("tracejit ")
    True
    """
    return f"tracejit {version.tracejit}, BLAS: {blas()}"
