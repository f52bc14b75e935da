"""PyTorch's `torch.backends.mha`: whether attention may take a faster path; there is only one."""

from __future__ import annotations

from tracejit.backends import _asked, _told


def get_fastpath_enabled() -> bool:
    """Whether a faster path was not ruled out.

    >>> import tracejit
    >>> tracejit.backends.mha.get_fastpath_enabled()
    True
    """
    return _told("fastpath")


def set_fastpath_enabled(value: bool) -> None:
    """Remember whether a faster path may be taken; the results are the same."""
    _asked().fastpath = value
