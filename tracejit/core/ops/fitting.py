"""Numbers as elements of a dtype, and the error for numbers that it does not hold.

In: a Python number or one known only when a program runs, a dtype. Out: the number, in the range of
the dtype. Called where PyTorch looks before it converts: filling, writing, bounds, factors;
elsewhere integers wrap and floats become infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.pointwise_record import (
    common_dtype,
    convert,
    in_64_bits,
    in_a_word,
    promote,
)
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import (
    INTEGER,
    TensorType,
    bfloat16,
    bool_,
    dtype,
    element,
    float16,
    promote_types,
    rounded,
    uint8,
)

HALVES = (float16, bfloat16)
_BEYOND_HALVES = 1e308  # half of no float is as large
_WIDEST = float(np.finfo(np.float32).max)
_LARGEST = {"float16": 65504.0, "bfloat16": 2.0 ** 128 - 2.0 ** 120, "float32": _WIDEST,
            "complex64": _WIDEST}  # fmt: skip
_C_NAMES = {"float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float",
            "complex64": "c10::complex<float>", "int32": "int"}  # fmt: skip


def is_int(value: Any) -> bool:
    """Return True for an int, a symbolic size, or an int known only when a program runs."""
    kind = type(value)
    return kind is int or getattr(kind, "kind", None) is int or hasattr(kind, "same_as")


def plain_number(value: Any) -> Any:
    """Return a number of NumPy as a Python number; its bools are floats, as in PyTorch. Anything
    else is returned as it is."""
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.bool_) else value.item()
    return value


def fitting(value: Any, dtype: dtype, kind: str = "", *, as_computed: bool = False) -> Any:
    """Return a number as an element of a dtype; negative ints wrap in uint8.

    RuntimeError if the dtype has no such element, OverflowError beyond 64 bits. For a number known
    only when a program runs, the comparison is a guard: the program serves numbers that fit.
    `kind`: the dtype's name in the error; `as_computed`: halves are computed with in float32, which
    the number must fit.

    >>> import tracejit
    >>> fitting(-1, tracejit.uint8)
    255
    """
    value = in_a_word(value)
    if type(value) is int:
        in_64_bits(value)
        value = bool(value) if dtype is bool_ else value
    if dtype.category != INTEGER:
        name = "float32" if as_computed and dtype in HALVES else dtype.name
        if _is_beyond(value, name):
            _refuse(kind or _C_NAMES[name])
        return value
    fraction = isinstance(value, float)
    if type(value) is not int and not fraction and (dtype.itemsize == 8 or not is_int(value)):
        return value
    unsigned = dtype is uint8
    highest = (1 << (8 * dtype.itemsize - (not unsigned))) - 1
    # Negative ints wrap in uint8, negative floats do not.
    least = 0 if unsigned and fraction else -highest if unsigned else -highest - 1
    if not least <= value <= highest:
        _refuse(kind or _C_NAMES.get(dtype.name, f"{dtype.name}_t"))
    return value + 256 if unsigned and value < 0 else value


def as_written(value: Any, dtype: dtype) -> Any:
    """Return `fitting(value, dtype)`, but infinity where halves have no element so large.

    So does PyTorch when it writes an element.
    """
    if dtype not in HALVES:
        return fitting(value, dtype)
    if type(value) is int:
        value = float(in_64_bits(value))
    if type(value) is float:
        with np.errstate(over="ignore"):
            return float(element(value, dtype.numpy))
    return convert(value, dtype) if getattr(value, "is_weak", False) else value


def fitting_tensor(value: Any, dtype: dtype) -> Any:
    """Return a 0-dim tensor in a dtype, which must have its element.

    PyTorch fills with such a tensor as with the number it holds.
    """
    wider = promote_types(value.dtype, dtype) is not dtype
    wider = wider or dtype is float16 and value.dtype.itemsize > 2  # int64 promotes to it
    if getattr(value, "is_weak", False) or not wider:
        return convert(value, dtype)
    return apply(_fitted, (value,), {"dtype": dtype})


def _fitted_array(xp: Any, value: Any, dtype: dtype) -> Any:
    fitting(value.item(), dtype)
    with np.errstate(all="ignore"):
        return rounded(value, dtype)


_fitted: Op = Op(
    "fitted", "extern", ("value",), eager=_fitted_array, may_fail=True,
    infer=lambda value, dtype: TensorType(dtype, (), value.device),
    rules={"value": lambda grad, value_type: convert(grad, value_type.dtype)},
)  # fmt: skip


def promote_fitting(operands: Sequence[Any]) -> tuple:
    """Do `promote`; RuntimeError for numbers that the common dtype does not hold."""
    common = common_dtype(operands)
    return promote([fitting(x, common) for x in operands])


def promote_computed(operands: Sequence[Any]) -> tuple:
    """Do `promote_fitting` for ops that compute with the numbers: halves must fit float32."""
    common = common_dtype(operands)
    return promote([fitting(x, common, as_computed=True) for x in operands])


def _is_beyond(value: Any, name: str) -> bool:
    """Return True if a number is beyond the largest element of a floating dtype, but not infinite.

    A number that only the program knows is not checked: it was an element of a tensor.
    """
    highest = _LARGEST.get(name)
    if highest is None or not getattr(value, "on_host", True):
        return False
    if type(value) is complex:
        return _is_beyond(value.real, name) or _is_beyond(value.imag, name)
    if is_int(value):
        return name == "float16" and not -highest <= value <= highest
    if not isinstance(value, float):
        return False
    # The remainder of inf or NaN is NaN: one comparison, so one guard for all numbers that fit.
    return bool(abs(value) * 0.5 % _BEYOND_HALVES > highest * 0.5)


def _refuse(kind: str) -> None:
    raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
