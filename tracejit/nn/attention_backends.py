"""Choice of attention kernels, as in PyTorch. The only kernel here is used whatever is chosen.

In: names of PyTorch's kernels. Out: contexts and answers. Called by scripts that choose a kernel;
results do not depend on it.
"""

from __future__ import annotations

import contextlib
import enum
import threading
import warnings
from collections.abc import Iterable
from typing import Any


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels for scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_SWITCHED = (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
             SDPBackend.CUDNN_ATTENTION)  # fmt: skip


class _Allowed(threading.local):
    def __init__(self) -> None:
        self.kinds: frozenset[int] = frozenset(map(int, _SWITCHED))
        # a stack: contexts nest, and one context may be entered again inside
        self.outer: list[frozenset[int]] = []


_allowed = _Allowed()


class sdpa_kernel(contextlib.ContextDecorator):
    """Context or decorator: only these kernels may be used.

    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     flash_sdp_enabled()
    False

    AssertionError for what is no `SDPBackend` or list of them.
    """

    def __init__(self, backends: Any, set_priority: bool = False):
        if not isinstance(backends, (list, SDPBackend)):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of "
                                 "SDPBackend instances")
        self.kinds = _kinds([backends] if isinstance(backends, SDPBackend) else backends)

    def __enter__(self) -> None:
        _allowed.outer.append(_allowed.kinds)
        _allowed.kinds = self.kinds

    def __exit__(self, *exc: object) -> None:
        _allowed.kinds = _allowed.outer.pop()


def _kinds(backends: Iterable[Any]) -> frozenset[int]:
    return frozenset(int(SDPBackend(b)) for b in backends)


def sdp_kernel(enable_flash: bool = True, enable_math: bool = True,
               enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> sdpa_kernel:
    """Return `sdpa_kernel` for the kernels chosen by flags: its older form."""
    warnings.warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context "
                  "manager will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the "
                  "new context manager, with updated signature.", FutureWarning, stacklevel=2)
    flags = (enable_math, enable_flash, enable_mem_efficient, enable_cudnn)
    return sdpa_kernel([kind for kind, flag in zip(_SWITCHED, flags) if flag])


def _enable(kind: SDPBackend, enabled: bool) -> None:
    others = _allowed.kinds - {int(kind)}
    _allowed.kinds = others | {int(kind)} if enabled else others


def enable_math_sdp(enabled: bool) -> None:
    """Allow or forbid `MATH`."""
    _enable(SDPBackend.MATH, enabled)


def enable_flash_sdp(enabled: bool) -> None:
    """Allow or forbid `FLASH_ATTENTION`."""
    _enable(SDPBackend.FLASH_ATTENTION, enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow or forbid `EFFICIENT_ATTENTION`."""
    _enable(SDPBackend.EFFICIENT_ATTENTION, enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow or forbid `CUDNN_ATTENTION`."""
    _enable(SDPBackend.CUDNN_ATTENTION, enabled)


def math_sdp_enabled() -> bool:
    """Return True if `MATH` may be used."""
    return int(SDPBackend.MATH) in _allowed.kinds


def flash_sdp_enabled() -> bool:
    """Return True if `FLASH_ATTENTION` may be used."""
    return int(SDPBackend.FLASH_ATTENTION) in _allowed.kinds


def mem_efficient_sdp_enabled() -> bool:
    """Return True if `EFFICIENT_ATTENTION` may be used."""
    return int(SDPBackend.EFFICIENT_ATTENTION) in _allowed.kinds


def cudnn_sdp_enabled() -> bool:
    """Return True if `CUDNN_ATTENTION` may be used."""
    return int(SDPBackend.CUDNN_ATTENTION) in _allowed.kinds
