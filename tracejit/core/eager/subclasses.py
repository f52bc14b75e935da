"""Subclasses of `Tensor`: their default `__torch_function__`, and how results keep the class.

In: a function that was called with an object of such a class. Out: the function's results as
objects of the class. Called by `core/ops/overriding.py`, and by classes through `super()`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState
from tracejit.core.ops import gates, overriding

_UNCHANGED = ("_base", "grad", "_grad")


@classmethod  # type: ignore[misc]
def torch_function(cls: Any, func: Any, types: Any, args: tuple = (),
                   kwargs: dict | None = None) -> Any:
    """Run a function, and return its results as objects of this class.

    Return NotImplemented if a class among `types` is not a base of this one.

    >>> import tracejit
    >>> class Named(tracejit.Tensor): pass
    >>> type(Named.__torch_function__(tracejit.neg, (), (tracejit.ones(1),))).__name__
    'Named'
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with overriding.asked(classes=False):
        result = func(*args, **(kwargs or {}))
        return result if _stays(func) else converted(result, cls)


def _stays(func: Any) -> bool:
    """Return True for getters of tensors that exist already, which keep their class."""
    owner = getattr(func, "__self__", None)
    return isinstance(owner, property) and any(owner is found for found in _exempt())


def _exempt() -> list[Any]:
    kind = overriding.tensor_class()
    return [getattr(kind, name) for name in _UNCHANGED]


def exempt_getters() -> set[Any]:
    """Return the getters whose results keep their class."""
    return {found.__get__ for found in _exempt()}


def converted(result: Any, cls: type) -> Any:
    """Convert a result, or the tensors in a list or tuple of results, to objects of a class."""
    if cls is overriding.tensor_class():
        return result
    if isinstance(result, TensorState):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and any(isinstance(x, TensorState) for x in result):
        parts = [converted(x, cls) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def watch(cls: type) -> None:
    """Raise the gates for a new class of tensors, unless it overrides nothing."""
    if overriding.carries(cls):
        overriding.stand_gates()


def keeps_class(cls: type) -> bool:
    """Return True if functions run as they are, and their results are objects of this class.

    >>> import tracejit
    >>> class Named(tracejit.Tensor): pass
    >>> keeps_class(Named), keeps_class(tracejit.nn.Parameter)
    (True, False)
    """
    return overriding.handler_of(cls) is _own


def kept_class(cls: type) -> type | None:
    """Return the class of results for tensors of a class; None if its own code decides that.

    >>> import tracejit
    >>> kept_class(tracejit.nn.Parameter).__name__
    'Tensor'
    """
    if keeps_class(cls):
        return cls
    return None if overriding.carries(cls) else overriding.tensor_class()


def of_class(tensor: Any, cls: Any) -> Any:
    """Change the class of a tensor that nobody else has seen; no code of the class runs.

    >>> import tracejit
    >>> class Named(tracejit.Tensor): pass
    >>> type(of_class(tracejit.ones(1), Named)).__name__
    'Named'
    """
    if type(tensor) is not cls:
        object.__setattr__(tensor, "__class__", cls)
    return tensor


def _tell(found: list[Any]) -> None:
    """Add a break: a class or mode handles a call by its own code, which no replay runs."""
    tracer = active.tracer
    if tracer is None or tracer.mapped:
        return
    if overriding.asking.modes or not all(keeps_class(type(x)) for x in found):
        tracer.add_break(f"the function runs the {overriding.PROTOCOL} of a class or mode")  # type: ignore[attr-defined]


_own = torch_function


gates.install_told(_tell)
