"""Attributes whose names code computes: which code does, and which names objects have.

In: code objects, getters and format strings that name attributes for C code, objects and classes.
Out: whether `getattr` and the like get anything but literals, the names that C code asks for, and
the names that an object's `__dict__` or the data of its class has now. Called by `watch` and
`state`; what an object has is compared by `guards`.
"""

from __future__ import annotations

import dis
import operator
import string
import sys
import weakref
from collections.abc import Iterable, Sequence
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from tracejit.capture.behaviour import may_change, remembered

BY_NAME = ("getattr", "hasattr")  # their second argument names an attribute
ALL = ("vars", "__dict__", "__getattribute__", "attrgetter")  # these may give any
_FUNCTIONS = (
    FunctionType, staticmethod, classmethod, property, GetSetDescriptorType, MemberDescriptorType,
)  # fmt: skip
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_SILENT = ("CACHE", "EXTENDED_ARG", "NOP")
_data: weakref.WeakKeyDictionary[type, tuple[int, tuple]] = weakref.WeakKeyDictionary()


# -- of code ----------------------------------------------------------------------------------
def computes(code: CodeType) -> tuple[bool, frozenset[str]]:
    """Whether code asks for attributes by names that it computes, and the variables and attributes
    whose own attributes it asks for so.

    >>> computes((lambda x: getattr(x.part, "scale", 1.0)).__code__)
    (False, frozenset())
    >>> computes((lambda x, name: getattr(x.part, name)).__code__)
    (True, frozenset({'part'}))
    """
    found, of = False, set()
    run = [i for i in dis.get_instructions(code) if i.opname not in _SILENT]
    for at, instruction in enumerate(run):
        name = instruction.argval
        if instruction.opname == "MATCH_CLASS":
            found |= bool(instruction.arg)  # by position: `__match_args__` has the names
        if not isinstance(name, str) or not instruction.opname.startswith("LOAD_"):
            continue
        if instruction.opname == "LOAD_CONST":
            continue
        if name in BY_NAME and not _is_literal(run[at + 1 :]) or name in ALL:
            found = True
            of |= _variable(run[at - 1 : at] if name == "__dict__" else run[at + 1 :])
    if found and "modules" in code.co_names:  # sys.modules[__name__]
        of.add("modules")
    return found, frozenset(of)


def _is_literal(run: Sequence[dis.Instruction]) -> bool:
    """Whether the call that follows has a literal as its second argument."""
    depth, literal = 0, False
    for instruction in run:
        if instruction.opname in ("PRECALL", "CALL") and depth == instruction.arg:
            return literal
        if instruction.opcode in _JUMPS:
            return False
        before = depth
        depth += dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if before == 1:
            constant = instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, str)
            literal = constant and depth == 2
        elif depth <= 2:  # something was made of it
            literal = False
    return False


def _variable(run: Iterable[dis.Instruction]) -> set[str]:
    """The variable that comes first, or its attribute that comes last."""
    found: Any = ()
    for instruction in run:
        attribute = instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if not instruction.opname.startswith("LOAD_") or found and not attribute:
            break
        found = instruction.argval
    return {x for x in (found if isinstance(found, tuple) else (found,)) if isinstance(x, str)}


# -- of what C code asks ----------------------------------------------------------------------
def names_of_getter(getter: operator.attrgetter) -> set[str]:
    """The names that an `operator.attrgetter` asks for.

    >>> sorted(names_of_getter(operator.attrgetter("inner.scale", "shift")))
    ['inner', 'scale', 'shift']
    """
    return {name for path in getter.__reduce__()[1] for name in path.split(".")}


def names_in_format(template: str) -> set[str]:
    """The attributes that a format string asks its values for.

    >>> sorted(names_in_format("{0.mode}-{level} {cfg.size[0]:{cfg.width}}"))
    ['mode', 'size', 'width']
    """
    found: set[str] = set()
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:  # the call itself will raise
        return found
    for _, name, spec, _ in parts:
        found |= {part.partition("[")[0] for part in (name or "").split(".")[1:]}
        found |= names_in_format(spec) if spec else set()
    return found


# -- of objects -------------------------------------------------------------------------------
def own_names(x: Any) -> tuple[str, ...]:
    """The names in an object's `__dict__`, in order; of a class: those of its data."""
    return remembered(x, _names_of_data, _data) if isinstance(x, type) else tuple(x.__dict__)


def _names_of_data(cls: type) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for c in cls.__mro__:
        if may_change(c) and not is_shared(str(c.__module__)):
            found.update((name, None) for name, value in vars(c).items() if _is_data(name, value))
    return tuple(found)


def slot_names(cls: type) -> set[str]:
    """Names of the `__slots__` of a class."""
    own = [c for c in cls.__mro__ if may_change(c) and not is_shared(str(c.__module__))]
    members = (item for c in own for item in vars(c).items())
    return {name for name, value in members if isinstance(value, MemberDescriptorType)}


def _is_data(name: str, value: Any) -> bool:
    return not (name.startswith("__") and name.endswith("__")) and type(value) not in _FUNCTIONS


def data_of_module(module: ModuleType) -> set[str]:
    """Names in a module of the user's."""
    if is_shared(module.__name__):
        return set()
    return {n for n in vars(module) if not (n.startswith("__") and n.endswith("__"))}


def is_shared(module: str) -> bool:
    """Whether everybody in the process reads what this module has, as `math.inf`."""
    library = module.partition(".")[0]
    return library in ("tracejit", "numpy") or library in sys.stdlib_module_names
