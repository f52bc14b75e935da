"""Assertions about tensors; PyTorch's `torch.testing`.

In: two objects. Out: nothing, or AssertionError that says how many elements differ and by how much.
Called by tests.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracejit.core.eager.construction import as_tensor
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.pointwise import isclose
from tracejit.core.ops.random_tensors import make_tensor
from tracejit.core.ops.types import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int64,
    promote_types,
)
from tracejit.sparse.tensor import SparseTensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

_Tolerances = dict[dtype, tuple[float, float]]
_CLOSE: _Tolerances = {
    float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7), complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7),
}  # fmt: skip
_ALL_CLOSE: _Tolerances = {
    float16: (1e-3, 1e-3), float32: (1e-4, 1e-5), float64: (1e-5, 1e-8),
}  # fmt: skip
_NUMBERS = {int: (0.0, 0.0), float: _CLOSE[float64], complex: _CLOSE[complex128]}


@dataclass(frozen=True)
class _How:
    """Settings of a comparison."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    device: bool
    dtype: bool
    layout: bool
    stride: bool
    subclasses: bool
    place: tuple = ()  # where in the containers

    def within(self, key: Any) -> _How:
        return replace(self, place=(*self.place, key))

    def tolerances(self, *known: tuple[float, float]) -> tuple[float, float]:
        """Return the given tolerances, else the larger of those of both sides."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        return max(k[0] for k in known), max(k[1] for k in known)


class _Differ(Exception):
    def __init__(self, text: str, place: tuple = ()):
        self.text, self.place = text, place


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True,
                 rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and
    shape, dtype, device agree.

    Compares tensors, arrays, numbers, None, and sequences and mappings of them.

    rtol, atol  both or neither; None: by dtype
    msg         instead of the message, or a function of it

    >>> import tracejit
    >>> assert_close(tracejit.ones(2), tracejit.ones(2) + 1e-7)

    TypeError for objects that cannot be compared, ValueError for only one tolerance.
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError("Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                         f"{missing}.")
    how = _How(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride,
               allow_subclasses)
    try:
        _compare(actual, expected, how)
    except _Differ as found:
        text = found.text
        if found.place:
            where = "".join(f"[{key!r}]" for key in found.place)
            text += f"\n\nThe failure occurred for item {where}"
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None,
                    atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """Compare as the older form of `assert_close`: other tolerances, and dtypes may differ."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed "
                  "in a future release. Please use `torch.testing.assert_close()` instead. You can "
                  "find detailed upgrade instructions in "
                  "https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    actual, expected = (x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected))
    if rtol is None and atol is None:
        known = [_ALL_CLOSE.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = (max(k[i] for k in known) for i in range(2))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
                 check_dtype=False, check_stride=False, msg=msg or None)


# -- containers ------------------------------------------------------------------------------------
def _compare(actual: Any, expected: Any, how: _How) -> None:
    if _both(actual, expected, Sequence) and not isinstance(actual, str):
        _compare_sequences(actual, expected, how)
    elif _both(actual, expected, Mapping):
        _compare_mappings(actual, expected, how)
    elif actual is None or expected is None:
        if actual is not expected:
            raise _Differ(f"None mismatch: {actual} is not {expected}", how.place)
    elif _both(actual, expected, (bool, np.bool_)):
        if bool(actual) is not bool(expected):
            raise _Differ(f"Booleans mismatch: {actual} is not {expected}", how.place)
    elif _both(actual, expected, (int, float, complex)):
        _compare_numbers(actual, expected, how)
    elif _both(actual, expected, Tensor) or _both(actual, expected, np.ndarray):
        if not how.subclasses and type(actual) is not type(expected):
            raise _unknown(actual, expected, how)
        _compare_tensors(as_tensor(actual).detach(), as_tensor(expected).detach(), how)
    elif _both(actual, expected, SparseTensor):
        _compare_sparse(actual.detach(), expected.detach(), how)
    else:
        raise _unknown(actual, expected, how)


def _both(actual: Any, expected: Any, kind: Any) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _unknown(actual: Any, expected: Any, how: _How) -> TypeError:
    where = "".join(f"[{key!r}]" for key in how.place)
    text = ("No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.")
    return TypeError(text + (f"\n\nThe failure occurred for item {where}" if where else ""))


def _compare_sequences(actual: Sequence, expected: Sequence, how: _How) -> None:
    if len(actual) != len(expected):
        raise _Differ(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                      how.place)
    for k, (a, b) in enumerate(zip(actual, expected)):
        _compare(a, b, how.within(k))


def _compare_mappings(actual: Mapping, expected: Mapping, how: _How) -> None:
    missing, more = set(expected) - set(actual), set(actual) - set(expected)
    if missing or more:
        raise _Differ("The keys of the mappings do not match:\n"
                      f"Missing keys in the actual mapping: {sorted(missing)}\n"
                      f"Additional keys in the actual mapping: {sorted(more)}", how.place)
    keys = list(actual)
    try:
        keys.sort()
    except TypeError:
        pass  # keys without an order
    for key in keys:
        _compare(actual[key], expected[key], how.within(key))


# -- numbers and tensors ---------------------------------------------------------------------------
def _compare_numbers(actual: Any, expected: Any, how: _How) -> None:
    if how.dtype and type(actual) is not type(expected):
        raise _Differ(f"The (d)types do not match: {type(actual)} != {type(expected)}.", how.place)
    known = [next(t for kind, t in _NUMBERS.items() if isinstance(x, kind))
             for x in (actual, expected)]
    _check_scalars(actual, expected, *how.tolerances(*known), how)


def _check_scalars(actual: Any, expected: Any, rtol: float, atol: float, how: _How) -> None:
    equal = actual == expected or how.equal_nan and actual != actual and expected != expected
    difference = abs(actual - expected)
    finite = np.isfinite(actual) and np.isfinite(expected)
    if equal or finite and difference <= atol + rtol * abs(expected):
        return
    relative = float("inf") if expected == 0 else difference / abs(expected)
    exact = rtol == 0 and atol == 0
    bounds = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    raise _Differ(f"Scalars are not {'equal' if exact else 'close'}!\n\n"
                  f"Expected {expected} but got {actual}.\n"
                  f"Absolute difference: {difference}{bounds[0]}\n"
                  f"Relative difference: {relative}{bounds[1]}", how.place)


def _compare_sparse(actual: SparseTensor, expected: SparseTensor, how: _How) -> None:
    """Compare the positions of the kept elements, and their values."""
    how = replace(how, stride=False)
    _check_attributes(actual, expected, how)
    for what, one, other in (("sparse dimensions", actual.sparse_dim(), expected.sparse_dim()),
                             ("specified values", actual._nnz(), expected._nnz())):
        if one != other:
            raise _Differ(f"The number of {what} in sparse COO tensors does not match: "
                          f"{one} != {other}", how.place)
    _compare_tensors(actual._indices(), expected._indices(), replace(how, rtol=0.0, atol=0.0),
                     "Sparse COO indices")
    _compare_tensors(actual._values(), expected._values(), how, "Sparse COO values")


def _compare_tensors(actual: Tensor, expected: Tensor, how: _How,
                     what: str = "Tensor-likes") -> None:
    _check_attributes(actual, expected, how)
    if actual.is_meta or expected.is_meta:
        return
    rtol, atol = how.tolerances(*(_CLOSE.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)))
    common = promote_types(actual.dtype, expected.dtype)
    if actual.dim() == 0:
        _check_scalars(actual.to(common).item(), expected.to(common).item(), rtol, atol, how)
        return
    a, b = (x.to(int64 if common is bool_ else common) for x in (actual, expected))
    close = isclose(a, b, rtol=rtol, atol=atol, equal_nan=how.equal_nan)
    if not close.all():
        raise _Differ(_text_of_differences(a, b, close, rtol, atol, what), how.place)


def _check_attributes(actual: Tensor, expected: Tensor, how: _How) -> None:
    asked = [("shape", True, actual.shape, expected.shape),
             ("layout", how.layout, actual.layout, expected.layout),
             ("device", how.device, actual.device, expected.device),
             ("dtype", how.dtype, actual.dtype, expected.dtype),
             ("stride()", how.stride, how.stride and actual.stride(),
              how.stride and expected.stride())]
    for name, wanted, a, b in asked:
        if wanted and a != b:
            raise _Differ(f"The values for attribute '{name}' do not match: {a} != {b}.", how.place)


def _text_of_differences(a: Tensor, b: Tensor, close: Tensor, rtol: float, atol: float,
                         what: str) -> str:
    absolute = (a - b).abs().masked_fill(close, 0)
    relative = (absolute / b.abs()).masked_fill(close, 0)
    exact, wrong = rtol == 0 and atol == 0, int(close.logical_not().sum())
    lines = [f"{what} are not {'equal' if exact else 'close'}!\n",
             f"Mismatched elements: {wrong} / {a.numel()} ({wrong / a.numel():.1%})"]
    for name, found, bound in (("absolute", absolute, atol), ("relative", relative, rtol)):
        first = int(found.argmax())
        at = tuple(int(k) for k in np.unravel_index(first, tuple(found.shape)))
        allowed = "" if exact else f" (up to {bound} allowed)"
        lines.append(f"Greatest {name} difference: {found.flatten()[first].item()} at index "
                     f"{at}{allowed}")
    return "\n".join(lines)

_sealing.seal_all(globals())
