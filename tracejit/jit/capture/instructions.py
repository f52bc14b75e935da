"""Instructions of a code object in one vocabulary, whichever CPython compiled it.

In: code objects. Out: `Step`s, under the names that CPython 3.11 has for them. Pairs in one
instruction are two steps, small numbers are constants, a slice is made before it is looked up.
Called by all files that judge code by its instructions. `_reads_code` is the canary: where it
fails, `holds("instructions")` is False, and its users assume the worst of any code.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from tracejit.core.memory.reliances import relies

_SILENT = frozenset("CACHE EXTENDED_ARG NOP RESUME PRECALL NOT_TAKEN TO_BOOL".split())
_RENAMED = {
    "LOAD_FAST_CHECK": "LOAD_FAST",
    "LOAD_FAST_AND_CLEAR": "LOAD_FAST",
    "LOAD_FAST_BORROW": "LOAD_FAST",
    "STORE_FAST_MAYBE_NULL": "STORE_FAST",
    "LOAD_FROM_DICT_OR_DEREF": "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_GLOBALS": "LOAD_GLOBAL",
    "LOAD_SMALL_INT": "LOAD_CONST",
    "LOAD_COMMON_CONSTANT": "LOAD_CONST",
    "LOAD_SPECIAL": "BEFORE_WITH",
    "CONVERT_VALUE": "FORMAT_VALUE",
    "FORMAT_SIMPLE": "FORMAT_VALUE",
    "FORMAT_WITH_SPEC": "FORMAT_VALUE",
}
_INTRINSICS = {5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"}  # of CALL_INTRINSIC_1; they call nothing
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
_METHODS = ("LOAD_ATTR", "LOAD_SUPER_ATTR")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class Step(NamedTuple):
    """Instruction of a code object.

    called   it loads a function to be called, and the second stack entry that a call needs
    effect   how much deeper the stack is afterwards, where nothing jumps
    jumps    it may continue at another instruction
    entered  others jump here
    """

    opname: str
    arg: int | None
    argval: Any
    argrepr: str
    called: bool
    effect: int
    jumps: bool
    entered: bool
    positions: Any


def steps(code: CodeType) -> list[Step]:
    """List a code object's instructions without those that do nothing.

        >>> [(s.opname, s.argval) for s in steps((lambda x: x.scale[3]).__code__)]
        [('LOAD_FAST', 'x'), ('LOAD_ATTR', 'scale'), ('LOAD_CONST', 3), ('BINARY_SUBSCR', None), \
    ('RETURN_VALUE', None)]
    """
    found: list[Step] = []
    entered = False  # kept past instructions that do nothing: a jump may lead to one
    for one in dis.get_instructions(code):
        entered |= one.is_jump_target
        if one.opname in _SILENT:
            continue
        for step in _plain(one, code, entered, found):
            found.append(step)
        entered = False
    return found


def _plain(one: dis.Instruction, code: CodeType, entered: bool, before: list[Step]
           ) -> Iterator[Step]:
    name, arg, value = one.opname, one.arg, one.argval
    effect = dis.stack_effect(one.opcode, arg, jump=False)
    called = "NULL" in one.argrepr and name in (*_METHODS, "LOAD_GLOBAL")

    def step(name: str, effect: int, value: Any = None, arg: int | None = arg) -> Step:
        return Step(name, arg, value, one.argrepr, called, effect, one.opcode in _JUMPS,
                    entered, one.positions)

    if name in _PAIRS:
        for part, variable in zip(_PAIRS[name], value):
            yield step(part, 1 if part == "LOAD_FAST" else -1, variable)
    elif name == "RETURN_CONST":
        yield step("LOAD_CONST", 1, value)
        yield step("RETURN_VALUE", -1)
    elif name in ("BINARY_SLICE", "STORE_SLICE"):
        yield step("BUILD_SLICE", -1, 2, 2)
        yield step(name.replace("SLICE", "SUBSCR"), effect + 1)
    elif name == "BINARY_OP" and one.argrepr == "[]":
        yield step("BINARY_SUBSCR", effect)
    elif name == "CALL_KW":
        before[-1] = before[-1]._replace(opname="KW_NAMES", effect=0)  # names: a constant before
        yield step("CALL", effect + 1, value)
    elif name == "CALL":  # 3.11 has a PRECALL before it, which takes the arguments
        yield step("CALL", -(arg or 0) - 1, value)
    elif name == "CALL_INTRINSIC_1":
        yield step(_INTRINSICS.get(arg or 0, name), effect, value)
    elif name in _METHODS:
        yield step("LOAD_METHOD" if called else "LOAD_ATTR", effect, value)
    elif name == "LOAD_FAST" and value in (*code.co_cellvars, *code.co_freevars):
        yield step("LOAD_CLOSURE", effect, value)  # the cell, for a function that is made
    else:
        yield step(_RENAMED.get(name, name), effect, value)


def constants(code: CodeType) -> set[Any]:
    """Collect the texts and ints in the code: small ints are no `co_consts` since 3.14.

    >>> sorted(constants((lambda x: x[3] + 400).__code__))
    [3, 400]
    """
    found = {s.argval for s in steps(code) if s.opname == "LOAD_CONST"
             and type(s.argval) in (str, int)}
    return found | {c for c in code.co_consts if type(c) in (str, int)}


def _sample(x: Any, y: Any) -> Any:
    if getattr(x, "a") == y.b(1, k=2) and x is not y:  # noqa: B009
        x[0] = y[1:2]
    y = z = None
    return (z, lambda: x), f"{y!r:>3}"


_EXPECTED = """
LOAD_GLOBAL:getattr LOAD_DEREF:x LOAD_CONST:a CALL LOAD_FAST:y LOAD_METHOD:b LOAD_CONST:1
LOAD_CONST:2 KW_NAMES CALL COMPARE_OP:== JUMP LOAD_DEREF:x LOAD_FAST:y IS_OP JUMP
""".split()


@relies("instructions", "`dis` names the instructions of code as this version of CPython is known "
        "to, in the order in which they run", "code is taken to read and change whatever it names")
def _reads_code() -> bool:
    found = []
    for s in steps(_sample.__code__):
        name = "JUMP" if s.jumps else s.opname
        named = name.startswith("LOAD_") or name == "COMPARE_OP"
        found.append(f"{name}:{s.argval}" if named else name)
    found = [x for x in found if x not in ("MAKE_CELL", "PUSH_NULL")]
    return found[: len(_EXPECTED)] == _EXPECTED and _keeps_depth(_sample.__code__)


def _keeps_depth(code: CodeType) -> bool:
    """Return True if a call with two arguments takes four values off the stack and leaves one."""
    run = steps(code)
    first = next(k for k, s in enumerate(run) if s.argval == "getattr")
    return [s.effect for s in run[first + 1 : first + 4]] == [1, 1, -3] and run[first].effect == 2
