"""Floating point without NumPy's warnings: tensors give inf and NaN silently, as PyTorch's do.

In: a call. Out: its result, computed with all of NumPy's floating point warnings off. Called for
every op that computes. NumPy's public `errstate` costs more than a small op; setting its context
variable is a third of that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

_umath: Any = importlib.import_module("numpy._core.umath")
_state: Any = getattr(_umath, "_extobj_contextvar", None)  # None: a NumPy that keeps it elsewhere

if _state is not None:
    _QUIET = _umath._make_extobj(all="ignore")

    def quietly(function: Callable[..., Any], xp: Any, arrays: list, attributes: dict) -> Any:
        """Return `function(xp, *arrays, **attributes)`, without floating point warnings."""
        token = _state.set(_QUIET)
        try:
            return function(xp, *arrays, **attributes)
        finally:
            _state.reset(token)

else:

    def quietly(function: Callable[..., Any], xp: Any, arrays: list, attributes: dict) -> Any:
        """Return `function(xp, *arrays, **attributes)`, without floating point warnings."""
        with np.errstate(all="ignore"):
            return function(xp, *arrays, **attributes)
