"""Attributes of objects that stand for Python numbers and texts while a call is recorded.

In: reads and writes of attributes. Out: for tracejit's code what the stand-in has; for all other
code what the plain number or text has, and Python's own error where that has no such attribute. A
stand-in has a `shape`, a `dtype` and a `value`, and the user's code must not find them:
`hasattr(x, "shape")` tells tensors from numbers in many programs. Called by Python itself.
"""

from __future__ import annotations

from sys import _getframe
from typing import Any

from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.ir.named_in_code import is_named_in

_get, _set, _delete = object.__getattribute__, object.__setattr__, object.__delattr__
# Special attributes that no plain number or text has. C code asks for the first three.
_FOR_C_CODE = {"__array__", "__array_ufunc__", "__complex__"}
_NEVER_SHOWN = {"__dict__", "__weakref__"}


class PlainAttributes:
    """Base of stand-ins: `kind` is the plain class, `concretize` gives the plain object."""

    kind: type = object

    def concretize(self) -> Any:
        """Return the plain object; the program now depends on its value."""
        raise NotImplementedError

    def __getattribute__(self, name: str) -> Any:
        code = _getframe(1).f_code
        if is_internal_code(code):
            return _get(self, name)
        if name[:2] == "__":
            if name in _NEVER_SHOWN or name in _FOR_C_CODE and is_named_in(code, name):
                return getattr(self.kind(), name)
            return _get(self, name)
        if not hasattr(self.kind, name):
            return getattr(self.kind(), name)  # raises Python's own error
        return getattr(self.concretize(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        internal = is_internal_code(_getframe(1).f_code)
        _set(self if internal else self.kind(), name, value)

    def __delattr__(self, name: str) -> None:
        internal = is_internal_code(_getframe(1).f_code)
        _delete(self if internal else self.kind(), name)

    def __dir__(self) -> list[str]:
        return dir(self.kind())
