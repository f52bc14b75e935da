"""In-place twins: `x.add_(y)` and `x += y`, for every function that has one in PyTorch.

In: a tensor to write and the arguments of the function. Out: that tensor. A twin computes the
function's result and hands it to `_assign`, which checks, casts and stores it, and tells the tape.
Graph values have no memory of their own and hence no `_assign`: `value += y` makes a new value, the
named twins are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops import (
    bessel_functions,
    error_functions,
    expanded_writes,
    floating_parts,
    gamma_functions,
    gather_scatter,
    indexing,
    linalg,
    logarithms,
    moments,
    overriding,
    pointwise,
    rearranging,
    scan,
    scatter_reduce,
    tensor_products,
)
from tracejit.core.ops.autocast import not_cast
from tracejit.core.ops.numpy_names import names_of, renamed
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_record import is_number, must_be_real
from tracejit.core.ops.shapes import equal
from tracejit.core.ops.types import SCALAR_NAMES

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    pointwise.acos, pointwise.add, pointwise.addcdiv, pointwise.addcmul,
    pointwise.asin, pointwise.atan, pointwise.bitwise_and, pointwise.bitwise_left_shift,
    pointwise.bitwise_not, pointwise.bitwise_or, pointwise.bitwise_right_shift,
    pointwise.bitwise_xor, pointwise.ceil, pointwise.clamp, pointwise.clamp_max,
    pointwise.clamp_min, pointwise.clip, pointwise.conj_physical, pointwise.cos, pointwise.cosh,
    pointwise.div, pointwise.divide, pointwise.erf, pointwise.erfc, pointwise.exp, pointwise.exp2,
    pointwise.expm1,
    pointwise.floor, pointwise.floor_divide, pointwise.fmod, pointwise.frac, pointwise.lerp,
    pointwise.log, pointwise.log10, pointwise.log1p, pointwise.log2, pointwise.logical_and,
    pointwise.logical_not, pointwise.logical_or, pointwise.logical_xor, pointwise.mul,
    pointwise.nan_to_num, pointwise.neg, pointwise.pow, pointwise.reciprocal, pointwise.remainder,
    pointwise.round, pointwise.rsqrt, pointwise.sigmoid, pointwise.sign, pointwise.sin,
    pointwise.sinh, pointwise.sqrt, pointwise.square, pointwise.sub, pointwise.subtract,
    pointwise.tan, pointwise.tanh, pointwise.true_divide, pointwise.trunc,
    pointwise.eq, pointwise.ne, pointwise.lt, pointwise.le, pointwise.gt, pointwise.ge,
    pointwise.atan2, pointwise.hypot, pointwise.sgn, gather_scatter.index_add,
    gather_scatter.index_copy, gather_scatter.index_fill, gather_scatter.scatter,
    gather_scatter.scatter_add, indexing.index_put, indexing.masked_fill, linalg.addmm,
    linalg.baddbmm, tensor_products.addbmm, tensor_products.addmv, tensor_products.addr,
    rearranging.tril, rearranging.triu, scan.cumsum, bessel_functions.i0, error_functions.erfinv,
    gamma_functions.digamma, gamma_functions.igamma, gamma_functions.igammac,
    gamma_functions.lgamma, gamma_functions.mvlgamma, gamma_functions.polygamma_method,
    logarithms.logit, logarithms.sinc, logarithms.xlogy, pointwise.acosh, pointwise.asinh,
    pointwise.atanh, pointwise.deg2rad, pointwise.rad2deg, scan.cumprod, floating_parts.copysign,
    floating_parts.gcd, floating_parts.heaviside, floating_parts.lcm, floating_parts.ldexp,
    floating_parts.nextafter, moments.renorm, scatter_reduce.index_reduce,
    scatter_reduce.masked_scatter, scatter_reduce.put, scatter_reduce.scatter_reduce,
)  # fmt: skip


def _real_abs(input: Any) -> Any:
    """Do `abs` for a result that takes the operand's place."""
    must_be_real("In-place abs is not supported for complex tensors.", (input,), RuntimeError)
    return pointwise.abs(input)


ALIASES: dict[str, Callable[..., Any]] = {
    "abs": _real_abs, "absolute": _real_abs, "arccos": pointwise.acos, "arccosh": pointwise.acosh,
    "arcsin": pointwise.asin, "arcsinh": pointwise.asinh, "arctan": pointwise.atan,
    "arctan2": pointwise.atan2, "arctanh": pointwise.atanh, "fix": pointwise.trunc,
    "greater": pointwise.gt, "greater_equal": pointwise.ge, "less": pointwise.lt,
    "less_equal": pointwise.le, "multiply": pointwise.mul, "negative": pointwise.neg,
    "not_equal": pointwise.ne, "subtract": pointwise.sub,
}  # fmt: skip

# In-place twins that PyTorch has as functions, too.
TOP_LEVEL = tuple(f"{name}_" for name in (
    "as_strided detach resize_as abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin "
    "asinh atan atanh ceil clamp "
    "clamp_max clamp_min clip conj_physical cos cosh deg2rad erf erfc exp exp2 expm1 fill fix "
    "floor frac gcd i0 "
    "index_put lcm ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal "
    "round rsqrt sigmoid sin sinc sinh sqrt square tan tanh trunc xlogy zero"
).split())

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": pointwise.add, "sub": pointwise.sub, "mul": pointwise.mul, "truediv": pointwise.div,
    "floordiv": pointwise.floor_divide, "mod": pointwise.remainder, "pow": pointwise.pow,
    "and": pointwise.bitwise_and, "or": pointwise.bitwise_or, "xor": pointwise.bitwise_xor,
    "lshift": pointwise.bitwise_left_shift, "rshift": pointwise.bitwise_right_shift,
}  # fmt: skip


# Composed of ops whose gradients read what is overwritten.
_READ_LATER = (gamma_functions.mvlgamma, moments.renorm, scatter_reduce.index_reduce,
               scatter_reduce.scatter_reduce)  # fmt: skip


def twin(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Make the method that stores `function(self, ...)` in self."""
    copied = function in _READ_LATER
    names = names_of(function, skip=1)

    @not_cast
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if keywords:
            keywords = renamed(keywords, names)
        since = self._next_number()
        read = self.clone() if copied and self.requires_grad else self
        self._assign(function(read, *arguments, **keywords), since=since)
        return self

    call.__name__ = f"{name}_"
    call.__doc__ = f"""Write `{name}` of `self` and the arguments into `self`, and return it.

    Arguments are those of `{name}`. Shape and dtype of `self` stay: RuntimeError for a result of
    another shape, or of a dtype that does not cast to it. A leaf that requires gradients raises
    it, too.
    """
    return call


def _assignment(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make `self op= other`. For a value without memory Python makes it `self = self op other`."""
    def call(self: Any, other: Any) -> Any:
        known = isinstance(other, Operators) or is_number(other)
        if not known or not hasattr(self, "_assign"):
            return overriding.by_operand(call, self, other)
        since = self._next_number()
        self._assign(function(self, other), since=since)
        return self

    return call


for _function in FUNCTIONS:
    _name = getattr(_function, "name", None) or _function.__name__
    method(f"{_name}_")(twin(_function, _name))
for _name, _write in (("masked_fill_", expanded_writes.masked_fill_),
                      ("index_fill_", expanded_writes.index_fill_),
                      ("index_put_", indexing.put_shared)):  # fmt: skip
    method(_name)(expanded_writes.or_shared(getattr(Operators, _name), _write))
for _name, _function in ALIASES.items():
    method(f"{_name}_")(twin(_function, _name))
for _name, _binary in _OPERATORS.items():
    method(f"__i{_name}__")(_assignment(_binary))


@method()
def float_power_(self: Any, exponent: Any) -> Any:
    """Apply `float_power` in place: shape and dtype stay.

    RuntimeError unless `self` has the dtype of its result, float64 or complex128.

    >>> import tracejit
    >>> tracejit.tensor([3.0], dtype=tracejit.float64).float_power_(2).item()
    9.0
    """
    result = pointwise.float_power(self, exponent)
    if result.dtype is not self.dtype:
        names = [SCALAR_NAMES[x.dtype.name] for x in (self, result)]
        raise RuntimeError(f"the base given to float_power_ has dtype {names[0]} but the "
                           f"operation's result requires dtype {names[1]}")
    self._assign(result)
    return self


@method()
def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Write a number on the main diagonal; `wrap`: on those that follow in a tall matrix, too.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).fill_diagonal_(5).tolist()
    [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]]

    RuntimeError for fewer than two dimensions, and for more of different sizes.
    """
    rank = len(self.shape)
    if rank < 2:
        raise RuntimeError("dimensions must larger than 1")
    if rank > 2 and any(not equal(n, self.shape[0]) for n in self.shape):
        raise RuntimeError("all dimensions of input must be of equal length")
    if rank == 2 and wrap:
        rows, columns = self.shape
        for start in range(0, int(rows), int(columns) + 1):
            self[start:start + int(columns)].diagonal().fill_(fill_value)
        return self
    view = self
    while len(view.shape) > 1:
        view = view.diagonal(0, 0, len(view.shape) - 1 if view is not self else 1)
    view.fill_(fill_value)
    return self
