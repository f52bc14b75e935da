"""Operator class that Tensor, graph Values and rewrite patterns share: each method is spelled once.

In: `method(function)` calls from the op families, which hang each function on the class under its
name. Out: `Operators`, a mixin with PyTorch's operators and methods, each a call of the op of that
name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tracejit.core.ops import overriding
from tracejit.core.ops.numpy_names import PYTHON_METHODS, names_of, taking

F = TypeVar("F", bound=Callable[..., Any])


class Operators:
    """PyTorch's tensor operators and methods; the op families fill it in."""

    __slots__ = ()
    __array_priority__ = 1000  # numpy_array * tensor asks the tensor


def method(*names: str) -> Callable[[F], F]:
    """Decorate a function as a method of `Operators`, under its own name or under `names`."""

    def attach(function: F) -> F:
        for name in names or (getattr(function, "name", None) or function.__name__,):
            setattr(Operators, name, _as_method(function, name))
        return function

    return attach


def _as_method(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if not callable(getattr(function, "__get__", None)):
        return _bound(function)
    if name in _WITH_TENSORS:
        function = overriding.answering(function)
    if name.startswith("__") or name in PYTHON_METHODS or not inspect.isfunction(function):
        return function
    return taking(function, names_of(function, skip=1))


# Methods with a further argument that may be a tensor; no decorator wraps them.
_WITH_TENSORS = frozenset("""__setitem__ masked_select masked_fill outer
float_power diagonal_scatter as_strided_scatter ger take view_as expand_as type_as put
masked_scatter bincount sparse_mask lu_solve orgqr resize_as_ repeat_interleave""".split())


def _bound(record: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a record so that it binds as a method: it is callable but not a descriptor."""

    def call(self: Any, *operands: Any, **attributes: Any) -> Any:
        try:
            return record(self, *operands, **attributes)
        except Exception:
            return overriding.instead(call, (self, *operands), attributes)

    call.__name__, call.__doc__ = getattr(record, "name", "call"), record.__doc__
    return call


def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `other - self` for `__rsub__`, from the function of (left, right)."""

    def call(self: Any, other: Any) -> Any:
        return function(other, self)

    return call
