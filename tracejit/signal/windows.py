"""Windows of signals; PyTorch's `torch.signal.windows`.

In: the number of elements; `sym` False: the elements of a window of one more, without the last.
Out: a vector, computed in float64 and rounded once. The older `tracejit.hann_window` and its kin
are in `tracejit/core/ops/signal_windows.py`.

>>> import tracejit
>>> tracejit.signal.windows.hann(3)
tensor([0., 1., 0.])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import tracejit
from tracejit.core.ops.types import FLOATING, dtype, float64, get_default_dtype


def _window(name: str, M: Any, sym: bool, values: Callable[[Any, int], Any],
            options: dict[str, Any]) -> Any:
    """Make a window of `values(k, last)` for the elements k = 0 .. last."""
    known = {"dtype", "layout", "device", "requires_grad"}
    for key in options.keys() - known:
        raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    kind: dtype = options.get("dtype") or get_default_dtype()
    if not isinstance(M, int):
        raise TypeError(f"{name} requires an int for M, got {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if not str(options.get("layout", "strided")).endswith("strided"):
        raise ValueError(f"{name} is implemented for strided tensors only, got: "
                         f"{options['layout']}")
    if kind.category != FLOATING or kind.itemsize == 2:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    device = options.get("device")
    # `last` would be 0, by which the windows divide.
    if M <= 1:
        made = tracejit.ones(M, dtype=kind, device=device)
    else:
        k = tracejit.arange(M, dtype=float64, device=device)
        # A periodic window is a symmetric one of M + 1 elements, without the last.
        made = values(k, M - 1 if sym else M).to(kind)
    return made.requires_grad_(bool(options.get("requires_grad", False)))


def _positive(what: str, number: float) -> None:
    if number <= 0:
        raise ValueError(f"{what} must be positive, got: {number} instead.")


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                **options: Any) -> Any:
    """Compute exp(-|k - center| / tau); `center` None is the middle, which symmetric windows need.

    ValueError for a `tau` that is not positive, and for another `center` of a symmetric window.
    """
    _positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window("exponential", M, sym, lambda k, last: (
        -(k - (last / 2 if center is None else center)).abs() / tau).exp(), options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Any:
    """Compute half a period of a sine, from the middle of the first element to that of the last."""
    return _window("cosine", M, sym, lambda k, last: (
        (k + 0.5) * (math.pi / (last + 1))).sin(), options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """Compute exp(-(k / std)^2 / 2), k counted from the middle. ValueError unless `std` is
    positive."""
    _positive("Standard deviation", std)
    return _window("gaussian", M, sym, lambda k, last: (
        -((k - last / 2) / std).square() / 2).exp(), options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Any:
    """Compute Kaiser's window; `beta` gives its shape. ValueError for a negative `beta`."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, sym, lambda k, last: tracejit.i0(
        # Rounding can make the ends negative, whose root would be NaN.
        (1 - (2 * k / last - 1).square()).clamp_min(0).sqrt() * beta)
        / tracejit.i0(tracejit.tensor(beta, dtype=float64, device=k.device)), options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Any:
    """Compute the sum of a[i] (-1)^i cos(i x), where x goes from 0 to 2 pi.

    TypeError unless `a` is a list, ValueError where it is empty.
    """
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", M, sym, lambda k, last: sum(
        (-1) ** i * weight * (k * (i * 2 * math.pi / last)).cos()
        for i, weight in enumerate(weights)), options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Any:
    """Compute alpha - (1 - alpha) cos(x), where x goes from 0 to 2 pi."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Any:
    """`general_hamming` with 0.54."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Any:
    """`general_hamming` with 0.5: 0 at its ends."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Any:
    """`general_cosine` of 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Any:
    """Compute a triangle."""
    return _window("bartlett", M, sym, lambda k, last: 1 - (2 * k / last - 1).abs(), options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Any:
    """Nuttall's `general_cosine` of four terms."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
