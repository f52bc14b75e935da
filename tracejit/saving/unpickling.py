"""Pickles without Python's unpickler: a file describes data, and can run nothing.

In: a reader over bytes, and a function that finds storages by number. Out: the object. Names stand
for the objects in `rebuilding.KNOWN`, or for classes the user allowed; all others are refused.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from tracejit.saving.names import qualified
from tracejit.saving.rebuilding import CALLS, KNOWN, checked_key, refuse, with_attributes

TRUNCATED = "pickle data was truncated"
_MARK = object()


class Reader:
    """Bytes of a file from where it stands; never asks for more than there is."""

    def __init__(self, file: Any, size: int) -> None:
        self.file, self.left = file, size

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise UnpicklingError(TRUNCATED)
        data = self.file.read(count)
        if len(data) != count:
            raise UnpicklingError(TRUNCATED)
        self.left -= count
        return data

    def line(self) -> str:
        data = self.file.readline(min(self.left, 1000))
        if not data.endswith(b"\n"):
            raise UnpicklingError(TRUNCATED)
        self.left -= len(data)
        return data[:-1].decode("utf-8")


class Unpickler:
    """Unpickler of one pickle.

    storage   (persistent id) -> what it stands for
    allowed   full name -> class or function that the user trusts
    encoding  of the texts of Python 2; "bytes": they stay bytes
    """

    def __init__(self, reader: Reader, storage: Callable[[Any], Any],
                 allowed: dict[str, Any], encoding: str = "utf-8") -> None:
        self.reader, self.storage, self.allowed = reader, storage, allowed
        self.encoding = encoding
        self.trusted = {id(x) for x in allowed.values()}
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.outside: Exception | None = None  # raised by who knows storages

    def load(self) -> Any:
        """Return the object. UnpicklingError for a damaged pickle, or one that needs more than is
        allowed."""
        try:
            while (code := self.reader.take(1)) != pickle.STOP:
                run = _OPCODES.get(code)
                if run is None:
                    raise UnpicklingError(f"Unsupported operand {code[0]}")
                run(self)
            return self.pop()
        except (UnpicklingError, MemoryError):
            raise
        except Exception as error:
            if error is self.outside:
                raise
            raise UnpicklingError(
                f"the pickle is damaged: {type(error).__name__}: {error}") from error

    def push(self, x: Any) -> None:
        self.stack.append(x)

    def pop(self) -> Any:
        refuse(not self.stack or self.stack[-1] is _MARK, "unexpected MARK or end of stack")
        return self.stack.pop()

    def top(self) -> Any:
        refuse(not self.stack, "unexpected end of stack")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        start = len(self.stack) - 1
        while start >= 0 and self.stack[start] is not _MARK:
            start -= 1
        refuse(start < 0, "could not find MARK")
        items = self.stack[start + 1 :]
        del self.stack[start:]
        return items

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.reader.take(struct.calcsize(form)))[0]

    # -- names ------------------------------------------------------------------------------------

    def find(self, module: str, name: str) -> Any:
        full = qualified(module, name)
        if full in self.allowed:
            return self.allowed[full]
        if full in KNOWN:
            return KNOWN[full]
        raise UnpicklingError(unsupported(full))

    def refer(self) -> None:
        given = self.pop()
        # Python 2 wrote the words of a reference as byte strings.
        if self.encoding == "bytes" and isinstance(given, tuple):
            given = tuple(str(x, "latin1") if type(x) is bytes else x for x in given)
        try:
            self.push(self.storage(given))
        except Exception as error:
            self.outside = error
            raise

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        refuse(not isinstance(arguments, tuple), "arguments must be a tuple")
        # By identity: comparing or hashing could run code of the object.
        known = CALLS.get(id(function))
        if known is not None:
            self.push(known(*arguments))
        elif id(function) in self.trusted:
            self.push(function(*arguments))
        else:
            raise UnpicklingError(f"Trying to call reduce for unrecognized function "
                                  f"{function!r:.80}")

    def new(self) -> None:
        arguments, cls = self.pop(), self.pop()
        known = CALLS.get(id(cls)) if isinstance(cls, type) else None
        refuse(known is None and id(cls) not in self.trusted or not isinstance(arguments, tuple),
               f"Trying to create an instance of {cls!r:.80}, which was not allowed")
        self.push(known(*arguments) if known else cls.__new__(cls, *arguments))

    def build(self) -> None:
        state, made = self.pop(), self.top()
        if type(made) is OrderedDict:
            with_attributes(made, state)
        elif id(type(made)) in self.trusted:
            _set_state(made, state)
        else:
            raise UnpicklingError("Can only build OrderedDicts and instances of classes that were "
                                  f"allowed, not {type(made).__name__}")

    # -- containers -------------------------------------------------------------------------------

    def append(self, items: list[Any]) -> None:
        target = self.top()
        refuse(type(target) is not list, "Can only append to lists, not "
               f"{type(target).__name__}")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.top()
        refuse(not isinstance(target, dict) or len(items) % 2 != 0, "Can only set items of dicts, "
               f"not {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2]):
            target[checked_key(key)] = value

    def add(self, items: list[Any]) -> None:
        target = self.top()
        refuse(type(target) is not set, f"Can only add to sets, not {type(target).__name__}")
        target.update([checked_key(item) for item in items])

    def remember(self, place: int) -> None:
        self.memo[place] = self.top()

    def recall(self, place: int) -> None:
        refuse(place not in self.memo, f"memo value {place} is missing")
        self.push(self.memo[place])

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        refuse(type(name) is not str or type(module) is not str, "a name that is no text")
        self.push(self.find(module, name))

    def protocol(self) -> None:
        version = self.number("<B")
        refuse(not 2 <= version <= pickle.HIGHEST_PROTOCOL, f"unsupported protocol {version}")


def _set_state(made: Any, state: Any) -> None:
    """Set the state of an instance whose class the user allowed, as Python's unpickler does."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        made.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(made, name, value)


def unsupported(name: str) -> str:
    """Return the message about a name that no file may use by itself."""
    shown = name.removeprefix("builtins.")
    return (
        "Weights only load failed: a file may hold tensors, parameters, numbers, texts and plain "
        "containers of them; nothing in it is executed.\n\tWeightsUnpickler error: Unsupported "
        f"global: GLOBAL {shown} was not an allowed global by default. Please use "
        f"`tracejit.serialization.add_safe_globals([{shown}])` or the "
        f"`tracejit.serialization.safe_globals([{shown}])` context manager to allowlist this "
        "global if you trust this class/function."
    )


def _simple(value: Callable[[Unpickler], Any]) -> Callable[[Unpickler], None]:
    return lambda u: u.push(value(u))


def _tuple_of(count: int) -> Callable[[Unpickler], None]:
    return lambda u: u.push(tuple([u.pop() for _ in range(count)][::-1]))


def _text(form: str, encoding: str = "utf-8") -> Callable[[Unpickler], None]:
    return lambda u: u.push(str(u.reader.take(u.number(form)), encoding, "surrogatepass"))


def _bytes(form: str, kind: Callable[[bytes], Any] = bytes) -> Callable[[Unpickler], None]:
    return lambda u: u.push(kind(u.reader.take(u.number(form))))


def _string(form: str) -> Callable[[Unpickler], None]:
    def run(u: Unpickler) -> None:
        text = u.reader.take(u.number(form))
        u.push(text if u.encoding == "bytes" else str(text, u.encoding))

    return run


def _ignore(u: Unpickler) -> None:
    u.number("<Q")


_OPCODES: dict[bytes, Callable[[Unpickler], Any]] = {
    pickle.PROTO: Unpickler.protocol,
    pickle.FRAME: _ignore,
    pickle.MARK: lambda u: u.push(_MARK),
    pickle.POP: lambda u: u.pop(),
    pickle.POP_MARK: Unpickler.since_mark,
    pickle.NONE: lambda u: u.push(None),
    pickle.NEWTRUE: lambda u: u.push(True),
    pickle.NEWFALSE: lambda u: u.push(False),
    pickle.BININT: _simple(lambda u: u.number("<i")),
    pickle.BININT1: _simple(lambda u: u.number("<B")),
    pickle.BININT2: _simple(lambda u: u.number("<H")),
    pickle.LONG1: _simple(
        lambda u: int.from_bytes(u.reader.take(u.number("<B")), "little", signed=True)),
    pickle.BINFLOAT: _simple(lambda u: u.number(">d")),
    pickle.BINUNICODE: _text("<I"),
    pickle.SHORT_BINUNICODE: _text("<B"),
    pickle.BINUNICODE8: _text("<Q"),
    pickle.BINSTRING: _string("<i"),
    pickle.SHORT_BINSTRING: _string("<B"),
    pickle.BINBYTES: _bytes("<I"),
    pickle.SHORT_BINBYTES: _bytes("<B"),
    pickle.BINBYTES8: _bytes("<Q"),
    pickle.BYTEARRAY8: _bytes("<Q", bytearray),
    pickle.EMPTY_TUPLE: lambda u: u.push(()),
    pickle.EMPTY_LIST: lambda u: u.push([]),
    pickle.EMPTY_DICT: lambda u: u.push({}),
    pickle.EMPTY_SET: lambda u: u.push(set()),
    pickle.TUPLE: lambda u: u.push(tuple(u.since_mark())),
    pickle.TUPLE1: _tuple_of(1),
    pickle.TUPLE2: _tuple_of(2),
    pickle.TUPLE3: _tuple_of(3),
    pickle.LIST: lambda u: u.push(u.since_mark()),
    pickle.APPEND: lambda u: u.append([u.pop()]),
    pickle.APPENDS: lambda u: u.append(u.since_mark()),
    pickle.SETITEM: lambda u: u.set_items([u.pop(), u.pop()][::-1]),
    pickle.SETITEMS: lambda u: u.set_items(u.since_mark()),
    pickle.ADDITEMS: lambda u: u.add(u.since_mark()),
    pickle.BINPUT: lambda u: u.remember(u.number("<B")),
    pickle.LONG_BINPUT: lambda u: u.remember(u.number("<I")),
    pickle.MEMOIZE: lambda u: u.remember(len(u.memo)),
    pickle.BINGET: lambda u: u.recall(u.number("<B")),
    pickle.LONG_BINGET: lambda u: u.recall(u.number("<I")),
    pickle.GLOBAL: lambda u: u.push(u.find(u.reader.line(), u.reader.line())),
    pickle.STACK_GLOBAL: Unpickler.stack_global,
    pickle.BINPERSID: Unpickler.refer,
    pickle.REDUCE: lambda u: u.call(),
    pickle.NEWOBJ: lambda u: u.new(),
    pickle.BUILD: lambda u: u.build(),
}


def globals_in(data: Reader) -> list[str]:
    """Return the full names that a pickle mentions, in order; nothing is looked up or called."""
    found: dict[str, None] = {}

    class Listing(Unpickler):
        def find(self, module: str, name: str) -> Any:
            found[qualified(module, name)] = None
            return None

        def call(self) -> None:
            self.pop()
            self.pop()
            self.push(None)

        # Arguments are dropped, and None stands for the object: containers must then take anything.
        new = call

        def build(self) -> None:
            self.pop()

        def append(self, items: list[Any]) -> None: ...

        def set_items(self, items: list[Any]) -> None: ...

        def add(self, items: list[Any]) -> None: ...

    Listing(data, lambda _: None, {}).load()
    return list(found)
