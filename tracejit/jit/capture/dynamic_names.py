"""Attributes whose names are computed: which code computes them, and which names objects have.

In: code objects; getters and format strings, by which C code reads attributes; objects and classes.
Out: the owners that code asks for attributes by computed names, and the names that C code asks for.
Also the names that an object's `__dict__` or the data of its class has now. Called by `watcher`,
`attributes` and `state`; `guards` compares what an object has.
"""

from __future__ import annotations

import operator
import string
import sys
from collections.abc import Sequence
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

from tracejit.core.memory.reliances import holds
from tracejit.jit.capture.fingerprint import is_mutable_class, module_name, remembered
from tracejit.jit.capture.instructions import Step, steps
from tracejit.jit.capture.looking import (
    ByClass,
    bases_of,
    instance_dict,
    is_a,
    is_exactly,
    module_title,
    names_in,
)

BY_NAME = ("getattr", "hasattr", "methodcaller")  # one argument names an attribute
ALL = ("vars", "dir", "__dict__", "__getattribute__", "attrgetter")  # may read any attribute
SETTERS = ("setattr", "delattr", "__setattr__", "__delattr__")  # store by name
FORMATS = ("format", "format_map")
ANY, RETURNED = "", "()"  # owners without a name: any object; what a call returned
_ASKING = (
    getattr, hasattr, setattr, delattr, vars, dir, operator.attrgetter, operator.methodcaller,
    object.__getattribute__, type.__getattribute__, object.__setattr__, type.__setattr__,
    str.format, str.format_map,
)  # fmt: skip
_FUNCTIONS = (
    FunctionType, staticmethod, classmethod, property, GetSetDescriptorType, MemberDescriptorType,
)  # fmt: skip
# Instructions that use what was loaded as a value: it is not passed on as a function.
_USED = ("COMPARE", "CONTAINS", "IS_", "POP_JUMP", "FORMAT", "LOAD_METHOD", "LOAD_ATTR")
_COMPARED = (["COMPARE_OP"], ["CONTAINS_OP"], ["IS_OP"])
_data: ByClass[tuple[int, tuple]] = ByClass()


# -- of code ----------------------------------------------------------------------------------
def computes(code: CodeType) -> tuple[bool, frozenset[str]]:
    """Return (whether code asks for attributes by computed names, the owners that it asks).

    Owners are variables and attributes by name; `""` stands for any object.

    >>> computes((lambda x: getattr(x.part, "scale", 1.0)).__code__)
    (False, frozenset())
    >>> computes((lambda x, name: getattr(x.part, name)).__code__)
    (True, frozenset({'part'}))
    >>> computes((lambda x, names: map(getattr, x, names)).__code__)
    (True, frozenset({''}))
    """
    found, of = False, set[str]()
    if not holds("instructions"):
        return True, frozenset({ANY, "modules"})
    run = steps(code)
    for at, instruction in enumerate(run):
        name = instruction.argval
        if instruction.opname == "MATCH_CLASS":
            found |= bool(instruction.arg)  # by position: `__match_args__` names them
        if not is_a(name, str) or not instruction.opname.startswith("LOAD_"):
            continue
        if instruction.opname == "LOAD_CONST":
            continue
        if name in SETTERS:
            dynamic_owners = _stored_to(run, at, code)
        else:
            dynamic_owners = _dynamic_owners(run, at)
        found |= dynamic_owners is not None
        of |= dynamic_owners or set()
    if found and _reads_modules(run):
        of.add("modules")
    return found, frozenset(of)


def _reads_modules(run: Sequence[Step]) -> bool:
    """Return True if code reads `sys.modules`, where it may find its own module."""
    named = [k for k, i in enumerate(run) if i.argval == "modules"]
    return any(run[k].opname != "LOAD_ATTR" or run[k - 1].argval == "sys" for k in named)


def passes_format(code: CodeType) -> bool:
    """Return True if code passes the `format` method of a text on, for other code to call.

    >>> passes_format((lambda x: "{.a}".format(x)).__code__)
    False
    >>> passes_format((lambda x: map("{.a}".format, x)).__code__)
    True
    >>> passes_format((lambda image: image.format == "png").__code__)
    False
    """
    if not set(FORMATS) & {*code.co_names}:
        return False
    if not holds("instructions"):
        return True
    run = steps(code)
    return any(i.argval in FORMATS and _is_passed_on(run, k) for k, i in enumerate(run))


def _is_passed_on(run: Sequence[Step], at: int) -> bool:
    """Return True if code passes on the function loaded here, instead of calling it at once."""
    instruction = run[at]
    if instruction.opname == "LOAD_METHOD":
        return instruction.argval in FORMATS and at > 0 and run[at - 1].argval == "str"
    if not instruction.opname.startswith("LOAD_") or instruction.called:
        return False
    following = [i.opname for i in run[at + 1 : at + 3]]
    used = following[:1] and following[0].startswith(_USED) or following[1:] in _COMPARED
    return instruction.argval not in FORMATS or not used  # `image.format == "png"`


def _dynamic_owners(run: Sequence[Step], at: int) -> set[str] | None:
    """Return the owners that an instruction asks for computed names; None if it asks for none."""
    name = run[at].argval
    if name in FORMATS:
        return {ANY} if _is_passed_on(run, at) else None
    if name not in BY_NAME and name not in ALL:
        return None
    if name == "__dict__":
        return _dynamic_owner(run[:at])
    if _is_passed_on(run, at):
        return {ANY}
    given = _arguments(run[at + 1 :])
    if name in BY_NAME and _is_literal(given, int(name != "methodcaller")):
        return None
    if name in ("attrgetter", "methodcaller"):
        return {ANY}
    return {ANY} if given is None else _dynamic_owner(given[0]) if given else set()


def _stored_to(run: Sequence[Step], at: int, code: CodeType) -> set[str] | None:
    """Return the same for an instruction that stores by name.

    A `__setattr__` that passes its own name on does not count: the code that called it has the
    name.
    """
    if _is_passed_on(run, at):
        return {ANY}
    given = _arguments(run[at + 1 :])
    if given is None or _is_literal(given, 0) or _is_literal(given, 1):
        return {ANY} if given is None else None
    own = code.co_varnames[1 : 2] if code.co_name in SETTERS else ()
    names = [x[0].argval for x in given if len(x) == 1]
    return None if set(own) & set(names[:2]) else _dynamic_owner(given[0]) if given else set()


def _arguments(run: Sequence[Step]) -> list[Sequence[Step]] | None:
    """Return the instructions of each argument of the call that follows; None if they branch."""
    depth, ends = 0, {0: 0}  # depth of the stack -> the last step at which it was so deep
    for k, instruction in enumerate(run):
        if not depth and instruction.opname == "PUSH_NULL":  # after a function since 3.13
            ends[0] = k + 1
            continue
        if instruction.opname == "CALL" and depth == instruction.arg:
            return [run[ends[n] : ends[n + 1]] for n in range(depth)]
        if instruction.jumps:
            return None
        depth += instruction.effect
        ends[depth] = k + 1
    return None


def _is_literal(arguments: list[Sequence[Step]] | None, position: int) -> bool:
    """Return True if the argument at a position is a literal text."""
    if arguments is None or len(arguments) <= position or len(arguments[position]) != 1:
        return False
    (one,) = arguments[position]
    return one.opname == "LOAD_CONST" and is_a(one.argval, str)


def _dynamic_owner(run: Sequence[Step]) -> set[str]:
    """Return, in a set, the name of the variable or attribute that is on top of the stack."""
    last = run[-1] if run else None
    if last is None or last.opname == "LOAD_CONST":
        return {ANY}
    if last.opname in ("LOAD_ATTR", "LOAD_METHOD") or last.opname.startswith("LOAD_"):
        name = last.argval
        return {x for x in (name if is_a(name, tuple) else (name,)) if is_a(x, str)}
    if last.opname == "BINARY_SUBSCR":  # elements count as asked anyway
        return {RETURNED}
    if last.opname != "CALL" or any(i.argval in (*BY_NAME, *ALL) for i in run):
        return {ANY}
    return {RETURNED}


def asks(function: Any) -> bool:
    """Return True for the builtins that ask for attributes by name."""
    return any(function is f for f in _ASKING)


# -- of what C code asks ----------------------------------------------------------------------
def names_of_getter(getter: Any) -> set[str]:
    """Return the names that an `operator.attrgetter` or `methodcaller` asks for.

    >>> sorted(names_of_getter(operator.attrgetter("inner.scale", "shift")))
    ['inner', 'scale', 'shift']
    >>> names_of_getter(operator.methodcaller("scale", 2.0))
    {'scale'}
    """
    made, paths = getter.__reduce__()
    if is_a(getter, operator.methodcaller):
        return {getattr(made, "args", paths)[0]}  # a partial where it has keywords
    return {name for path in paths for name in path.split(".")}


def names_for(method: BuiltinFunctionType) -> set[str]:
    """Return the attributes that a bound `str.format` reads of its arguments, else none.

    >>> names_for("{.mode}".format)
    {'mode'}
    """
    template = method.__self__
    formats = type(template) is str and method.__name__ in FORMATS
    return names_in_format(template) if formats else set()  # type: ignore[arg-type]


def names_in_format(template: str) -> set[str]:
    """Return the attributes that a format string reads of its values.

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
    """Return the names in an object's `__dict__`, in order; for a class, the names of its data."""
    if is_a(x, type):
        return remembered(x, _names_of_data, _data)
    own = instance_dict(x)
    return tuple(own) if is_a(own, (dict, MappingProxyType)) else ()  # else user code makes it up


def _names_of_data(cls: type) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for c in bases_of(cls):
        if is_user_class(c):
            own = names_in(c).items()
            found.update((name, None) for name, value in own if _is_data(name, value))
    return tuple(found)


def slot_names(cls: type) -> set[str]:
    """Return the names of the `__slots__` of a class and its bases."""
    own = [c for c in bases_of(cls) if is_user_class(c)]
    members = (item for c in own for item in names_in(c).items())
    return {name for name, value in members if is_a(value, MemberDescriptorType)}


def _is_data(name: str, value: Any) -> bool:
    return not (name.startswith("__") and name.endswith("__")) and not is_exactly(value, _FUNCTIONS)


def data_of_module(module: ModuleType) -> set[str]:
    """Return the names in a module of the user's, but for special ones."""
    if is_shared_module(module_title(module)):
        return set()
    return {n for n in instance_dict(module) if not (n.startswith("__") and n.endswith("__"))}


def is_user_class(cls: type) -> bool:
    """Return True if a class is the user's; one of `builtins` that can be changed was made by code
    that ran without a `__name__`."""
    module = module_name(cls)
    return is_mutable_class(cls) and (module == "builtins" or not is_shared_module(module))


def is_shared_module(module: str) -> bool:
    """Return True for the name of a module of tracejit, NumPy or the standard library."""
    library = module.partition(".")[0]
    return library in ("tracejit", "numpy") or library in sys.stdlib_module_names
