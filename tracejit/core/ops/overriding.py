"""PyTorch's `__torch_function__` protocol: classes that override functions of tensors.

In: a function and the arguments of a call. Out: the answer of the first class, or mode, that gives
one. Called by `core/ops/gates.py`, which stands before the public functions as soon as there is a
class or a mode to ask, and by `tracejit.overrides`. Until then calls pay nothing. The library finds
a class where a function fails on its object, or when a class of tensors is made.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

PROTOCOL = "__torch_function__"
# Classes that have no say; tensors and parameters are added when they are made.
PLAIN: set[type] = {bool, int, float, complex, str, bytes, type(None), slice, type(Ellipsis), dict}

# Rooms whose own calls are inside of functions, where PyTorch has no Python.
_INSIDE = tuple(f"tracejit.{room}." for room in ("core", "jit", "saving", "debug"))
# Of these, modules whose functions stand in a captured function's text for the user's own calls.
_STAND_FOR_CALLS = frozenset(f"tracejit.jit.capture.{name}" for name in (
    "calls", "container_calls", "control", "host_calls", "memoized_calls", "plain_arguments"))


class _Asking(threading.local):
    """Classes and modes that are asked in this thread."""

    classes: bool = True
    modes: tuple = ()  # the innermost last


asking = _Asking()


def inside(frame: Any) -> bool:
    """Return True if a frame is the library's own, where PyTorch has no Python."""
    name = frame.f_globals.get("__name__", "")
    return name.startswith(_INSIDE) and name not in _STAND_FOR_CALLS


def disabled(func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """Run the function: the `__torch_function__` of a class of tensors that replaces no function.

    >>> import tracejit
    >>> disabled(tracejit.neg, (), (tracejit.ones(1),))
    tensor([-1.])
    """
    with asked(classes=False):
        return func(*args, **(kwargs or {}))


def handler_of(kind: type) -> Any:
    """Return what a class has as `__torch_function__`, without running code of the class."""
    for base in type.__getattribute__(kind, "__mro__"):
        found = type.__getattribute__(base, "__dict__").get(PROTOCOL)
        if found is not None:
            return found
    return None


def carries(kind: type) -> bool:
    """Return True if functions ask this class."""
    if kind in PLAIN:
        return False
    found = handler_of(kind)
    return found is not None and getattr(found, "__func__", found) is not disabled


@contextmanager
def asked(classes: bool | None = None, modes: tuple | None = None) -> Iterator[None]:
    """Set who is asked within a block."""
    before = asking.classes, asking.modes
    if classes is not None:
        asking.classes = classes
    if modes is not None:
        asking.modes = modes
    try:
        yield
    finally:
        asking.classes, asking.modes = before


def carriers(arguments: Iterable[Any], also: type | None = None) -> list[Any]:
    """Return one object of each class that is asked: subclasses first, else from left to right.

    also    a class to count though it replaces nothing: that of all tensors
    """
    found: list[Any] = []
    for x in arguments:
        if issubclass(type(x), (tuple, list)):
            for y in _inside_of(x):
                _add(y, found, also)
        else:
            _add(x, found, also)
    return found


def _add(x: Any, found: list[Any], also: type | None) -> None:
    kind = type(x)
    if kind is not also and not carries(kind):
        return
    if any(type(y) is kind for y in found):
        return
    place = next((k for k, y in enumerate(found) if issubclass(kind, type(y))), len(found))
    found.insert(place, x)


def _inside_of(x: Any) -> Iterator[Any]:
    """Yield the elements of a list or tuple, without running code of a class derived from them."""
    return list.__iter__(x) if issubclass(type(x), list) else tuple.__iter__(x)


def has_carrier(arguments: Iterable[Any]) -> bool:
    """Return True if an argument, or an element of a list or tuple, is of a class to ask."""
    for x in arguments:
        kind = type(x)
        if kind in PLAIN:
            continue
        if issubclass(kind, (tuple, list)):
            if any(carries(type(y)) for y in _inside_of(x)):
                return True
        elif carries(kind):
            return True
    return False


def ask(function: Any, found: list[Any], arguments: tuple, named: dict | None) -> Any:
    """Return the answer of the innermost mode or else of the first class that gives one;
    NotImplemented if nothing does."""
    types = tuple([type(x) for x in found])
    if asking.modes:
        *outer, mode = asking.modes
        with asked(modes=tuple(outer)):
            answer = mode.__torch_function__(function, types, arguments, named or {})
        if answer is not NotImplemented:
            return answer
    for x in found:
        handler = getattr(x, PROTOCOL)
        if getattr(handler, "__self__", None) is x:
            warnings.warn(f"Defining your `{PROTOCOL}` as a plain method is deprecated and will be "
                          "an error in future, please define it as a classmethod.",
                          DeprecationWarning, stacklevel=4)
        answer = handler(function, types, arguments, named)
        if answer is not NotImplemented:
            return answer
    return NotImplemented


_tensor: list[type] = []


def install_tensor(kind: type) -> None:
    """Set the class of all tensors. Objects of exactly that class have no say."""
    _tensor[:] = [kind]
    PLAIN.add(kind)


def tensor_class() -> type:
    """Return the class of all tensors."""
    return _tensor[0]


# -- the first object of such a class --------------------------------------------------------------
gates: dict[Any, Any] = {}  # public function -> its gate, once gates stand
_raise: list[Callable[[], None]] = []


def install(raise_gates: Callable[[], None]) -> None:
    """Set `raise_gates`, which puts gates before the public functions."""
    _raise[:] = [raise_gates]


def stand_gates() -> None:
    """Put gates before all public functions: from now on classes and modes are asked."""
    while _raise:
        _raise.pop()()


def instead(function: Any, arguments: tuple, named: dict) -> Any:
    """Return the answer of the arguments' classes to a public function that failed.

    The caller's error goes on if there is no class to ask.
    """
    gate = None
    if not gates and not inside(sys._getframe(2)) and has_carrier((*arguments, *named.values())):
        stand_gates()
        gate = gates.get(function)
    if gate is None:
        caller = sys._getframe(2)
        while caller.f_code.co_filename.endswith(_OF_GATES) and caller.f_back is not None:
            caller = caller.f_back
        refusal = None if inside(caller) else _no_tensor(function, arguments)
        if refusal is not None:
            raise TypeError(refusal) from None
        raise  # noqa: PLE0704 - what the caller caught goes on
    return gate.answer(arguments, named)


_OF_GATES = ("gates.py", "overridable.py")  # between a function and who called it
_NOT_A_NUMBER = ("expected a number, got ", "result_type: expected", "unsupported operand type")


def _no_tensor(function: Any, arguments: tuple) -> str | None:
    """Return PyTorch's error for a first argument that is no tensor, if that is why a call failed.

    Functions do not look at each argument first; they fail where they use it.
    """
    error = sys.exc_info()[1]
    x = arguments[0] if arguments else None
    if not arguments or hasattr(type(x), "dispatch"):
        return None
    if isinstance(error, AttributeError):
        failed = error.obj is x or type(x).__module__ == "numpy"
    else:
        failed = isinstance(error, TypeError) and (
            str(error).startswith(_NOT_A_NUMBER) or "at least one tensor among" in str(error))
    if not failed or _first_operand(function) != "input":
        return None
    kind = "numpy." * (type(x).__module__ == "numpy") + type(x).__name__
    return f"{function.__name__}(): argument 'input' (position 1) must be Tensor, not {kind}"


def _first_operand(function: Any) -> str:
    operands = getattr(function, "operands", None)
    if operands is None:
        code = getattr(inspect.unwrap(function), "__code__", None)
        operands = code.co_varnames[:code.co_argcount] if code is not None else ()
    return operands[0] if operands else ""


def by_operand(method: Any, left: Any, right: Any) -> Any:
    """Return the answer of the right operand's class to an operator that does not know it.

    NotImplemented if there is none.
    """
    if gates or not carries(type(right)) or inside(sys._getframe(2)):
        return NotImplemented
    stand_gates()
    gate = gates.get(method)
    return NotImplemented if gate is None else gate.answer((left, right), {})


def answering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function: it asks the classes of its arguments where it fails on them."""
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception:
            return instead(call, arguments, named)

    return call


_answering_at: dict[Any, Any] = {}  # function -> its wrapper, the same at all places


def _everywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper of a function, the same object wherever the function is found."""
    if function not in _answering_at:
        _answering_at[function] = answering(function)
    found: Callable[..., Any] = _answering_at[function]
    return found


def answering_all(room: dict[str, Any]) -> dict[str, Any]:
    """Wrap the functions of a module: they ask the classes of their arguments where they fail.

    Functions that a decorator wraps do so already.
    """
    return {name: _everywhere(f) for name, f in room.items()
            if type(f) is FunctionType and not name.startswith("_") and f.__code__.co_argcount
            and "instead" not in f.__code__.co_names
            and f.__module__.startswith("tracejit.core.ops.")}
