"""One op on each tensor of a list: PyTorch's `torch._foreach_add` and its kin, of optimizers.

In: a list of tensors, and for each other operand one for all of them or a list with one for each.
Out: a tuple of results, or the list that was written. Each is what the method of that name does:
nothing is computed in another order, and a captured step fuses the updates as it fuses any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# What each is called after `_foreach_`; these also have a twin that writes.
OF_ONE = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
OF_SEVERAL = ("add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "lerp", "addcmul",
              "addcdiv")
# The larger of two, whether the other is a tensor or a number, is clamp_min.
AS_CLAMP = {"maximum": "clamp_min", "minimum": "clamp_max"}
READING = {"norm": "norm", "max": "max", "clone": "clone"}
WRITING = {"copy_": "copy_", "zero_": "zero_"}
# Keywords under which operands arrive, in the order of operands.
OPERANDS = ("other", "tensors1", "tensor1", "tensor2", "exponent", "scalar", "scalars", "weight",
            "weights", "value", "src", "ord")


def _column(operand: Any, count: int) -> list[Any]:
    """What an operand is for each tensor."""
    if not isinstance(operand, (list, tuple)):
        return [operand] * count
    if len(operand) != count:
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and "
                           f"{len(operand)}")
    return list(operand)


def over_lists(method: str) -> Callable[..., list[Any]]:
    """A function of a list of tensors that calls a method of each.

    >>> import tracejit
    >>> x = tracejit.ones(2)
    >>> over_lists("add")([x, x], [1, x], alpha=2)
    [tensor([3., 3.]), tensor([3., 3.])]

    RuntimeError for no tensors, and for lists of different lengths.
    """
    scaled = method.rstrip("_") in ("addcmul", "addcdiv")

    def each(tensors: Sequence[Any], *operands: Any, **options: Any) -> list[Any]:
        if not len(tensors):
            raise RuntimeError("Tensor list must have at least one tensor.")
        named = [options.pop(name) for name in OPERANDS if name in options]
        columns = [_column(operand, len(tensors)) for operand in (*operands, *named)]
        results = []
        for x, *rest in zip(tensors, *columns):
            if scaled and len(rest) == 3:
                results.append(getattr(x, method)(*rest[:2], value=rest[2], **options))
            else:
                results.append(getattr(x, method)(*rest, **options))
        return results

    return each


def _reading(name: str, method: str) -> Callable[..., tuple[Any, ...]]:
    each = over_lists(method)

    def foreach(self: Any, *operands: Any, **options: Any) -> tuple[Any, ...]:
        if name == "pow" and not isinstance(self, (list, tuple)):  # one base, many exponents
            return tuple(self ** exponent for exponent in operands[0])
        return tuple(each(self, *operands, **options))

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__doc__ = f"A tuple of what `{method}` gives for each tensor of a list."
    return foreach


def _writing(name: str, method: str) -> Callable[..., Any]:
    each = over_lists(method)

    def foreach(self: Any, *operands: Any, **options: Any) -> Any:
        each(self, *operands, **options)
        return self

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__doc__ = f"Each tensor of a list written by its `{method}`; the list."
    return foreach


def functions() -> dict[str, Callable[..., Any]]:
    """All of them under PyTorch's names: `{"_foreach_add": ..., "_foreach_add_": ...}`."""
    methods = {name: name for name in (*OF_ONE, *OF_SEVERAL)} | AS_CLAMP
    made = [_reading(name, method) for name, method in (methods | READING).items()]
    twins = {f"{name}_": f"{method}_" for name, method in methods.items()}
    made += [_writing(name, method) for name, method in (twins | WRITING).items()]
    return {function.__name__: function for function in made}
