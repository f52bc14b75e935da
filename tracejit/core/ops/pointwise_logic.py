"""Elementwise comparisons, logic, bits, and choices between values.

In: tensors and numbers. Out: bool tensors, or a choice among the operands. Called by users
(operators, functions and methods) and by gradient rules. Results of dtype bool have no gradient
rules.

Minima, maxima and clamps propagate NaN from either side. Of the equals -0.0 and 0.0 they take the
second. Where two operands tie, each gets half of the gradient; at the bounds of a clamp the input
gets all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops import overriding, shapes
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.fitting import as_written, promote_fitting
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_record import (
    convert,
    copy,
    device_of,
    dtype_among,
    is_number,
    is_tensor,
    must_be_tensors,
    pointwise,
    promote,
    promote_to,
    real_only,
)
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    INTEGER,
    SCALAR_NAMES,
    TensorType,
    bool_,
    dtype,
    element,
    get_default_dtype,
    result_type,
    uint8,
)


def _ordered(kernel: str) -> Callable[[Op, tuple], None]:
    return real_only(f"\"{kernel}\" not implemented for '{{}}'")


ONE, BOTH = ("input",), ("input", "other")


# -- comparison ------------------------------------------------------------------------------------
eq = pointwise("eq", "equal", "({input} == {other})", "compare", fast="elementwise",
               tensors=ONE, methods=("eq", "__eq__"))
ne = pointwise("ne", "not_equal", "({input} != {other})", "compare", fast="elementwise",
               tensors=ONE, methods=("ne", "not_equal", "__ne__"))
lt = pointwise("lt", "less", "({input} < {other})", "compare", fast="elementwise",
               tensors=ONE, methods=("lt", "less", "__lt__"), check=_ordered("lt_cpu"))
le = pointwise("le", "less_equal", "({input} <= {other})", "compare", fast="elementwise",
               tensors=ONE, methods=("le", "less_equal", "__le__"), check=_ordered("le_cpu"))
gt = pointwise("gt", "greater", "({input} > {other})", "compare", fast="elementwise",
               tensors=ONE, methods=("gt", "greater", "__gt__"), check=_ordered("gt_cpu"))
ge = pointwise("ge", "greater_equal", "({input} >= {other})", "compare", fast="elementwise",
               tensors=ONE, methods=("ge", "greater_equal", "__ge__"), check=_ordered("ge_cpu"))
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge


def _comparison(op: Op) -> Any:
    """Make Python's comparison: NotImplemented for operands that are neither tensor nor number."""
    def call(self: Any, other: Any) -> Any:
        found = op.direct(self, other)
        if found is not NotImplemented:
            return found
        if isinstance(other, Operators) or is_number(other):
            return op(self, other)
        return overriding.by_operand(call, self, other)

    return call


for _op in (eq, ne, lt, le, gt, ge):
    method(f"__{_op.name}__")(_comparison(_op))
# Defining __eq__ on a class removes its hash; tensors are hashed by identity.
Operators.__hash__ = object.__hash__  # type: ignore[method-assign]

# x - x is NaN where x is infinite or NaN, so kernels call no function.
isnan = pointwise("isnan", "isnan", "({input} != {input})", "predicate")
_isinf = pointwise(
    "isinf", "isinf",
    "((({input} - {input}) != ({input} - {input})) & ({input} == {input}))", "predicate",
    methods=())
_isfinite = pointwise("isfinite", "isfinite", "(({input} - {input}) == ({input} - {input}))",
                      "predicate", methods=())


def isinf(input: Any) -> Any:
    """Return True where an element is plus or minus infinity; bools in the same shape.

    >>> import tracejit
    >>> tracejit.isinf(tracejit.tensor([1.0, tracejit.inf]))
    tensor([False,  True])
    """
    return _isinf(input) if input.dtype.category >= FLOATING else input != input


def isfinite(input: Any) -> Any:
    """Return True where an element is neither infinite nor NaN; bools in the same shape.

    >>> import tracejit
    >>> tracejit.isfinite(tracejit.tensor([1.0, tracejit.inf]))
    tensor([ True, False])
    """
    return _isfinite(input) if input.dtype.category >= FLOATING else input == input


# -- logic -----------------------------------------------------------------------------------------
def _as_bools(operands: Any) -> tuple:
    return tuple(convert(x, bool_) if is_tensor(x) else bool(x) for x in operands)


logical_and = pointwise("logical_and", "logical_and", "({input} & {other})", _as_bools,
                        tensors=BOTH)
logical_or = pointwise("logical_or", "logical_or", "({input} | {other})", _as_bools,
                        tensors=BOTH)
logical_xor = pointwise("logical_xor", "logical_xor", "({input} != {other})", _as_bools,
                        tensors=BOTH)
logical_not = pointwise("logical_not", "logical_not", "(not {input})", _as_bools)


# -- bits ------------------------------------------------------------------------------------------
def _no_floats(op: Op, operands: tuple) -> None:
    common = result_type(*operands)
    shift = {_shift_left: "lshift", _shift_right: "rshift"}.get(op)
    if common.category >= FLOATING or shift and common is bool_:
        kernel = shift or op.name
        raise NotImplementedError(f"\"{kernel}_cpu\" not implemented for "
                                  f"'{SCALAR_NAMES[common.name]}'")


bitwise_and = pointwise("bitwise_and", "bitwise_and", "({input} & {other})", check=_no_floats)
bitwise_or = pointwise("bitwise_or", "bitwise_or", "({input} | {other})", check=_no_floats)
bitwise_xor = pointwise("bitwise_xor", "bitwise_xor", "({input} ^ {other})", check=_no_floats)
_bitwise_not = pointwise("bitwise_not", "invert", "(~{input})", methods=(), check=_no_floats)
_shift_left = pointwise("bitwise_left_shift", "left_shift", "({input} << {other})", methods=(),
                        check=_no_floats)
_shift_right = pointwise("bitwise_right_shift", "right_shift", "({input} >> {other})", methods=(),
                         check=_no_floats)


def bitwise_not(input: Any) -> Any:
    """Flip every bit, in the same shape; bool: logical not. NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.bitwise_not(tracejit.tensor([0, 5]))
    tensor([-1, -6])
    """
    return logical_not(input) if input.dtype is bool_ else _bitwise_not(input)


def bitwise_left_shift(input: Any, other: Any) -> Any:
    """Return input << other, which broadcast; 0 where `other` is not a valid count of bits.

    >>> import tracejit
    >>> tracejit.bitwise_left_shift(tracejit.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """
    return _shifted(_shift_left, input, other)


def bitwise_right_shift(input: Any, other: Any) -> Any:
    """Return input >> other, which broadcast, sign kept; out of range, only the sign (0 in uint8).

    >>> import tracejit
    >>> tracejit.bitwise_right_shift(tracejit.tensor([4, -4]), 1)
    tensor([ 2, -2])
    """
    return _shifted(_shift_right, input, other)


def _varies(count: Any) -> bool:
    return is_tensor(count) and not getattr(count, "is_weak", False)


def _shifted(op: Op, input: Any, other: Any) -> Any:
    _no_floats(op, (input, other))
    input, other = promote((input, other))
    kind = dtype_among(input, other)
    bits, signs = 8 * kind.itemsize, op is _shift_right and kind is not uint8
    if not _varies(other):
        if 0 <= other < bits:
            return op(input, other)
        return op(input, bits - 1) if signs else input * 0
    outside = input >> (bits - 1) if signs else 0
    valid = (other >= 0) & (other < bits)
    return where(valid, op(input, where(valid, other, 0)), outside)


# -- choice ----------------------------------------------------------------------------------------
def _where_type(condition: Any, input: Any, other: Any, dtype: dtype | None = None) -> TensorType:
    tensors = [x for x in (condition, input, other) if is_tensor(x) or type(x) is TensorType]
    shape = shapes.broadcast(*[x.shape for x in tensors])
    return TensorType(dtype or tensors[1].dtype, shape, device_of(tensors))


def _where_array(xp: Any, condition: Any, input: Any, other: Any,
                 dtype: dtype | None = None) -> Any:
    if dtype is not None:
        input, other = element(input, dtype.numpy), element(other, dtype.numpy)
    elif isinstance(input, (bool, int, float, complex)):
        input = element(input, other.dtype)
    elif isinstance(other, (bool, int, float, complex)):
        other = element(other, input.dtype)
    return xp.where(condition, input, other)


_where = Op(
    "where", "pointwise", ("condition", "input", "other"), infer=_where_type, eager=_where_array,
    scalar="({input} if {condition} else {other})",
    rules={"input": lambda grad, condition: where(condition, grad, 0),
           "other": lambda grad, condition: where(condition, 0, grad)},
    node_name="WhereBackward0")


_where_direct = Direct("selection", "where")


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return `input` where `condition` holds, else `other`; all three broadcast.

    >>> import tracejit
    >>> x = tracejit.tensor([-1., 2.])
    >>> tracejit.where(x > 0, x, 0)
    tensor([0., 2.])

    `where(condition)` alone is `condition.nonzero(as_tuple=True)`. RuntimeError if `condition` is
    of another dtype than bool or uint8.
    """
    found = _where_direct.direct(condition, input, other)
    if found is not NotImplemented:
        return found
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition.__class__ is bool:
        raise TypeError("where(): argument 'condition' (position 1) must be Tensor, not bool")
    if condition.dtype is not bool_:
        if condition.dtype.name != "uint8":
            name = SCALAR_NAMES[condition.dtype.name]
            raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor "
                               f"with dtype {name}")
        condition = convert(condition, bool_)
    if input is None or other is None:
        raise TypeError("where() received an invalid combination of arguments: pass both input "
                        "and other, or neither")
    common = result_type(input, other)
    input, other = as_written(input, common), as_written(other, common)
    if all(not is_tensor(x) or getattr(x, "is_weak", False) for x in (input, other)):
        input, other = promote_to((input, other), common)
        return apply(_where, (condition, input, other), {"dtype": common})
    pair = promote((input, other))
    if common.itemsize == 2 and common.category == FLOATING:  # nothing to compute in float32
        pair = promote_to(pair, common)
    return apply(_where, (condition, *pair), {})


def _method_where(self: Any, condition: Any, other: Any) -> Any:
    """Choose elements. Arguments, of shapes that broadcast, are those of `where`."""
    return where(condition, self, other)


def _to_larger(grad: Any, input: Any, other: Any) -> Any:
    return where(input == other, grad * 0.5, where(input < other, 0, grad))


def _to_smaller(grad: Any, input: Any, other: Any) -> Any:
    return where(input == other, grad * 0.5, where(input > other, 0, grad))


maximum = pointwise(
    "maximum", "maximum",
    "({input} if ({input} > {other}) | ({input} != {input}) else {other})",
    operands=BOTH, tensors=BOTH,
    check=real_only("maximum not implemented for complex tensors.", RuntimeError),
    input=_to_larger, other=_to_smaller)

minimum = pointwise(
    "minimum", "minimum",
    "({input} if ({input} < {other}) | ({input} != {input}) else {other})",
    operands=BOTH, tensors=BOTH,
    check=real_only("minimum not implemented for complex tensors.", RuntimeError),
    input=_to_smaller, other=_to_larger)

_UNBOUNDED = real_only("clamp is not supported for complex types")
_LOW = "({input} if ({input} > {min}) | ({input} != {input}) else {min})"

clamp_min = pointwise(
    "clamp_min", lambda xp, input, min: xp.maximum(input, min), _LOW, promote_fitting,
    operands=("input", "min"), tensors=ONE, check=_UNBOUNDED,
    input=lambda grad, input, min: where(input >= min, grad, 0),
    min=lambda grad, input, min: where(input < min, grad, 0))

clamp_max = pointwise(
    "clamp_max", lambda xp, input, max: xp.minimum(input, max),
    "({input} if ({input} < {max}) | ({input} != {input}) else {max})", promote_fitting,
    operands=("input", "max"), tensors=ONE, check=_UNBOUNDED,
    input=lambda grad, input, max: where(input <= max, grad, 0),
    max=lambda grad, input, max: where(input > max, grad, 0))

_clamp = pointwise(
    "clamp", lambda xp, input, min, max: xp.minimum(xp.maximum(input, min), max),
    f"({_LOW} if ({_LOW} < {{max}}) | ({_LOW} != {_LOW}) else {{max}})", promote_fitting,
    methods=(), operands=("input", "min", "max"), node_name="ClampBackward1", check=_UNBOUNDED,
    input=lambda grad, input, min, max: where((input >= min) & (input <= max), grad, 0),
    min=lambda grad, input, min, max: where((input < min) & _less(min, max), grad, 0),
    max=lambda grad, input, min, max: where((input > max) | _less(max, min), grad, 0))


def _less(a: Any, b: Any) -> Any:
    return lt(a, b) if is_tensor(a) or is_tensor(b) else a < b


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Bound elements to [min, max], None, numbers or tensors that broadcast; RuntimeError if both
    are None.

    >>> import tracejit
    >>> tracejit.clamp(tracejit.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return clamp_min(input, min)
    if min is None:
        return clamp_max(input, max)
    return _clamp(input, min, max)


def clip(input: Any, min: Any = None, max: Any = None) -> Any:
    """Call `clamp`: bounds broadcast.

    >>> import tracejit
    >>> tracejit.clip(tracejit.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return clamp(input, min, max)


def _same_kind(operands: Any) -> tuple:
    input, value = operands
    if is_tensor(value) and value.shape:
        raise RuntimeError("fill only supports 0-dimension value tensor but got tensor with "
                           f"{len(value.shape)} dimensions.")
    return promote_to(operands, input.dtype)


fill = pointwise(
    "fill", lambda xp, input, value: xp.full_like(input, value, order="C"), "{value}",
    _same_kind, operands=("input", "value"), methods=(),
    input=lambda grad: grad * 0, value=lambda grad: grad)


def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Any:
    """Replace NaN by `nan` (None: 0), infinities by `posinf`, `neginf` (None: the largest); same
    shape.

    >>> import tracejit
    >>> tracejit.nan_to_num(tracejit.tensor([tracejit.nan, 1.0]))
    tensor([0., 1.])
    """
    if input.dtype.category < FLOATING:
        return copy(input)
    if input.dtype.category == COMPLEX:
        return _nan_to_num_parts(input, nan, posinf, neginf)
    largest, nan = _largest(input.dtype), 0.0 if nan is None else nan
    posinf, neginf = largest if posinf is None else posinf, -largest if neginf is None else neginf
    return apply(nan_to_num_record, (input, nan, posinf, neginf), {})


def _nan_to_num_parts(input: Any, *by: Any) -> Any:
    from tracejit.core.ops.pointwise_complex import complex_record
    return complex_record(nan_to_num(input.real, *by), nan_to_num(input.imag, *by))


def _nan_to_num_body(input: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    finite = where(isnan(input), nan, input)
    finite = where(finite == float("inf"), posinf, finite)
    return where(finite == -float("inf"), neginf, finite)


nan_to_num_record = Op(
    "nan_to_num", "composite", ("input", "nan", "posinf", "neginf"),
    infer=lambda input, nan, posinf, neginf: TensorType(
        input.dtype, tuple(input.shape), input.device),
    body=_nan_to_num_body,
    rules={"input": lambda grad, input: where(isfinite(input), grad, 0)})


def _largest(d: dtype) -> float:
    if d.name == "bfloat16":
        import ml_dtypes

        return float(ml_dtypes.finfo(d.numpy).max)
    return float(np.finfo(d.numpy).max)


def lowest(d: dtype) -> float:
    """Return the smallest number of a floating dtype."""
    return -_largest(d)


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Any:
    """Compare |input - other| <= atol + rtol * |other|, which broadcast. RuntimeError where dtypes
    differ.

    >>> import tracejit
    >>> tracejit.isclose(tracejit.tensor([1.0, 2.0]), tracejit.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    from tracejit.core.ops.pointwise_math import abs

    must_be_tensors("isclose", BOTH, (input, other))
    if input.dtype is not other.dtype:
        raise RuntimeError("{} did not match {}".format(
            *(SCALAR_NAMES[x.dtype.name] for x in (input, other))))
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    if input.dtype is bool_:
        return eq(input, other)
    one, two = input, other
    if input.dtype.category == INTEGER:  # a difference of unsigned numbers would wrap
        one, two = (convert(x, get_default_dtype()) for x in (input, other))
    near = (abs(one - two) <= atol + abs(rtol * two)) & isfinite(input) & isfinite(other)
    near = near | (input == other)
    return near | (isnan(input) & isnan(other)) if equal_nan else near


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8,
             equal_nan: bool = False) -> bool:
    """Return True, a bool, if all elements are close; see `isclose`. Both broadcast.

    >>> import tracejit
    >>> tracejit.allclose(tracejit.ones(2), tracejit.ones(2) + 1e-9)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input: Any, other: Any) -> bool:
    """Return True if two tensors have the same shape and elements; nan equals nothing.

    >>> import tracejit
    >>> tracejit.equal(tracejit.ones(2), tracejit.ones(2))
    True
    """
    must_be_tensors("equal", ("other",), (other,))
    if not shapes.same_shape(tuple(input.shape), tuple(other.shape)):
        return False
    return bool((input == other).all())


for _function in (equal, isinf, isfinite, bitwise_not, bitwise_left_shift,
                  bitwise_right_shift, clamp, clip, nan_to_num, isclose, allclose):
    method()(_function)
method("where")(_method_where)


@method("__invert__")
def _inverted(input: Any) -> Any:
    if input.dtype.category >= FLOATING:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type "
                        "tensors")
    return bitwise_not(input)


def _bit_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        if isinstance(other, Operators) or is_number(other):
            return function(self, other)
        return overriding.by_operand(call, self, other)

    return call


def _reflected_bit_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        if isinstance(other, Operators) or is_number(other):
            return function(other, self)
        return overriding.by_operand(call, self, other)

    return call


_BIT_OPERATORS: dict[str, Callable[..., Any]] = {
    "and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor, "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
}  # fmt: skip
for _spelling, _bits in _BIT_OPERATORS.items():
    method(f"__{_spelling}__")(_bit_operator(_bits))
    method(f"__r{_spelling}__")(_reflected_bit_operator(_bits))
