"""Names of TorchScript that programs still carry. Here they mark nothing, or answer no.

In: functions and classes to be marked. Out: the same ones. Reached as `tracejit.jit.ignore` and so
on: capture reads plain Python and needs no marks.
"""

from collections.abc import Callable
from typing import Any, Final

__all__ = [
    "Attribute", "Final", "annotate", "export", "ignore", "interface",
    "is_scripting", "is_tracing", "script_method", "unused",
]  # fmt: skip

def is_scripting() -> bool:
    """Return False: TorchScript never compiles this code."""
    return False


def is_tracing() -> bool:
    """Return False: TorchScript never traces this code."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value.

    >>> annotate(int, 3)
    3
    """
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """Return the value; its type is not needed."""
    return value


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark nothing; used as `@ignore` or `@ignore(drop=True)`."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark nothing."""
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark nothing."""
    return fn


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark nothing: `script` compiles the module that has the method."""
    return fn


def interface(obj: type) -> type:
    """Mark nothing."""
    return obj


def _overload(func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark nothing: the last definition of a name counts."""
    return func


_overload_method = _overload
