"""Watch on a recorded call: every code object entered, every foreign C function called.

In: `sys.setprofile` events of the recording thread. Out: the names that the executed code reads and
writes (attributes, globals), found in its code objects; no source is read. Also a note for each
call that cannot be modelled. The state walker guards whatever those names reach (C2).
"""

from __future__ import annotations

import abc
import functools
import gc
import importlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    ModuleType,
)
from typing import Any

import numpy

from tracejit.core.memory.reliances import holds
from tracejit.jit.capture import recursion
from tracejit.jit.capture.collector import Unseen
from tracejit.jit.capture.dynamic_names import (
    ALL,
    BY_NAME,
    SETTERS,
    computes,
    names_for,
    names_in_format,
    passes_format,
)
from tracejit.jit.capture.fingerprint import first_argument, is_method_named, is_mutable_class
from tracejit.jit.capture.instructions import constants as literals
from tracejit.jit.capture.instructions import steps
from tracejit.jit.capture.known_reads import READS, asked_again
from tracejit.jit.capture.location import PACKAGE, is_internal_code, is_of_compiler
from tracejit.jit.capture.looking import ByClass, attribute_of, is_a, is_exactly
from tracejit.jit.capture.module_reads import Reads, reads_of_modules
from tracejit.jit.capture.pure import is_pure
from tracejit.jit.capture.source import original_code
from tracejit.jit.capture.unwatched import WATCHING, PutAside

_INSTALLED = (
    os.path.dirname(os.__file__) + os.sep,
    os.path.dirname(os.path.dirname(numpy.__file__)) + os.sep,
    "<frozen ",
)
_STANDARD, _SITE = _INSTALLED[:2]
# Packages that tracejit's own code calls, and pytest's import hook, which our imports run. Packages
# of the user's in the same folder run code of the user's.
_OF_OURS = ("<frozen ", *(os.path.join(_SITE, name) + os.sep for name in (
    "numpy", "scipy", "numba", "numba_cuda", "llvmlite", "cupy", "safetensors", "_pytest")))


def _is_a_finder(code: CodeType, caller: FrameType | None) -> bool:
    """Return True for a finder of modules that an installed package provides."""
    asked = caller is not None and caller.f_code is _ASKS_FINDERS
    return asked and code.co_filename.startswith(_INSTALLED)


def _is_called_by_us(path: str) -> bool:
    """Return True for code of the standard library, and of libraries that tracejit calls."""
    if path.startswith(_OF_OURS):
        return True
    return path.startswith(_STANDARD) and not path.startswith((
        _SITE, os.path.join(_STANDARD, "site-packages"), os.path.join(_STANDARD, "dist-packages")))


_LIBRARY = (
    PACKAGE + "amp",
    PACKAGE + "distributions",
    PACKAGE + "nn",
    PACKAGE + "optim",
    PACKAGE + "utils",
)  # tracejit's code that reads the user's state as user code does
# Runtime of rewritten code: the user's code decides what these files call.
_RUNTIME = tuple(
    f"{PACKAGE}jit/capture/{name}.py"
    for name in ("control", "container_calls", "output", "host_numbers", "host_texts")
)
_UNWATCHED = (
    PACKAGE + "distributions/instances.py",
    PACKAGE + "distributions/validation.py",
    PACKAGE + "nn/module",
    PACKAGE + "optim/state.py",
)
_READS = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
_REBINDS = ("STORE_GLOBAL", "STORE_DEREF")
_COMPARES = {"IS_OP", "CONTAINS_OP"}
_HASHES = {"BUILD_SET", "SET_ADD", "BUILD_MAP", "MAP_ADD"}
_LOOKUPS = {"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"}
_LOOKS_UP = set("get pop getitem setitem __getitem__ __setitem__".split())
NUMBERING = {"id", "hash"}  # builtins that make a number of an object's identity
_IDENTITIES = set(
    "id set frozenset is_ is_not indexOf countOf contains index count remove add discard "
    "setdefault fromkeys __contains__ __eq__ __ne__".split()
)
_ENTRIES = {"items", "values", "popitem", "state_dict"}  # methods that return all entries
_OF_ALL = {"state_dict", "__getstate__"}  # tracejit's methods that return all attributes
_HANDLERS = {"AttributeError", "Exception", "BaseException", "suppress"}
_DYNAMIC = {*BY_NAME, *ALL}
_BY_NAME = (getattr, hasattr, setattr, delattr)
_KEPT = {"__slotnames__"}  # attributes of classes for Python's own use
CONVERSIONS = frozenset(  # C code wants plain numbers of these
    "__float__ __int__ __index__ __hash__ __len__ __bool__ __complex__".split())
_CONVERTERS = {"float", "int", "hash", "id", "len"}  # these return plain numbers
_NAMED = {"__name__", "__qualname__", "__module__", "__doc__"}
_LOCK = type(threading.RLock())
# Code of the standard library that holds a lock only while it looks.
_LOCKING = {functools.cached_property.__get__.__code__}
# Asks each finder for a module that is not loaded. Finders that packages install do what Python's
# own do.
_ASKS_FINDERS: Any = attribute_of(importlib._bootstrap._find_spec, "__code__")  # type: ignore[attr-defined]
_REGISTERS = {abc.ABCMeta.__instancecheck__.__code__, abc.ABCMeta.__subclasscheck__.__code__}


@dataclass(frozen=True)
class CodeNames:
    """Names that one code object mentions."""

    attributes: frozenset[str]
    stored: frozenset[str]
    globals: frozenset[str]
    dynamic: bool  # attribute names may be computed: everything reachable counts as read
    nested: frozenset[CodeType]  # code of the functions it defines
    rebound: frozenset[str]  # globals and closure variables that are assigned
    subscripts: frozenset  # literals, if the code stores entries in containers
    identities: bool  # it may compare identities: `x is y`, `x in seen`, `id(x)`
    constants: bool  # as above, of numbers: `x is y`
    equalities: bool  # as above, of objects that compare by identity: `x == y`
    lookups: bool  # it looks for keys that are no literals
    numbering: bool  # it passes `id` or `hash` on, for other code to call
    uncertain: frozenset[str]  # attributes that it asks for in ways that allow them to be missing
    may_miss: bool  # it handles a missing attribute, its own or of code it calls
    keys: frozenset[str]  # keys of entries that user code may read; "": any
    imported: frozenset[tuple[int, str]]  # (leading dots, name) of modules
    of_numbers: bool  # it names methods of number types: `float.is_integer`
    dynamic_names: bool  # code of the user's asks for attributes by names that it computes
    dynamic_owners: frozenset[str]  # variables whose attributes it asks for so


_names: dict[CodeType, CodeNames] = {}


def names_of(code: CodeType) -> CodeNames:
    """Return the names in a code object and its nested ones (cached)."""
    found = _names.get(code)
    if found is None and (known := READS.get(code)) is not None:
        nothing = _scan(_nothing.__code__)
        found = _names[code] = replace(nothing, attributes=known, uncertain=known)
    elif found is None:
        found = _names[code] = _scan(code)
    return found


def _nothing() -> None:
    pass


def _worst(code: CodeType) -> CodeNames:
    """Return all names, in every role, for code whose instructions cannot be read."""
    texts = {c for c in code.co_consts if is_a(c, str)}
    names = frozenset({*code.co_names, *texts})
    nested = {c for c in code.co_consts if is_a(c, CodeType)}
    inner = [_worst(c) for c in nested]
    names = names.union(*(n.attributes for n in inner))
    nested = nested.union(*(n.nested for n in inner))
    rebound = frozenset({*code.co_names, *code.co_freevars}).union(*(n.rebound for n in inner))
    literal = frozenset(c for c in code.co_consts if is_exactly(c, (str, int))) | names
    imported = frozenset((0, name) for name in code.co_names)
    return CodeNames(names, names, names, True, frozenset(nested), rebound, literal, True, True,
                     True, True, True, names, True, names | {""}, imported, True, True,
                     frozenset({""}))


def _scan(code: CodeType) -> CodeNames:
    if not holds("instructions"):
        return _worst(code)
    attributes: set[str] = set()
    stored: set[str] = set()
    global_names: set[str] = set()
    rebound: set[str] = set()
    subscripts: set[Any] = set()
    identities = constants = equalities = lookups = numbering = of_numbers = False
    before = level = None  # the last two instructions
    imported: set[tuple[int, str]] = set()
    uncertain: set[str] = set()
    by_position = False  # a class pattern takes the class's `__match_args__`
    reading = False  # `read_scalar(container, literal)`: the literal is a subscript
    for instruction in steps(code):
        constant = before is not None and before.opname == "LOAD_CONST"
        identities |= instruction.opname in _COMPARES and not constant
        identities |= instruction.opname in _HASHES
        of_none = before is not None and constant and before.argval is None
        constants |= instruction.opname == "IS_OP" and not of_none
        equalities |= instruction.argval in ("==", "!=") and not constant
        lookups |= instruction.opname in _LOOKUPS and not constant
        if instruction.opname == "MATCH_CLASS" and before is not None:
            uncertain |= set(before.argval)  # the attributes that a class pattern names
            by_position |= bool(instruction.arg)
        if instruction.opname == "IMPORT_NAME" and level is not None:
            imported.add((level.argval, instruction.argval))
        level, before = before, instruction
        if reading and instruction.opname == "LOAD_CONST":
            subscripts.add(instruction.argval)
            reading = False
        if instruction.opname in _READS:
            attributes.add(instruction.argval)
            of_numbers |= level is not None and level.argval in ("int", "float")
            if instruction.opname in ("STORE_ATTR", "DELETE_ATTR"):
                stored.add(instruction.argval)
        elif instruction.opname in _GLOBALS:
            global_names.add(instruction.argval)
            reading = instruction.argval == "read_scalar"
            numbering |= instruction.argval in NUMBERING and not instruction.called
        elif instruction.opname == "STORE_SUBSCR":
            subscripts |= literals(code)
        if instruction.opname in _REBINDS:
            rebound.add(instruction.argval)
    attributes |= uncertain
    identities |= bool((attributes | global_names) & _IDENTITIES)
    lookups |= bool((attributes | global_names) & _LOOKS_UP)
    dynamic = by_position or bool((attributes | global_names) & _DYNAMIC)
    if not is_internal_code(code) and passes_format(code):
        dynamic = True
        templates = [c for c in code.co_consts if is_a(c, str)]
        uncertain |= {name for text in templates for name in names_in_format(text)}
    may_miss = _handles_missing(code, attributes | global_names)
    sets = not (attributes | global_names).isdisjoint(SETTERS) and not is_internal_code(code)
    dynamic_names, dynamic_owners = False, frozenset[str]()
    if (dynamic or sets) and (not is_internal_code(code) or code.co_name in _OF_ALL):
        dynamic_names, dynamic_owners = computes(code)
    dynamic |= dynamic_names
    if dynamic:  # names given as literals count as mentioned
        paths = [c.split(".") for c in code.co_consts if is_a(c, str)]
        uncertain |= {name for path in paths if all(map(str.isidentifier, path)) for name in path}
        attributes |= uncertain
        stored |= uncertain
    if sets:
        named = {c for c in code.co_consts if is_a(c, str) and c.isidentifier()}
        attributes |= named
        stored |= named
    if is_internal_code(code):  # errors name classes
        attributes -= _NAMED
    for found in (attributes, stored, uncertain):
        found -= _KEPT
    keys: set[str] = set()
    if not is_internal_code(code):
        keys |= {c for c in code.co_consts if is_a(c, str)}
        keys |= {""} if attributes & _ENTRIES else set()
    nested: set[CodeType] = set()
    for constant in code.co_consts:
        if is_a(constant, CodeType):
            nested.add(constant)
            inner = names_of(constant)
            attributes |= inner.attributes
            stored |= inner.stored
            global_names |= inner.globals
            dynamic |= inner.dynamic
            nested |= inner.nested
            rebound |= inner.rebound
            subscripts |= inner.subscripts
            identities |= inner.identities
            constants |= inner.constants
            equalities |= inner.equalities
            lookups |= inner.lookups
            numbering |= inner.numbering
            uncertain |= inner.uncertain
            may_miss |= inner.may_miss
            keys |= inner.keys
            imported |= inner.imported
            of_numbers |= inner.of_numbers
            dynamic_names |= inner.dynamic_names
            dynamic_owners |= inner.dynamic_owners
    return CodeNames(
        frozenset(attributes),
        frozenset(stored),
        frozenset(global_names),
        dynamic,
        frozenset(nested),
        frozenset(rebound),
        frozenset(subscripts),
        identities,
        constants,
        equalities,
        lookups,
        numbering,
        frozenset(uncertain),
        may_miss,
        frozenset(keys),
        frozenset(imported),
        of_numbers,
        dynamic_names,
        dynamic_owners,
    )


def _handles_missing(code: CodeType, names: set[str]) -> bool:
    """Return True if code of the user's has a handler that a missing attribute would run."""
    if is_internal_code(code) or code.co_filename.startswith(_INSTALLED):
        return False
    return bool(names & _HANDLERS)


USER_CALL_WRAPPERS: set[CodeType] = set()  # tracejit's code that makes the user's calls
# Code of tracejit by id: code that the watcher passes over, and code whose C calls it does.
_unwatched: dict[int, CodeType] = {}
_silent: dict[int, CodeType] = {}


def is_watched(code: CodeType) -> bool:
    """Return True for the user's code, and for code that reads the user's state.

    The latter are methods that Python made for dataclasses, tracejit's layers, optimizers and
    datasets.
    """
    name = code.co_filename
    if not is_internal_code(code) or name == "<string>":
        return True
    return name.startswith(_LIBRARY) and not name.startswith(_UNWATCHED)


def _is_made_for_us(frame: FrameType) -> bool:
    """Return True if Python made a method for a dataclass of tracejit's own.

    Not for a class that reads the user's state.
    """
    if frame.f_code.co_filename != "<string>":
        return False
    file = str(frame.f_globals.get("__file__"))
    return file.startswith(PACKAGE) and not file.startswith(_LIBRARY)


def _copies(function: Any) -> bool:
    """Return True for the `__reduce_ex__` by which Python takes an object of the user's apart for a
    copy."""
    owner: Any = type(attribute_of(function, "__self__"))
    reduces = function.__name__ == "__reduce_ex__" and is_mutable_class(owner)
    return reduces and owner.__reduce_ex__ is object.__reduce_ex__


def _is_plain_method(code: CodeType) -> bool:
    return not is_internal_code(code) and code.co_name in CONVERSIONS and code.co_argcount == 1


@functools.cache
def _converts(code: CodeType) -> bool:
    """Return True for a method from which C code wants a plain number, unless it surely returns
    one.

    Also for code that calls methods of number types, which want plain numbers.
    """
    if not _is_plain_method(code):
        return not is_internal_code(code) and names_of(code).of_numbers
    run = [i.opname for i in steps(code) if i.opname.startswith(("CALL", "RETURN"))]
    return run != ["CALL", "RETURN_VALUE"] or _CONVERTERS.isdisjoint(names_of(code).globals)


def _is_the_users(code: CodeType) -> bool:
    return code in USER_CALL_WRAPPERS or not is_internal_code(code)


class CodeWatcher:
    """Context manager around the recorded call, which calls these functions:

    entered     (names, frame) at the first entry of each watched code object, before its body runs
    foreign     (function) for a C function that cannot be modelled
    library     (frame) whenever user code calls an installed library's Python function
    named       (names) where C code reads attributes of these names; None: all
    asking      (frame) where `getattr` or `hasattr` is called
    registered  ((cls, abstract)) where code asks if a class is one of an abstract one
    gave        (module) where a function returns a module
    asked       ((ask, what)) where code asks for a fact of the process: `ask(what)` gives it again
    modules     (reads) where code of tracejit's reads what modules hold
    converts    (frame) where a method begins that C code asks for a number; None: it ends
    keeps       (frame) where code of `kept` begins, whose results a cache keeps
    """

    def __init__(
        self,
        entered: Callable[[CodeNames, FrameType], None],
        foreign: Callable[[Any], None],
        library: Callable[[FrameType], None],
        named: Callable[[set[str] | None], None],
        asking: Callable[[FrameType], None],
        registered: Callable[[tuple[type, type]], None],
        gave: Callable[[ModuleType], None],
        asked: Callable[[tuple[Callable, Any]], None],
        modules: Callable[[Reads], None],
        converts: Callable[[FrameType | None], None],
        kept: set[CodeType],
        keeps: Callable[[FrameType], None],
    ):
        self.entered, self.foreign, self.library = entered, foreign, library
        self.named, self.asking, self.registered = named, asking, registered
        self.gave, self.asked = gave, asked
        self.modules, self.converts = modules, converts
        self.kept, self.keeps = kept, keeps
        self.seen: set[tuple[CodeType, int]] = set()
        self.judged: dict[Any, bool] = {}
        self.speaking: dict[CodeType, ByClass[bool]] = {}
        self.inside: FrameType | None = None
        self.converting: FrameType | None = None

    def __enter__(self) -> CodeWatcher:
        # the garbage collector may call these at any moment, whatever the recorded call does
        self.collecting = {getattr(f, "__code__", None) for f in gc.callbacks}
        self.collector = Unseen()
        self.collector.__enter__()
        self.aside = PutAside()
        sys.setprofile(self._event)
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        if kind is None and sys.getprofile() != self._event:  # code has run unseen
            self.foreign(sys.setprofile)
        self.collector.__exit__()
        self.aside.back()

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if self.inside is not None:  # library code that tracejit itself called
            if event == "return" and frame is self.inside:
                self.inside = None
        elif event == "call":
            if id(frame.f_code) not in _unwatched:
                self._call(frame)
        elif event == "c_call" and id(frame.f_code) not in _silent:
            if _is_the_users(frame.f_code):
                self.collector.asked |= argument is gc.collect
                self._judge(argument, frame)
            elif frame.f_code.co_filename.startswith(PACKAGE):
                _silent[id(frame.f_code)] = frame.f_code
        elif event in ("c_return", "c_exception"):
            if argument is gc.collect:
                self.collector.asked = False
            if argument is sys.getrecursionlimit or argument is sys.setrecursionlimit:
                recursion.forgotten()
        elif event == "return" and frame is self.converting:
            self.converting = None
            self.converts(None)
        elif event == "return" and issubclass(type(argument), ModuleType):
            self.gave(argument)

    def _call(self, frame: FrameType) -> None:
        code, caller = original_code(frame.f_code), frame.f_back
        if code in self.collecting or _is_a_finder(code, caller):
            self.inside = frame
            return
        if is_internal_code(code):
            if not is_watched(code) or _is_made_for_us(frame):
                if code in _REGISTERS:
                    self._abstract(frame)
                if (reads := reads_of_modules(code)) is not None:
                    self.modules(reads)
                elif code.co_filename.startswith((PACKAGE, "<string>")):
                    _unwatched[id(code)] = code
                return
        elif (
            caller is not None
            and not _is_the_users(caller.f_code)
            and caller.f_code.co_filename not in _RUNTIME
            and _is_called_by_us(code.co_filename)
        ):
            self.inside = frame
            return
        if caller is None or is_of_compiler(code):
            # A compiled function shows as a frame without caller and variables. A compiler is a
            # long run of code that reads nothing of the user's.
            self.inside = frame
            self.foreign(code)
            return
        key = code, id(frame.f_globals)
        if key not in self.seen:
            self.seen.add(key)
            self.entered(names_of(code), frame)
            self._read_again(frame)
        if self.converting is None and (_converts(code) or self._speaks(code, frame)):
            self.converting = frame
            self.converts(frame)
        if caller is not None and (
                code.co_filename.startswith(_INSTALLED) and not is_internal_code(code)):
            if not caller.f_code.co_filename.startswith(_INSTALLED):
                self.library(frame)  # late: reading `f_locals` anew undoes what was put there
        if code in self.kept:
            self.keeps(frame)
        if code in READS:
            self.inside = frame

    def _read_again(self, frame: FrameType) -> dict[str, Any]:
        """Return the frame's variables as they are now.

        Before 3.13, Python writes variables that a profiler's call read back after it. Without a
        new read, closures would lose the numbers that were put there in between.
        """
        return frame.f_locals

    def _speaks(self, code: CodeType, frame: FrameType) -> bool:
        """Return True for code that the class has as a conversion method, under another name or
        form."""
        if is_internal_code(code) or _is_plain_method(code):
            return False
        cls, known = type(first_argument(code, frame)), self.speaking.setdefault(code, ByClass())
        if (speaks := known.get(cls)) is None:
            speaks = known[cls] = is_method_named(cls, code, CONVERSIONS)
        return speaks

    def _abstract(self, frame: FrameType) -> None:
        if frame.f_back is not None and _is_the_users(frame.f_back.f_code):
            cls, asked = list(frame.f_locals.values())[:2]
            by_instance = frame.f_code.co_name == "__instancecheck__"
            self.registered((type(asked) if by_instance else asked, cls))

    def _judge(self, function: BuiltinFunctionType, frame: FrameType) -> None:
        if any(function is f for f in _BY_NAME):
            above = frame.f_back if frame.f_code in USER_CALL_WRAPPERS else None
            self.asking(above or frame)
        held = getattr(function, "__self__", None)
        if original_code(frame.f_code) in _LOCKING and is_a(held, _LOCK):
            return
        if (again := asked_again(function)) is not None:
            self.asked((again, None))
            return
        if function is sys.getrecursionlimit:
            recursion.told()
            self.asked((recursion.user_limit, None))
            return
        if type(attribute_of(function, "__self__")) is str:
            self.named(names_for(function))
        if _copies(function):  # the copy reads every attribute
            self.named(None)
            return
        try:
            key = function if attribute_of(function, "__self__") is None else None
            pure = self.judged.get(key) if key is not None else None
        except TypeError:
            key, pure = None, None
        if pure is None:
            pure = is_pure(function)
            if key is not None:
                self.judged[key] = pure
        if not pure:
            self.foreign(function)

WATCHING.add(CodeWatcher._event)
