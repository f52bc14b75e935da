"""Backends of this installation; PyTorch's `torch.backends`, as far as it applies here.

In: nothing. Out: `backends.cpu`, `backends.cuda`, `backends.cudnn`, each with the questions scripts
ask of it, and the precision that scripts asked for.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from tracejit.backends import cpu, cuda, cudnn, mps  # noqa: F401
from tracejit.core.eager.recording import active
from tracejit.core.memory import threads


# Deterministic algorithms and full precision: what is asked for is only remembered, for there is
# nothing else.
class _Asked:
    mode, warn_only = False, False
    precision = "highest"
    fastpath = True
    every_warning = False
    interop_threads: int | None = None


# Imported when asked for, to keep `import tracejit` fast.
_SUBMODULES = ("mha", "mkl", "mkldnn", "openmp", "opt_einsum")
_DEBUG_MODES = ("default", "warn", "error")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"tracejit.backends.{name}")
    raise AttributeError(f"module 'tracejit.backends' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})


def _asked() -> type[_Asked]:
    """Return the settings, to be changed. Ends the graph, since a replay would not set them."""
    _unguarded("a switch for how numbers are computed")
    return _Asked


def _told(name: str) -> Any:
    """Return the setting of this name. A replay checks that it is still the same."""
    # The value is part of the program, so the replay must find the same one.
    now = getattr(_Asked, name)
    if active.tracer is not None:
        active.tracer.asks(_is_still, (name, now))
    return now


def _is_still(what: tuple[str, Any]) -> bool:
    return bool(getattr(_Asked, what[0]) == what[1])


def _unguarded(what: str) -> None:
    if active.tracer is not None:
        active.tracer.break_graph(None, f"the function reads or sets {what}")


def get_num_threads() -> int:
    """Return the number of threads that a program runs on, the calling one included.

    >>> import tracejit
    >>> tracejit.get_num_threads() >= 1
    True
    """
    _unguarded("the number of threads")
    return threads.get_num_threads()


def set_num_threads(count: int | None) -> None:
    """Use `count` threads from the next run on; None: what affinity, quota and the flag allow.

    >>> import tracejit
    >>> tracejit.set_num_threads(tracejit.get_num_threads())
    """
    _unguarded("the number of threads")
    threads.set_num_threads(count)


def get_num_interop_threads() -> int:
    """Return the number of threads for ops side by side, as it was set; no ops run so.

    >>> import tracejit
    >>> tracejit.get_num_interop_threads() >= 1
    True
    """
    return _asked().interop_threads or threads.available_threads()


def set_num_interop_threads(count: int) -> None:
    """Remember the number of threads that may run ops side by side.

    RuntimeError for numbers below 1, and the second time.
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise RuntimeError("set_num_interop_threads expects an int, but got "
                           f"{type(count).__name__}")
    if count < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    asked = _asked()
    if asked.interop_threads is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has "
                           "started or set_num_interop_threads called")
    asked.interop_threads = count


def set_warn_always(b: bool, /) -> None:
    """Remember if each warning is asked for. Warnings here are always given, and Python's filters
    decide if they are shown. RuntimeError for what is no bool.

    >>> import tracejit
    >>> tracejit.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _asked().every_warning = b


def is_warn_always_enabled() -> bool:
    """Return the value that `set_warn_always` got.

    >>> import tracejit
    >>> tracejit.set_warn_always(False)
    >>> tracejit.is_warn_always_enabled()
    False
    """
    return _told("every_warning")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember if deterministic algorithms are asked for; all are deterministic.

    >>> import tracejit
    >>> tracejit.use_deterministic_algorithms(True)
    >>> tracejit.are_deterministic_algorithms_enabled()
    True
    >>> tracejit.use_deterministic_algorithms(False)
    """
    asked = _asked()
    asked.mode, asked.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> Any:
    """Return True if deterministic algorithms were asked for.

    >>> import tracejit
    >>> tracejit.use_deterministic_algorithms(False)
    >>> tracejit.are_deterministic_algorithms_enabled()
    False
    """
    return _told("mode")


def is_deterministic_algorithms_warn_only_enabled() -> Any:
    """Return True if a warning was asked for where no deterministic algorithm exists; all have one.

    >>> import tracejit
    >>> tracejit.use_deterministic_algorithms(False)
    >>> tracejit.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _told("warn_only")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call `use_deterministic_algorithms` by a number or a word: 0 "default", 1 "warn", 2 "error".

    >>> import tracejit
    >>> tracejit.set_deterministic_debug_mode("warn")
    >>> tracejit.get_deterministic_debug_mode()
    1
    >>> tracejit.set_deterministic_debug_mode(0)

    TypeError for what is neither, RuntimeError for others.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, "
                               f"`error`, but got {debug_mode}")
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected 0, 1, or 2, but got "
                           f"{debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return the mode that `set_deterministic_debug_mode` set, as a number: 0, 1 (warn) or 2
    (error).

    >>> import tracejit
    >>> tracejit.set_deterministic_debug_mode("default")
    >>> tracejit.get_deterministic_debug_mode()
    0
    """
    return 0 if not _told("mode") else 1 if _told("warn_only") else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Remember the precision of products of float32; all are as precise as "highest" says.

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
    """Return the precision that `set_float32_matmul_precision` got.

    >>> import tracejit
    >>> tracejit.set_float32_matmul_precision("highest")
    >>> tracejit.get_float32_matmul_precision()
    'highest'
    """
    return _told("precision")
