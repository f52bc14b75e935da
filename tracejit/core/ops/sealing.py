"""Sealing: code that tells when an exception leaves a function, at no cost where none does.

In: functions that users call. Out: the same functions, whose code has one more entry in its table
of exceptions, and at the end the handler that the entry leads to. It calls `leaving()` and raises
the exception again. CPython looks at the table only when an exception passes, and a bare `raise`
adds no line to a traceback. So a sealed function can be absent from the traceback that its caller
gets: a wrapper could not. Called by `tracejit/__init__.py` and public modules at their end;
`core/eager/tracebacks.py` installs what is done then.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from tracejit.core.memory.reliances import holds, relies

_leaving: list[Callable[[], None]] = []
_sealed: dict[int, tuple[CodeType, CodeType]] = {}  # by id of the code before: many share one
_codes: dict[int, CodeType] = {}  # by their own id
_classes: set[type] = set()
_PACKAGE = __name__.partition(".")[0]
_NOT_SEALED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_UNIT = 2  # bytes of an instruction


def install(leaving: Callable[[], None]) -> None:
    """Set what sealed functions call as an exception leaves them."""
    _leaving[:] = [leaving]


def is_sealed(code: CodeType) -> bool:
    """Return True for the code of a sealed function."""
    return id(code) in _codes


def seal(function: FunctionType, nested: bool = False) -> None:
    """Seal a function, and with `nested` those that it makes. Generators stay as they are."""
    code = function.__code__
    if not code.co_flags & _NOT_SEALED and id(code) not in _codes:
        function.__code__ = sealed(code, nested)  # code stays where it cannot be sealed


def seal_all(names: Mapping[str, Any], nested: bool = False) -> None:
    """Seal the functions among a module's names, and the methods of its classes.

    nested  seal what these functions define, too: the user gets it as their result
    """
    home = names["__name__"]
    for found in list(names.values()):
        if type(found) is FunctionType:
            if str(found.__module__).startswith(_PACKAGE):
                seal(found, nested)
        elif isinstance(found, type) and found.__module__.startswith(home):
            _seal_class(found, home)


def _seal_class(kind: type, home: str) -> None:
    """Seal the methods, properties and static methods of a class and of its bases in a package."""
    for base in kind.__mro__:
        if base not in _classes and base.__module__.startswith(home):
            _classes.add(base)
            for name, found in list(vars(base).items()):
                if name == "forward":  # `Module.__call__` is before it; some come from source
                    continue
                if type(found) is FunctionType:
                    seal(found)
                elif isinstance(found, (staticmethod, classmethod, property)):
                    for function in _functions(found):
                        seal(function)


def _functions(found: staticmethod | classmethod | property) -> Iterator[FunctionType]:
    parts = (found.fget, found.fset) if isinstance(found, property) else (found.__func__,)
    for part in parts:
        if type(part) is FunctionType:
            yield part


def sealed(code: CodeType, nested: bool = False) -> CodeType:
    """Return code with a handler behind it, to which all exceptions lead that it does not catch."""
    known = _sealed.get(id(code))
    if known is None:
        if not holds("handlers"):
            return code
        known = _sealed[id(code)] = code, _with_handler(
            _with_sealed(code) if nested else code, _leaving[0])
        _codes[id(known[1])] = known[1]
    return known[1]


def _with_sealed(code: CodeType) -> CodeType:
    """Return code that makes sealed functions."""
    made = tuple(
        sealed(x, True) if isinstance(x, CodeType) and not x.co_flags & _NOT_SEALED else x
        for x in code.co_consts)
    return code.replace(co_consts=made)


def _with_handler(code: CodeType, leaving: Callable[[], None]) -> CodeType:
    text, constants = code.co_code, code.co_consts
    start = len(text) // _UNIT
    tail, rows, depth = _tail(len(constants))
    if code.co_exceptiontable:
        table = _table(_open_ranges(code, start), start)
    else:
        table = _plain_table(_place(text), start)
    return code.replace(
        co_code=text + tail,
        co_consts=(*constants, leaving, Exception),
        co_stacksize=max(code.co_stacksize, depth),
        co_exceptiontable=table,
        co_linetable=code.co_linetable + rows,
    )


@functools.cache
def _tail(first: int) -> tuple[bytes, bytes, int]:
    """Return the handler's code, its rows in the table of lines, and the depth of its stack.

    first  number of the constant that it calls; the error that it ignores comes next
    """
    handler, loads, _, depth = _compiled_handler()
    tail = bytearray(handler)
    for place, number in zip(loads, (first, first + 1)):
        high, low = divmod(number, 256)
        tail[place:place + 4] = (dis.EXTENDED_ARG, high, _LOAD_CONST, low)
    return bytes(tail), _last_line(len(tail) // _UNIT), depth


def _table(ranges: list[tuple[int, int, int, int]], start: int) -> bytes:
    """Return the table of exceptions: these entries, and the handler's own."""
    return b"".join([_entry(*entry) for entry in ranges] + [
        _entry(first + start, end + start, target + start, kind)
        for first, end, target, kind in _compiled_handler()[2]])


@functools.cache
def _plain_table(place: int, start: int) -> bytes:
    """Return the table for code without entries of its own, which is most."""
    return _table([(place, start, start, 0)] if start > place else [], start)


def _place(text: bytes) -> int:
    """Return the number of the first instruction that can raise."""
    if text[0] == _RESUME:
        return 1
    return next(k for k in range(0, len(text), _UNIT) if text[k] == _RESUME) // _UNIT + 1


def _open_ranges(code: CodeType, end: int) -> list[tuple[int, int, int, int]]:
    """Return the code's own entries, and for each range between them one that leads to `end`."""
    own = list(_entries(code.co_exceptiontable))
    place = _place(code.co_code)
    found = list(own)
    for first, last, _, _ in own:
        if first > place:
            found.append((place, first, end, 0))
        place = max(place, last)
    if end > place:
        found.append((place, end, end, 0))
    found.sort()
    return found


# -- the table of exceptions: varints of six bits, of which the first of an entry has a mark -------
def _entries(table: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield (first, end, target, depth * 2 + lasti) of each entry; places count instructions."""
    numbers: list[int] = []
    more = False
    for byte in table:
        numbers.append(numbers.pop() << 6 | byte & 63 if more else byte & 63)
        more = bool(byte & 64)
        if not more and len(numbers) == 4:
            first, length, target, kind = numbers
            yield first, first + length, target, kind
            numbers = []


def _entry(first: int, end: int, target: int, kind: int) -> bytes:
    out = bytearray()
    start = 128
    for value in (first, end - first, target, kind):
        if value < 64:
            out.append(value | start)
        elif value < 4096:
            out.append(value >> 6 | 64 | start)
            out.append(value & 63)
        else:
            digits = [value >> place & 63 | 64 for place in range(0, value.bit_length(), 6)]
            digits[0] &= 63
            digits[-1] |= start
            out += bytes(reversed(digits))
        start = 0
    return bytes(out)


@functools.cache
def _last_line(count: int) -> bytes:
    """Return rows of a table of lines for the handler: its line is the last one of the function.

    Debuggers compare lines, so that none at all would end them.
    """
    rows = []
    while count:
        step = min(count, 8)
        rows += [0x80 | 13 << 3 | step - 1, 0]  # no columns; 0 lines further
        count -= step
    return bytes(rows)


# -- the handler, as this Python compiles it -------------------------------------------------------
@functools.cache
def _compiled_handler() -> tuple[bytes, list[int], list[tuple[int, int, int, int]], int]:
    """Return the handler's code, where it loads what it calls and the error that it ignores, its
    entries in the table of exceptions, and the depth of its stack."""
    # Variables above the 256th have room for the number of any constant.
    many = ", ".join(f"a{k}" for k in range(256))
    names: dict[str, Any] = {}
    exec(compile(f"def f({many}, leave, ignored):\n"
                 "    try: a0.x\n"
                 "    except:\n"
                 "        try: leave()\n"
                 "        except ignored: pass\n"
                 "        raise\n", __file__, "exec"), names)
    made = names["f"].__code__
    start = made.co_code.index(bytes((dis.opmap["PUSH_EXC_INFO"], 0)))
    handler = made.co_code[start:]
    loads = [k for k in range(0, len(handler), _UNIT)
             if handler[k] == dis.EXTENDED_ARG and handler[k + 1] == 1]
    unit = start // _UNIT
    entries = [(first - unit, end - unit, target - unit, kind)
               for first, end, target, kind in _entries(made.co_exceptiontable) if first >= unit]
    return handler, loads, entries, made.co_stacksize


_LOAD_CONST = dis.opmap["LOAD_CONST"]
_RESUME = dis.opmap.get("RESUME")


@relies("handlers", "a handler behind a function's code, and its entry in the table of exceptions, "
        "work; a bare `raise` in it adds no entry to the traceback",
        "no function is sealed, and tracebacks show every frame")
def _seals() -> bool:
    def failing(x: Any) -> Any:
        return x[0]

    left: list[Any] = []
    failing.__code__ = _with_handler(failing.__code__, lambda: left.append(_stripped()))
    try:
        failing([])
    except IndexError as error:
        trace = error.__traceback__
        return left == [error] and trace is not None and trace.tb_next is None and (
            failing([3]) == 3)
    return False


def _stripped() -> BaseException | None:
    error = sys.exc_info()[1]
    if error is not None:
        error.__traceback__ = None
    return error
