"""Elementwise arithmetic: + - * / // % **, and functions written with them.

In: tensors and numbers. Out: tensors, in the dtype PyTorch's promotion gives. Called by users
(operators, functions and methods of one name) and by gradient rules.

Integer division by a number that is not zero is a kernel expression. By a tensor, or by zero, it is
a call of the array library. That looks for zeros first and raises, as PyTorch does, so no kernel
ever traps.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import overriding
from tracejit.core.ops.autocast import FLOAT32_ON_CUDA, autocasts
from tracejit.core.ops.fitting import fitting, promote_computed
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import log, rsqrt, sqrt, trunc
from tracejit.core.ops.pointwise_record import (
    common_dtype,
    convert,
    decisive,
    dtype_among,
    elementwise_type,
    is_number,
    is_tensor,
    must_be_real,
    must_be_tensors,
    pointwise,
    promote,
    promote_factors,
    promote_rounded,
    representable,
)
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import (
    COMPLEX,
    CPP_NAMES,
    FLOATING,
    SCALAR_NAMES,
    bool_,
    int64,
    uint8,
)


def no_bools(op: Op | None, operands: tuple) -> None:
    """Raise RuntimeError if an operand is bool: bools have no difference."""
    bools = [x.dtype is bool_ if is_tensor(x) else type(x) is bool for x in operands]
    if all(bools):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. "
                           "Use the `^` or `logical_xor()` operator instead.")
    if any(bools):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If "
                           "you are trying to invert a mask, use the `~` or `logical_not()` "
                           "operator instead.")


def not_bool(op: Op | None, operands: tuple) -> None:
    """Raise RuntimeError if the operand is bool: it has no negative."""
    if operands[0].dtype is bool_:
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you "
                           "are trying to invert a mask, use the `~` or `logical_not()` operator "
                           "instead.")


add_record = pointwise(
    "add", "add", "({input} + {other})", promote_rounded, methods=(), fast="elementwise",
    input=lambda grad: grad,
    other=lambda grad: grad)

sub_record = pointwise(
    "sub", "subtract", "({input} - {other})", promote_rounded, methods=(), check=no_bools,
    fast="elementwise",
    input=lambda grad: grad,
    other=lambda grad: -grad)

mul = pointwise(
    "mul", "multiply", "({input} * {other})", promote_factors, methods=("mul", "multiply"),
    fast="elementwise",
    input=lambda grad, other: grad * other,
    other=lambda grad, input: grad * input)
multiply = mul

_div = pointwise(
    "div", "true_divide", "({input} / {other})", "float", methods=(), fast="elementwise",
    input=lambda grad, other: grad / other,
    other=lambda grad, input, other: -grad * ((input / other) / other))

neg = pointwise(
    "neg", "negative", "(-{input})", methods=("neg", "negative", "__neg__"), check=not_bool,
    fast="elementwise",
    input=lambda grad: -grad)
negative = neg

reciprocal = pointwise(
    "reciprocal", lambda xp, input: 1 / input, "({dtype}(1) / {input})", "float",
    input=lambda grad, out: -grad * out * out)
reciprocal.casts = FLOAT32_ON_CUDA

_square = pointwise(
    "square", "square", "({input} * {input})", methods=(), node_name="PowBackward0",
    fast="elementwise", input=lambda grad, input: grad * 2 * input)

_cube = pointwise(
    "cube", lambda xp, input: input * input * input, "({input} * {input} * {input})", methods=(),
    node_name="PowBackward0",
    input=lambda grad, input: grad * (3 * square(input)))

_inverse_square = pointwise(
    "inverse_square", lambda xp, input: 1 / (input * input), "({dtype}(1) / ({input} * {input}))",
    "float", methods=(), node_name="PowBackward0",
    input=lambda grad, input: _pow_input(grad, input, -2.0))


def _pow_input(grad: Any, input: Any, exponent: Any) -> Any:
    if is_number(exponent):
        return _zeros(grad) if exponent == 0 else grad * (exponent * pow(input, exponent - 1))
    return where(exponent == 0, 0.0, grad * (exponent * pow(input, exponent - 1)))


def _pow_exponent(grad: Any, input: Any, exponent: Any, out: Any) -> Any:
    if is_number(input):
        if input != 0:
            return grad * out * _logarithm(input)
        return where(_real(exponent) >= 0, 0.0, grad * out * -math.inf)
    # 0 ** exponent does not change with an exponent >= 0, though log(0) is infinite.
    return grad * where((input == 0) & (_real(exponent) >= 0), 0.0, out * log(input))


def _real(x: Any) -> Any:
    return x.real if is_tensor(x) and x.dtype.category == COMPLEX else x


def _logarithm(number: Any) -> Any:
    if isinstance(number, complex):
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


_pow = pointwise(
    "pow", "power", "pow({input}, {exponent})", methods=(),
    input=_pow_input,
    exponent=_pow_exponent)


def _integer_power(xp: Any, input: Any, exponent: Any) -> Any:
    """Raise integers to powers. NumPy refuses negative exponents; PyTorch truncates the result."""
    negative = xp.asarray(exponent < 0)
    result = xp.power(input, xp.where(negative, 0, exponent))
    odd = xp.where(xp.asarray(exponent % 2 == 0), xp.ones_like(result), input)
    truncated = xp.where(xp.asarray(input == 1), xp.ones_like(result),
                         xp.where(xp.asarray(input == -1), odd, xp.zeros_like(result)))
    return xp.where(negative, truncated, result).astype(result.dtype)


pow_integer = Op("pow_integer", "extern", ("input", "exponent"), infer=elementwise_type(None),
                 eager=_integer_power)


def _as_tensor(number: Any) -> Any:
    from tracejit.core.ops.creation import number_tensor
    return number_tensor(number)


def _zeros(grad: Any) -> Any:
    from tracejit.core.ops.creation import zeros_like
    return zeros_like(grad)


# -- division --------------------------------------------------------------------------------------
# The quotient is computed from the exact remainder: input / other may round up to the next integer.
# Where the quotient is 0, input / other gives its sign.
_REST = "fmod({input}, {other})"
_SIGNS_DIFFER = (f"({_REST} != {{dtype}}(0)) & "
                 f"(({{other}} < {{dtype}}(0)) != ({_REST} < {{dtype}}(0)))")
_QUOTIENT = (f"(rint(({{input}} - {_REST}) / {{other}}) - "
             f"({{dtype}}(1) if {_SIGNS_DIFFER} else {{dtype}}(0)))")
_FLOOR_DIVIDE = (f"({{input}} / {{other}} if {{other}} == {{dtype}}(0) else "
                 f"({{input}} / {{other}} * {{dtype}}(0) if {_QUOTIENT} == {{dtype}}(0) "
                 f"else {_QUOTIENT}))")
_REMAINDER = f"({_REST} + {{other}} if {_SIGNS_DIFFER} else {_REST})"


def _no_derivative(grad: Any) -> Any:
    raise RuntimeError("derivative for aten::floor_divide is not implemented")


floor_divide_float = pointwise("floor_divide", "floor_divide", _FLOOR_DIVIDE, methods=(),
                               operands=("input", "other"), node_name="NotImplemented",
                               input=_no_derivative, other=_no_derivative)
div_floor = pointwise("div_floor", "floor_divide", _FLOOR_DIVIDE, methods=(),
                      operands=("input", "other"), node_name="DivBackward2",
                      input=_zeros, other=_zeros)


def _remainder_array(xp: Any, input: Any, other: Any) -> Any:
    """Return PyTorch's remainder: a 0 has the dividend's sign, in NumPy's the divisor's."""
    rest = xp.fmod(input, other)
    return xp.where((rest != 0) & ((other < 0) != (rest < 0)), rest + other, rest)


remainder_float = pointwise(
    "remainder", _remainder_array, _REMAINDER, promote_rounded, methods=(),
    operands=("input", "other"),
    input=lambda grad: grad,
    other=lambda grad, input, other: -grad * div(input, other, rounding_mode="floor"))

fmod_float = pointwise(
    "fmod", "fmod", "fmod({input}, {other})", methods=(),
    input=lambda grad: grad,
    other=lambda grad, input, other: -grad * div(input, other, rounding_mode="trunc"))

floor_divide_integer = pointwise("floor_divide_integer", "floor_divide", "({input} // {other})",
                                 methods=())
remainder_integer = pointwise("remainder_integer", "remainder", "({input} % {other})", methods=())


def _checked(name: str, function: str) -> Op:
    """Make an integer division that looks for zeros before it divides; never part of a kernel."""
    def eager(xp: Any, input: Any, other: Any) -> Any:
        zero = other == 0 if is_number(other) else (other == 0).any()
        if zero and getattr(input, "size", 1):
            raise RuntimeError("ZeroDivisionError")
        return getattr(xp, function)(input, other)

    return Op(name, "extern", ("input", "other"), infer=elementwise_type(None), eager=eager,
              may_fail=True)


floor_divide_checked = _checked("floor_divide_checked", "floor_divide")
remainder_checked = _checked("remainder_checked", "remainder")


def _divided(input: Any, other: Any, floating: Op, integer: Op, checked: Op) -> Any:
    # As in PyTorch, numbers beside halves are rounded to halves, except a divisor of floor_divide.
    floored = floating in (floor_divide_float, div_floor)
    exact = floored and is_tensor(input) and not getattr(input, "is_weak", False)
    input, other = (promote if exact else representable)((input, other))
    common = dtype_among(input, other)
    kernel = "div_floor_cpu" if floored else f"{floating.name}_cpu"
    if common is bool_:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    must_be_real(f"\"{kernel}\" not implemented for '{{}}'", (input, other))
    if common.category >= FLOATING:
        return apply(floating, (input, other), {})
    if is_number(other) and other != 0:
        return apply(integer, (input, other), {})
    return apply(checked, (input, other), {})


def floor_divide(input: Any, other: Any) -> Any:
    """Round the quotient towards minus infinity; both broadcast. Integers: RuntimeError where
    `other` is 0.

    Its backward raises RuntimeError; `div` with `rounding_mode="floor"` gives zeros.

    >>> import tracejit
    >>> tracejit.floor_divide(tracejit.tensor([-7, 7]), 2)
    tensor([-4,  3])
    """
    return _floored(input, other, floor_divide_float)


def _floored(input: Any, other: Any, floating: Op) -> Any:
    if is_number(other) and is_number(input):
        input = _as_tensor(input)
    if _turns_signs(input, other):
        return neg(input)  # the smallest integer divided by -1 traps on the processor
    return _divided(input, other, floating, floor_divide_integer, floor_divide_checked)


def remainder(input: Any, other: Any) -> Any:
    """Return input - other * floor(input / other), which broadcast; it has the sign of `other`.

    Integers: RuntimeError where `other` is 0.

    >>> import tracejit
    >>> tracejit.remainder(tracejit.tensor([-3, 3]), 2)
    tensor([1, 1])
    """
    if _turns_signs(input, other):
        return input * 0
    return _divided(input, other, remainder_float, remainder_integer, remainder_checked)


def fmod(input: Any, other: Any) -> Any:
    """Return input - other * trunc(input / other), which broadcast; it has the sign of `input`.

    >>> import tracejit
    >>> tracejit.fmod(tracejit.tensor([-3, 3]), 2)
    tensor([-1,  1])
    """
    must_be_tensors("fmod", ("input",), (input,))
    return _rest(input, other)


def _rest(input: Any, other: Any) -> Any:
    """Return the remainder of truncated division. The first operand may be the number."""
    input, other = representable((input, other))
    must_be_real("\"fmod_cpu\" not implemented for '{}'", (input, other))
    if dtype_among(input, other).category >= FLOATING:
        return fmod_float(input, other)
    rest = remainder(input, other)
    return where((rest != 0) & ((rest < 0) != (input < 0)), rest - other, rest)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return input / other, which broadcast; `rounding_mode` "trunc" or "floor" rounds it and keeps
    integers.

    >>> import tracejit
    >>> tracejit.div(tracejit.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """
    if rounding_mode is None:
        return _div(input, other)
    if rounding_mode == "floor":
        return _floored(input, other, div_floor)
    if rounding_mode != "trunc":
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                           f"found '{rounding_mode}'")
    if is_number(other) and is_number(input):
        input = _as_tensor(input)
    input, other = promote((input, other))
    must_be_real("\"div_trunc_cpu\" not implemented for '{}'", (input, other))
    if dtype_among(input, other).category >= FLOATING:
        return apply(div_trunc, (input, other), {})
    return floor_divide(input - _rest(input, other), other)


div_trunc = Op("div_trunc", "composite", ("input", "other"), infer=elementwise_type(None),
               body=lambda input, other: trunc(_div(input, other)), node_name="DivBackward2",
               rules={"input": _zeros, "other": _zeros})


def true_divide(input: Any, other: Any) -> Any:
    """Return input / other, which broadcast, never rounded to an integer.

    >>> import tracejit
    >>> tracejit.true_divide(tracejit.tensor([3, 4]), 2)
    tensor([1.5000, 2.0000])
    """
    return _div(input, other)


def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Call `div`: both broadcast.

    >>> import tracejit
    >>> tracejit.divide(tracejit.tensor([3., 4.]), 2)
    tensor([1.5000, 2.0000])
    """
    return div(input, other, rounding_mode=rounding_mode)


def _turns_signs(input: Any, other: Any) -> bool:
    """Return True if signed integers are divided by the number -1, which is 255 beside uint8."""
    return type(other) is int and other == -1 and _integral(input) and input.dtype is not uint8


def _integral(x: Any) -> bool:
    return is_tensor(x) and x.dtype.category < FLOATING and x.dtype is not bool_


# -- powers ----------------------------------------------------------------------------------------
def square(input: Any) -> Any:
    """Return input * input of each element, in the same shape; bool becomes int64.

    >>> import tracejit
    >>> tracejit.square(tracejit.tensor([3., 4.]))
    tensor([ 9., 16.])
    """
    return _square(convert(input, int64) if input.dtype is bool_ else input)


@autocasts(cuda="float32")
def pow(input: Any, exponent: Any) -> Any:
    """Return input ** exponent, which broadcast.

    Integers stay integers. RuntimeError for a negative number as their exponent then; where a
    tensor is negative, the result is truncated.

    >>> import tracejit
    >>> tracejit.pow(tracejit.tensor([2., 3.]), 2)
    tensor([4., 9.])
    """
    base, power = decisive(input), decisive(exponent, *_SPECIAL)
    common = common_dtype((base, power))
    if common.category < FLOATING and is_number(power) and power < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if common.category < FLOATING or common.itemsize == 2:
        power = fitting(power, common)
    base, power = representable((base, power))
    if common.category < FLOATING:
        return _whole_power(base, power)
    if type(power) is float and power in _SPECIAL:
        return _SPECIAL[power](base)
    return _pow(base, power)


_SPECIAL: dict[float, Callable[[Any], Any]] = {
    2.0: _square, 3.0: _cube, 0.5: sqrt, -0.5: rsqrt, -1.0: reciprocal, -2.0: _inverse_square,
}  # fmt: skip


def _whole_power(base: Any, exponent: Any) -> Any:
    if is_tensor(exponent) and dtype_among(base, exponent) is bool_:
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if is_number(exponent):
        if type(exponent) is int and exponent in (2, 3):
            return _square(base) if exponent == 2 else _cube(base)
    return apply(pow_integer, (base, exponent), {})


def rpow(input: Any, other: Any) -> Any:
    """Return other ** input."""
    return pow(other, input)


# -- three operands --------------------------------------------------------------------------------
def _lerp_array(xp: Any, input: Any, end: Any, weight: Any) -> Any:
    if is_number(weight) and not hasattr(weight, "dtype"):
        weight = (end - input).dtype.type(weight)
    near, far = input + weight * (end - input), end - (end - input) * (1 - weight)
    return xp.where(xp.asarray(abs(weight) < 0.5), near, far)


def _lerp_operands(given: Sequence[Any]) -> tuple:
    """Return the operands. RuntimeError if dtypes differ, but for a weight without dimensions."""
    input, end, weight = given[0], given[1], decisive(given[2])
    parts = [("end", end)]
    if is_tensor(weight) and weight.shape:
        parts.append(("weight", weight))
    for name, x in parts:
        if x.dtype is not input.dtype:
            expected, found = (CPP_NAMES[y.dtype.name] for y in (input, x))
            raise RuntimeError(f"expected dtype {expected} for `{name}` but got dtype {found}")
    if input.dtype.category < FLOATING:
        kernel = "lerp_kernel_tensor" if is_tensor(weight) else "lerp_kernel_scalar"
        raise NotImplementedError(f"\"{kernel}\" not implemented for "
                                  f"'{SCALAR_NAMES[input.dtype.name]}'")
    return promote_computed((input, end, weight))


lerp = pointwise(
    "lerp", _lerp_array,
    "({input} + {weight} * ({end} - {input}) if abs({weight}) < {dtype}(0.5) "
    "else {end} - ({end} - {input}) * ({dtype}(1) - {weight}))",
    _lerp_operands, operands=("input", "end", "weight"), tensors=("input", "end"),
    input=lambda grad, weight: grad * (1 - weight),
    end=lambda grad, weight: grad * weight,
    weight=lambda grad, input, end: grad * (end - input))

for _function in (div, divide, true_divide, floor_divide, remainder, fmod, pow,
                  square):
    method()(_function)


# -- Python's operators ----------------------------------------------------------------------------
def operator(function: Any, reflect: bool = False) -> Any:
    """Make a binary operator method: NotImplemented for objects other than tensors and numbers."""
    record = function if isinstance(function, Op) and function.fast else None

    def call(self: Any, other: Any) -> Any:
        if record is not None:
            found = record.direct(other, self) if reflect else record.direct(self, other)
            if found is not NotImplemented:
                return found
        if isinstance(other, Operators) or is_number(other):
            return function(other, self) if reflect else function(self, other)
        return overriding.by_operand(call, self, other)

    return call


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": add_record, "sub": sub_record, "mul": mul, "truediv": _div, "floordiv": floor_divide,
    "mod": remainder, "pow": pow,
}  # fmt: skip
for _spelling, _binary in _OPERATORS.items():
    method(f"__{_spelling}__")(operator(_binary))
    method(f"__r{_spelling}__")(operator(_binary, reflect=True))
