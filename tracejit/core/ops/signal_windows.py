"""Windows of signals: hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window.

In: a length; `periodic`: one period of the window of one element more. Out: a vector, computed in
float64 and rounded once. Called by users.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracejit.core.ops.bessel_functions import i0
from tracejit.core.ops.creation import full, iota
from tracejit.core.ops.pointwise_logic import clamp_min
from tracejit.core.ops.pointwise_math import abs, cos, sqrt
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import FLOATING, asked_dtype, dtype, float64, get_default_dtype


def _window(name: str, length: Any, periodic: bool, values: Callable[[Any], Any],
            kind: dtype | None, device: Any, requires_grad: bool) -> Any:
    """Compute `values` of each element's position between the ends, 0 .. 1."""
    kind, count = asked_dtype(kind) or get_default_dtype(), as_size(length)
    if kind.category != FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    if count < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={count}")
    if count <= 1:
        return full((count,), 1.0, dtype=kind, device=device, requires_grad=requires_grad)
    places = convert(iota(count, device=device), float64) / (count if periodic else count - 1)
    result = convert(values(places), kind)
    return result.requires_grad_() if requires_grad else result


def hann_window(window_length: int, periodic: bool = True, *, dtype: dtype | None = None,
                layout: Any = None, device: Any = None, pin_memory: bool = False,
                requires_grad: bool = False) -> Any:
    """Return 0.5 - 0.5 cos, (window_length,): a window that is 0 at its ends.

    periodic  True leaves out the last point of a window that is longer by one

    RuntimeError for negative lengths and for dtypes that are not floating.

    >>> import tracejit
    >>> tracejit.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic,
                   lambda x: 0.5 - 0.5 * cos(x * (2 * math.pi)), dtype, device, requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54,
                   beta: float = 0.46, *, dtype: dtype | None = None, layout: Any = None,
                   device: Any = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Any:
    """Return alpha - beta cos, (window_length,): a window that is small at its ends; see
    `hann_window`.

    >>> import tracejit
    >>> tracejit.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("hamming_window", window_length, periodic,
                   lambda x: alpha - beta * cos(x * (2 * math.pi)), dtype, device, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: dtype | None = None,
                    layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Any:
    """Return 0.42 - 0.5 cos + 0.08 cos of twice as much, (window_length,); see `hann_window`.

    >>> import tracejit
    >>> tracejit.blackman_window(4).abs()
    tensor([1.3878e-17, 3.4000e-01, 1.0000e+00, 3.4000e-01])
    """
    return _window("blackman_window", window_length, periodic,
                   lambda x: 0.42 - 0.5 * cos(x * (2 * math.pi)) + 0.08 * cos(x * (4 * math.pi)),
                   dtype, device, requires_grad)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: dtype | None = None,
                    layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Any:
    """Return a triangle, (window_length,); see `hann_window`.

    >>> import tracejit
    >>> tracejit.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", window_length, periodic, lambda x: 1 - abs(x * 2 - 1),
                   dtype, device, requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *,
                  dtype: dtype | None = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Any:
    """Return Kaiser's window (window_length,), whose width `beta` gives; see `hann_window`.

    >>> import tracejit
    >>> tracejit.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """
    def values(x: Any) -> Any:
        apart = x * 2 - 1
        return i0(sqrt(clamp_min(1 - apart * apart, 0)) * beta) / i0(full(
            (), beta, dtype=float64, device=x.device))

    return _window("kaiser_window", window_length, periodic, values, dtype, device, requires_grad)
