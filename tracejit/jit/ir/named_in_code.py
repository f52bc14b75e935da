"""Names that code itself says.

In: a code object and an attribute's name. Out: True if that code asks for the attribute by name,
False if C code that it calls does. Called by what stands for Python numbers: NumPy asks them for
`__array__`, and the user's `hasattr(x, "__array__")` must be False.
"""

from __future__ import annotations

from sys import _getframe
from types import CodeType, MethodType
from typing import Any


def is_named_in(code: CodeType, name: str) -> bool:
    """Return True if code says a name, as a text or behind a dot.

    >>> is_named_in((lambda x: hasattr(x, "__array__")).__code__, "__array__")
    True
    >>> is_named_in((lambda x, np: np.asarray(x)).__code__, "__array__")
    False
    """
    return name in code.co_names or name in code.co_consts


class ForCCode:
    """Decorator for methods of symbolic sizes that C code finds; code that names them does not."""

    def __init__(self, method: Any):
        self.method = method

    def __get__(self, size: Any, owner: type | None = None) -> Any:
        if size is None:
            return self.method
        name = self.method.__name__
        if is_named_in(_getframe(1).f_code, name):
            raise AttributeError(f"'int' object has no attribute '{name}'")
        return MethodType(self.method, size)
