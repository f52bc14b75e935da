"""Objects that note each special method that anybody calls on them or their class.

In: a `jit`. Out: a `jit` whose functions are given a spy, close over one, read one from a global,
make one and return them all; `Log.calls` has what was called, and from where. Called by
`test_looking.py`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from types import FunctionType

_UNARY = (
    "abs aenter aexit aiter anext bool bytes ceil complex copy dir enter exit float floor hash "
    "index int invert iter len length_hint neg next pos repr reversed round str sizeof trunc "
    "reduce getstate getnewargs await fspath").split()
_OTHERS = (
    "add and contains delattr delete delitem divmod eq floordiv format ge get getattr "
    "getattribute getitem gt iadd iand ifloordiv imod imul ior isub itruediv le lshift lt matmul "
    "missing mod mul ne or pow radd rand rmul ror rpow rshift rsub rtruediv rxor set set_name "
    "setattr setitem sub truediv xor array array_function array_priority array_ufunc "
    "reduce_ex copy_ deepcopy instancecheck subclasscheck call index_ torch_function").split()
_OF_CLASSES = "getattribute eq hash bool len iter dir repr instancecheck subclasscheck".split()


class Log:
    """What was called on spies: (name, file and line of the caller)."""

    calls: list[tuple[str, str]] = []

    @classmethod
    def note(cls, name):
        frame = sys._getframe(2)
        cls.calls.append((name, f"{frame.f_code.co_filename}:{frame.f_lineno}"))


def _special(name, base):
    usual = getattr(base, name, None)

    def method(self, *args, **keywords):
        Log.note(name)
        if usual is None:
            raise AttributeError(name) if "getattr" in name else TypeError(name)
        return usual(self, *args, **keywords)

    return method


def _names(base, words):
    found = [f"__{word.strip('_')}__" for word in words]
    if base is object:  # of its own kind these are nothing but what every object has
        return found
    return [name for name in found if name == "__getattr__" or hasattr(base, name)]


class Meta(type):
    """A class whose own special methods are noted."""


for _name in _names(type, _OF_CLASSES):
    setattr(Meta, _name, _special(_name, type))


def spy_class(name, base=object, **more):
    """A class derived from `base` that notes all; `more` is put into the class."""
    body = {special: _special(special, base) for special in _names(base, (*_UNARY, *_OTHERS))}
    body["__class__"] = property(lambda self: Log.note("__class__") or base)
    if "__slots__" not in more:
        body["__dict__"] = property(lambda self: Log.note("__dict__") or {})
    return type.__call__(Meta, name, (base,), body | more)


Thing = spy_class("Thing")
Slotted = spy_class("Slotted", __slots__=("filled", "empty"))
Listed = spy_class("Listed", list)
Mapped = spy_class("Mapped", dict)
Paired = spy_class("Paired", tuple)
Whole = spy_class("Whole", int)
Text = spy_class("Text", str)
CLASSES = (Thing, Slotted, Listed, Mapped, Paired, Whole, Text)
KEPT: list = [None]


class Owner:
    """Holds a spy, and is given one by each call."""

    def __init__(self, held):
        self.held, self.last = held, None


def _first(*arguments):
    return arguments[0]


def spying(jit, cls):
    """A `jit` whose functions meet spies of a class wherever capture looks."""

    def capture(fn=None, **options):
        if type(fn) is not FunctionType:
            return jit(fn, **options) if fn is not None else functools.partial(capture, **options)
        before = list(Log.calls)
        closed = KEPT[0] = type.__call__(cls)
        owner, keyed = Owner(type.__call__(cls)), {}
        with contextlib.suppress(TypeError):  # it has no hash
            keyed[closed] = 1
        bound = functools.partial(_first, closed)
        Log.calls[:] = before  # a dict asks its keys

        def watched(given, *args, default=closed, **keywords):
            held = closed, KEPT[0], [given], {"a": closed}, owner.held, keyed, bound, default
            owner.last = given
            return fn(*args, **keywords), given, held

        captured = jit(watched, **options)

        @functools.wraps(fn)
        def call(*args, **keywords):
            return captured(type.__call__(cls), *args, **keywords)[0]

        return call

    return capture
