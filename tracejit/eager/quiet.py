"""Floating point without NumPy's warnings: tensors give inf and NaN silently, as PyTorch's do.

In: a call. Out: its result, computed with all of NumPy's floating point warnings off. Called for
every op that computes. NumPy's public `errstate` costs more than a small op; setting its context
variable is a third of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj  # type: ignore[attr-defined]
except ImportError:  # a NumPy that keeps this state elsewhere
    _extobj_contextvar = _make_extobj = None

if _make_extobj is not None:
    _QUIET = _make_extobj(all="ignore")

    def quietly(function: Callable[..., Any], xp: Any, arrays: list, attributes: dict) -> Any:
        """`function(xp, *arrays, **attributes)` without floating point warnings."""
        token = _extobj_contextvar.set(_QUIET)
        try:
            return function(xp, *arrays, **attributes)
        finally:
            _extobj_contextvar.reset(token)

else:

    def quietly(function: Callable[..., Any], xp: Any, arrays: list, attributes: dict) -> Any:
        """`function(xp, *arrays, **attributes)` without floating point warnings."""
        with np.errstate(all="ignore"):
            return function(xp, *arrays, **attributes)
