"""PyTorch's `torch.backends.mha`: whether attention may take a faster path; there is only one."""

from __future__ import annotations

from typing import Any

from tracejit.backends import _Asked, _asked
from tracejit.eager.recording import active


def get_fastpath_enabled() -> bool:
    """Whether a faster path was not ruled out.

    >>> import tracejit
    >>> tracejit.backends.mha.get_fastpath_enabled()
    True
    """
    if active.recorder is not None:
        active.recorder.asks(_is_on, None)
    return _Asked.fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Remember whether a faster path may be taken: it gives zeros for padding, see
    `nn.TransformerEncoder`."""
    _asked().fastpath = value


def _is_on(what: Any) -> bool:
    return _Asked.fastpath
