"""Compiled modules: a second object over a module's own state, whose `forward` is compiled.

In: a module, and a function that compiles functions. Out: an instance of a subclass of the module's
class that has the module's `__dict__`. Called by `jit.script` and `jit.trace`.

Attributes, parameters, buffers, hooks and modes set through either object are seen through both.
Every other method runs as it is.

Each call looks up `forward` on the module: if it was replaced, on the module or on its class, the
new one is compiled. `forward` runs with the module itself as `self`, so its own type is what it is
uncompiled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any

from tracejit.core.eager.recording import active


class Forward:
    """Attribute `forward` of a compiled module. A data descriptor: it comes before the instance's
    own."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return owner._scripted_class.forward  # type: ignore[union-attr]
        module = instance._scripted_original
        if active.tracer is not None:  # inside a recording `forward` is part of the outer program
            return module.forward
        own = module.__dict__.get("forward")
        plain = type(module).forward if own is None else own
        known, compiled = instance._scripted_forward
        if known is plain or known == plain:
            return compiled
        return _compile(instance, module, plain)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__["forward"] = value

    def __delete__(self, instance: Any) -> None:
        if instance.__dict__.pop("forward", None) is None:
            raise AttributeError("forward")


class ScriptedModule:
    """Base that compiled modules have beside their own class. Their slots:

    _scripted_original  the module
    _scripted_forward   its `forward` when it was compiled, and the compiled form
    _scripted_compile   function that makes the compiled form
    _scripted_again     (function, argument): `function(module, argument)` compiles a copy
    """

    __slots__ = ()
    _scripted_class: type

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._scripted_class(*args, **kwargs)  # `type(self)(...)` makes an ordinary module

    def __init_subclass__(cls) -> None:
        """Do nothing: the user's `__init_subclass__` must not see a class that only the package
        makes."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._scripted_original)  # type: ignore[attr-defined]

    @property
    def _orig_mod(self) -> Any:
        """Module behind the compiled one. Programs read it so from the result of
        `torch.compile`."""
        return self._scripted_original  # type: ignore[attr-defined]

    @property
    def dynamo_ctx(self) -> Any:
        """Compiled form of `forward`. Programs look for the attribute to see that `torch.compile`
        made the module."""
        return self.forward  # type: ignore[attr-defined]

    def __copy__(self) -> Any:
        return _again(self, copy.copy(self._scripted_original))  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict) -> Any:
        module = copy.deepcopy(self._scripted_original, memo)  # type: ignore[attr-defined]
        return memo[id(self)] if id(self) in memo else _again(self, module)

    def __reduce_ex__(self, protocol: Any) -> Any:
        function, argument = self._scripted_again  # type: ignore[attr-defined]
        return function, (self._scripted_original, argument)  # type: ignore[attr-defined]

    def _tj_compiled_forward(self) -> Any:
        return self.forward  # type: ignore[attr-defined]


_SLOTS = ("_scripted_original", "_scripted_forward", "_scripted_compile", "_scripted_again")


def scripted_module(
    module: Any,
    compile: Callable[[Any], Any],
    again: tuple[Callable[[Any, Any], Any], Any],
) -> Any:
    """Make an object over a module's state whose `forward` is compiled.

    compile  makes the compiled form of a bound method
    again    (function, argument): `function(copy, argument)` compiles a copy

    >>> import tracejit
    >>> net = tracejit.nn.Linear(2, 3)
    >>> compiled = scripted_module(net, tracejit.script, (lambda m, _: m, None))
    >>> net.scale = 2
    >>> compiled.scale, isinstance(compiled, tracejit.nn.Linear)
    (2, True)
    """
    module = original(module)
    made: Any = object.__new__(_class_for(type(module)))
    given = (module, (None, None), compile, again)
    for name, value in (("__dict__", module.__dict__), *zip(_SLOTS, given)):
        object.__setattr__(made, name, value)
    return made


def original(module: Any) -> Any:
    """Return the module behind a compiled one; any other object as it is."""
    return getattr(module, "_scripted_original", module)


def _compile(instance: Any, module: Any, plain: Any) -> Any:
    forward = module.forward
    compiled = forward if hasattr(forward, "report") else instance._scripted_compile(forward)
    object.__setattr__(instance, "_scripted_forward", (plain, compiled))
    return compiled


def _again(scripted: Any, module: Any) -> Any:
    function, argument = scripted._scripted_again
    return function(module, argument)


def _class_for(cls: type) -> type:
    """Return the subclass for modules of a class.

    Each class has one such subclass as long as that is in use, since guards compare types.
    """
    known: type
    for known in type.__subclasses__(cls):
        if known.__dict__.get("_scripted_class") is cls:
            return known
    slots = [name for c in cls.__mro__ for name, found in vars(c).items()
             if isinstance(found, MemberDescriptorType)]  # fmt: skip
    own: dict[str, Any] = {name: _through(name) for name in slots}
    own |= {"__slots__": _SLOTS, "_scripted_class": cls, "forward": Forward()}
    own |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    # Not by calling the metaclass: it may keep a list of the classes it made.
    return type.__new__(type(cls), cls.__name__, (ScriptedModule, cls), own)


def _through(name: str) -> property:
    """Make a property for an attribute that the user's class keeps in a slot."""
    return property(
        lambda self: getattr(self._scripted_original, name),
        lambda self, value: setattr(self._scripted_original, name, value),
        lambda self: delattr(self._scripted_original, name),
    )
