"""Ops on lists of tensors, for optimizers written for PyTorch: `torch._foreach_add` and the others.

In: lists or tuples of tensors. Another operand is a number, a number for each, a list of tensors of
the same length or, where PyTorch takes one, a 0-dim tensor. Out: a tuple of new tensors; names that
end in an underscore write the first list and return it. Each is the op on one tensor after the
other; the compiler fuses similar ones. The package has them under PyTorch's names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops.pointwise_record import is_number, is_tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
# name -> method; bounds may be numbers or tensors
_BINARY = {
    "div": "div", "mul": "mul", "clamp_max": "clamp_max", "clamp_min": "clamp_min",
    "maximum": "clamp_min", "minimum": "clamp_max",
}  # fmt: skip
_SCALED = ("add", "sub")
# Keywords under which operands arrive, in the order of operands.
_OPERANDS = ("other", "scalar", "tensors1", "tensor1", "tensor2", "exponent", "weight", "weights",
             "scalars")
_TERNARY = ("addcdiv", "addcmul")


def _checked(self: Any, name: str) -> Sequence[Any]:
    """Return the list; TypeError for what is no list of tensors, RuntimeError for an empty one."""
    if not isinstance(self, (list, tuple)):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not "
                        f"{type(self).__name__}")
    for k, x in enumerate(self):
        if not is_tensor(x):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got "
                            f"{type(x).__name__}")
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return self


def _each(operand: Any, count: int) -> Sequence[Any]:
    """Return an operand for each of the tensors."""
    if not isinstance(operand, (list, tuple)):
        if is_tensor(operand) and operand.shape:
            raise RuntimeError(f"scalar tensor expected to be 0 dim but it has "
                               f"{len(operand.shape)} dimensions and {operand.numel()} elements.")
        return [operand] * count
    if len(operand) != count:
        if operand and is_number(operand[0]):
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        raise RuntimeError("Tensor lists must have the same number of tensors, got "
                           f"{count} and {len(operand)}")
    return operand


def _factors(value: Any, count: int) -> Sequence[Any]:
    """Return the factors of the quotients of addcdiv, or of the products of addcmul."""
    if is_tensor(value) and value.shape:
        if int(value.shape[0]) != count:
            raise RuntimeError(f"Expected length of scalars to match input of length {count} but "
                               f"got {int(value.shape[0])} instead.")
        return [value[k] for k in range(count)]
    return _each(value, count)


def _pair(name: str, compute: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Make `_foreach_<name>`, a tuple of results, and its twin, which writes them to the first
    list.

    compute  (method suffix, the list, further arguments) -> results
    """

    def run(suffix: str, self: Any, args: tuple, options: dict[str, Any]) -> Any:
        named = [options.pop(word) for word in _OPERANDS if word in options]
        return compute(suffix, _checked(self, f"_foreach_{name}{suffix}"), *args, *named, **options)

    def new(self: Any, *args: Any, **options: Any) -> tuple:
        return tuple(run("", self, args, options))

    def in_place(self: Any, *args: Any, **options: Any) -> Any:
        run("_", self, args, options)
        return self

    new.__name__, in_place.__name__ = f"_foreach_{name}", f"_foreach_{name}_"
    new.__doc__ = f"`{name}` of each tensor of a list."
    in_place.__doc__ = f"`{name}_` of each tensor of a list, which is returned."
    return {new.__name__: new, in_place.__name__: in_place}


def _unary(method: str) -> Callable[..., Any]:
    return lambda suffix, self: [getattr(x, method + suffix)() for x in self]


def _binary(method: str) -> Callable[..., Any]:
    def compute(suffix: str, self: Sequence[Any], other: Any) -> list:
        pairs = zip(self, _each(other, len(self)))
        return [getattr(x, method + suffix)(y) for x, y in pairs]

    return compute


def _scaled(method: str) -> Callable[..., Any]:
    def compute(suffix: str, self: Sequence[Any], other: Any, *, alpha: Any = 1) -> list:
        pairs = zip(self, _each(other, len(self)))
        return [getattr(x, method + suffix)(y, alpha=alpha) for x, y in pairs]

    return compute


def _ternary(method: str) -> Callable[..., Any]:
    def compute(suffix: str, self: Sequence[Any], tensor1: Any, tensor2: Any,
                value: Any = 1) -> list:
        factors = _factors(value, len(self))
        rows = zip(self, _each(tensor1, len(self)), _each(tensor2, len(self)), factors)
        return [_with_value(getattr(x, method + suffix), a, b, v) for x, a, b, v in rows]

    return compute


def _with_value(function: Callable[..., Any], a: Any, b: Any, value: Any) -> Any:
    held = is_tensor(value) and not getattr(value, "is_weak", False)
    return function(a, b, value=value.item() if held else value)


def _lerp(suffix: str, self: Sequence[Any], tensors1: Any, weight: Any) -> list:
    rows = zip(self, _each(tensors1, len(self)), _each(weight, len(self)))
    return [getattr(x, "lerp" + suffix)(y, w) for x, y, w in rows]


def _pow(suffix: str, self: Sequence[Any], exponent: Any) -> list:
    pairs = zip(self, _each(exponent, len(self)))
    return [getattr(x, "pow" + suffix)(y) for x, y in pairs]


def _foreach_pow(self: Any, exponent: Any) -> tuple:
    """Raise each tensor of a list to a power, or one number to each of a list of exponents."""
    if is_number(self):
        return tuple(self**x for x in _checked(exponent, "_foreach_pow"))
    return tuple(_pow("", _checked(self, "_foreach_pow"), exponent))


def _foreach_zero_(self: Any) -> Any:
    """Write zeros to each tensor of a list, which is returned."""
    for x in _checked(self, "_foreach_zero_"):
        x.zero_()
    return self


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy each tensor of `src` to that of the list, which is returned."""
    for x, y in zip(_checked(self, "_foreach_copy_"), _each(src, len(self))):
        x.copy_(y, non_blocking)
    return self


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple:
    """Copy the tensors of a list."""
    return tuple(x.clone() for x in _checked(self, "_foreach_clone"))


def _foreach_max(self: Any) -> tuple:
    """Return the largest element of each tensor of a list."""
    return tuple(x.max() for x in _checked(self, "_foreach_max"))


def _foreach_mm(self: Any, other: Any) -> tuple:
    """Multiply the matrices of two lists."""
    pairs = zip(_checked(self, "_foreach_mm"), _each(other, len(self)))
    return tuple(x.mm(y) for x, y in pairs)


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple:
    """Return the vector norms of the tensors of a list.

    >>> import tracejit
    >>> tracejit._foreach_norm([tracejit.tensor([3.0, 4.0]), tracejit.ones(4)])
    (tensor(5.), tensor(2.))
    """
    found = (x if dtype is None else x.to(dtype) for x in _checked(self, "_foreach_norm"))
    return tuple(x.norm(ord) for x in found)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple:
    """Sum the powers of the magnitudes, for each tensor of a list."""
    found = (x if dtype is None else x.to(dtype) for x in _checked(self, "_foreach_powsum"))
    return tuple(x.abs().pow(ord).sum() for x in found)


def functions() -> dict[str, Callable[..., Any]]:
    """Return all of them under PyTorch's names: `{"_foreach_add": ..., "_foreach_add_": ...}`."""
    made = _pair("lerp", _lerp) | _pair("pow", _pow)
    for names, compute in ((_UNARY, _unary), (_SCALED, _scaled), (_TERNARY, _ternary)):
        for name in names:
            made |= _pair(name, compute(name))
    for name, method in _BINARY.items():
        made |= _pair(name, _binary(method))
    others = (_foreach_pow, _foreach_zero_, _foreach_copy_, _foreach_clone, _foreach_max,
              _foreach_mm, _foreach_norm, _foreach_powsum)
    return made | {function.__name__: function for function in others}
