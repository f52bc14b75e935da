"""PyTorch's ops by their inner names; `torch.ops.aten`.

In: names like `add.Tensor`. Out: marks that are equal to themselves and can be keys of tables, and
that call the function or the method of that name.
"""

from __future__ import annotations

import sys
from typing import Any


class Overload:
    """Form of an op, or the op with all its forms."""

    def __init__(self, name: str, form: str = "") -> None:
        self._op, self._form = name, form
        self.__name__ = f"{name}.{form}" if form else name
        self.__qualname__, self.__module__ = self.__name__, "tracejit.core.ops.inner_names"

    def __getattr__(self, form: str) -> Overload:
        if form.startswith("__") or self._form:
            raise AttributeError(f"{self!r} has no attribute {form!r}")
        found = self.__dict__[form] = Overload(self._op, form)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tracejit = sys.modules["tracejit"]
        for place in (tracejit, tracejit.nn.functional, tracejit.Tensor):
            called = getattr(place, self._op, None)
            if called is not None:
                return called(*args, **kwargs)
        raise NotImplementedError(f"{self!r} has no function or method of its name here")

    def __repr__(self) -> str:
        return f"aten.{self.__name__}"


class _Namespace:
    """Ops by name; there is a mark for each.

    >>> import tracejit
    >>> {tracejit.ops.aten.add.Tensor: 1}[tracejit.ops.aten.add.Tensor]
    1
    >>> tracejit.ops.aten.add.Tensor(tracejit.ones(1), 2)
    tensor([3.])
    """

    def __getattr__(self, name: str) -> Overload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = Overload(name)
        return found


aten = _Namespace()
