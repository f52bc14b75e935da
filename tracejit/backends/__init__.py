"""What this installation can run on; PyTorch's `torch.backends`, as far as it applies here.

In: nothing. Out: `backends.cpu`, `backends.cuda`, `backends.cudnn`, each with the questions scripts
ask of it, and how precisely numbers were asked to be computed.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.backends import cpu, cuda, cudnn, mps  # noqa: F401
from tracejit.eager.recording import active
from tracejit.memory import threads


# Deterministic algorithms and full precision: what is asked for is only remembered, for there is
# nothing else.
class _Asked:
    mode, warn_only = False, False
    precision = "highest"


def _asked() -> type[_Asked]:
    """What was asked for; a replay would neither see nor change it, so there is none."""
    _unguarded("a switch for how numbers are computed")
    return _Asked


def _unguarded(what: str) -> None:
    if active.recorder is not None:
        active.recorder.need(None, f"{what} was read or set")


def get_num_threads() -> int:
    """Threads that a program runs on, the calling one included."""
    _unguarded("the number of threads")
    return threads.get_num_threads()


def set_num_threads(count: int | None) -> None:
    """Use `count` threads from the next run on; None: what affinity, quota and the flag allow."""
    _unguarded("the number of threads")
    threads.set_num_threads(count)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember whether deterministic algorithms are asked for; all are.

    >>> import tracejit
    >>> tracejit.use_deterministic_algorithms(True)
    >>> tracejit.are_deterministic_algorithms_enabled()
    True
    >>> tracejit.use_deterministic_algorithms(False)
    """
    asked = _asked()
    asked.mode, asked.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> Any:
    """Whether deterministic algorithms were asked for."""
    return _asked().mode


def is_deterministic_algorithms_warn_only_enabled() -> Any:
    """Whether a warning, no error, was asked for where there is none; there is one everywhere."""
    asked = _asked()
    return asked.mode and asked.warn_only


def set_float32_matmul_precision(precision: str) -> None:
    """Remember how precise products of float32 need be; all are as precise as "highest" says.

    >>> import tracejit
    >>> tracejit.set_float32_matmul_precision("high")
    >>> tracejit.get_float32_matmul_precision()
    'high'
    >>> tracejit.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
                      "setFloat32MatmulPrecision call has no effect.", stacklevel=2)
    else:
        _asked().precision = precision


def get_float32_matmul_precision() -> Any:
    """How precise products of float32 need be."""
    return _asked().precision
