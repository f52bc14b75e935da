"""PyTorch's `torch.backends.mha`: a switch for a faster path of attention; there is only one
path."""

from __future__ import annotations

from tracejit.backends import _asked, _told


def get_fastpath_enabled() -> bool:
    """Return False if a faster path was ruled out.

    >>> import tracejit
    >>> tracejit.backends.mha.get_fastpath_enabled()
    True
    """
    return _told("fastpath")


def set_fastpath_enabled(value: bool) -> None:
    """Remember if a faster path may be taken; the results are the same."""
    _asked().fastpath = value
