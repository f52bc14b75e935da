"""Compound statements of random programs: branches, loops, jumps, `try`, functions; nested.

In: a Builder. Out: a statement with what stands inside it, added to the Builder; whether it was.
Called by `generator.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import tracejit as tj
from tests.random_programs import movements, operations, state, statements
from tests.random_programs.builder import Builder
from tests.random_programs.conditions import Condition, condition
from tests.random_programs.program import Block, Clause, Step, printed

DEPTH = 3
KINDS = {**operations.OPERATIONS, **movements.MOVEMENTS}
WEIGHTS = {**operations.WEIGHTS, **movements.WEIGHTS}
RARE = (movements.masked_select, movements.branch, movements.item)
DRAWN = [kind for kind in KINDS for _ in range(WEIGHTS.get(kind, 1))]


def op(b: Builder) -> bool:
    """One of the ops of straight-line programs."""
    kind = b.choices.pick(DRAWN)
    if kind in RARE and not b.choices.chance(15):
        return False
    if b.careful and kind in (*RARE, operations.random_like, operations.dropout):
        return False
    draft = kind(b)
    return draft is not None and b.add(draft)


def statement(b: Builder) -> bool:
    """A statement of any kind; deep inside only simple ones."""
    simple = len(b.places) >= DEPTH or b.choices.chance(25)
    if b.careful:
        table = TAME if simple else TAME_STATEMENTS
    elif b.tame:
        table = [k for k in (SIMPLE if simple else STATEMENTS) if k not in WILD]
    else:
        table = SIMPLE if simple else STATEMENTS
    return b.choices.pick(table)(b)


def body(b: Builder, most: int = 3) -> None:
    """A few statements, and now and then a jump behind them."""
    wanted = len(b.steps) + b.choices.between(1, most)
    for _ in range(3 * most):
        statement(b)
        if len(b.steps) >= wanted or b.failed:
            break
    if not b.failed and b.choices.chance(12):
        jump(b, last=True)


# -- branches ------------------------------------------------------------------------------------
def branch(b: Builder) -> bool:
    """`if`, perhaps with `elif` and `else`."""
    c = condition(b)
    if c is None:
        return False
    clauses = [_clause(b, f"if {c.text}:", by=c.by)]
    other = condition(b) if b.choices.chance(15) else None
    if other is not None:
        clauses.append(_clause(b, f"elif {other.text}:", by=c.by))
    if b.choices.chance(60):
        clauses.append(_clause(b, "else:", by=c.by))
    return _added(b, "if" if other is None else "elif", c, clauses)


def _clause(b: Builder, head: str, most: int = 2, by: str = "-") -> Clause:
    with b.inside("branch", by) as made:
        body(b, most)
    b.failed = False
    return Clause(head, tuple(made))


def _added(b: Builder, what: str, c: Condition, clauses: list[Clause]) -> bool:
    if not any(clause.body for clause in clauses):
        return False
    b.steps.append(Block(tuple(clauses), ((what, b.place, c.by),)))
    return True


# -- loops ---------------------------------------------------------------------------------------
def for_loop(b: Builder) -> bool:
    """A loop over a range, over rows, over a list; now and then with an `else`."""
    c = b.choices
    if b.places.count("for") + b.places.count("while") > 1:
        return False
    made = c.pick((_range, _range, _range, _rows, _rows, _counted, _pairs, _elements))(b)
    if made is None:
        return False
    head, by, names, firsts = made
    long = by == "size" or "range(1" in head or "range(2" in head  # a region, then
    with b.inside("for", "tensor" if long else "-") as steps:
        for name, first in zip(names, firsts):
            for space, value in zip(b.spaces, first):
                space[name] = value
            b._know(name)
        body(b)
    b.failed = False
    return _with_else(b, "for", by, [Clause(head, tuple(steps))])


Header = tuple[str, str, list[str], list[list]]


def _with_else(b: Builder, what: str, by: str, clauses: list[Clause]) -> bool:
    if b.choices.chance(6):
        clauses.append(_clause(b, "else:", most=1))
    return _added(b, what, Condition("", by), clauses)


def _range(b: Builder) -> Header | None:
    c, i = b.choices, b.fresh("i")
    x = b.tensor("fib", 1, fits=lambda n: all(s[0] <= 8 for s in b.shapes(n)))
    plain = ("3", "2", "4", "1, 4", "3, 0, -1", "0", "1", "0, 6, 2")
    long = ("17", "16", "18, -1, -1", "2, 20")
    kind = c.below(10)
    if kind < 3 or x is None and kind < 7:
        return f"for {i} in range({c.pick(plain)}):", "flag", [i], [[1] * b.count]
    if kind < 7:
        text = c.pick((f"{x}.shape[0]", f"{x}.shape[0]", f"{x}.shape[0] - 1, -1, -1",
                       f"1, {x}.shape[0]", f"len({x})"))  # fmt: skip
        return f"for {i} in range({text}):", "size", [i], [[0] * b.count]
    if kind < 9:
        return f"for {i} in range({c.pick(long)}):", "flag", [i], [[2] * b.count]
    names = [n for n in b.numbers if all(type(v) is int and 0 <= v < 20 for v in b.values(n))]
    if not names:
        return None
    return f"for {i} in range({c.pick(names)} % 19):", "number", [i], [[0] * b.count]


def _row(b: Builder, x: str) -> list:
    """The first row at each size; zeros where there is none."""
    return [
        v[0] if len(v) else tj.zeros(v.shape[1:], dtype=v.dtype) for v in b.values(x)
    ]


def _iterated(b: Builder) -> str | None:
    return b.tensor("fib", 1, fits=lambda n: all(s[0] <= 20 for s in b.shapes(n)))


def _rows(b: Builder) -> Header | None:
    x, r = _iterated(b), b.fresh("r")
    if x is None:
        return None
    over = b.choices.pick((x, x, x, f"reversed({x})", f"{x}[1:]", f"{x}.unbind(0)"))
    return f"for {r} in {over}:", "size", [r], [_row(b, x)]


def _counted(b: Builder) -> Header | None:
    x, i, r = _iterated(b), b.fresh("i"), b.fresh("r")
    if x is None:
        return None
    start = b.choices.pick(("", "", ", 1"))
    return f"for {i}, {r} in enumerate({x}{start}):", "size", [i, r], [[0] * b.count, _row(b, x)]


def _pairs(b: Builder) -> Header | None:
    x, r, s = _iterated(b), b.fresh("r"), b.fresh("r")
    if x is None:
        return None
    y = b.tensor("fib", 1, fits=lambda n: [t[0] for t in b.shapes(n)] == [
        t[0] for t in b.shapes(x)]) or x  # fmt: skip
    return f"for {r}, {s} in zip({x}, {y}):", "size", [r, s], [_row(b, x), _row(b, y)]


def _elements(b: Builder) -> Header | None:
    x, r = b.tensor(), b.fresh("r")
    if x is None:
        return None
    y = statements.like(b, x)
    names = [n for n in b.lists if b.evaluate(f"{n}[0].shape") is not None]
    if names and b.choices.chance(40):
        name = b.choices.pick(names)
        return f"for {r} in list({name}):", "flag", [r], [[v[0] for v in b.values(name)]]
    return f"for {r} in ({x}, {y}, {x} * 2):", "flag", [r], [b.values(x)]


def while_loop(b: Builder) -> bool:
    """A loop that a counter bounds, and that a condition may leave earlier."""
    if b.places.count("for") + b.places.count("while") > 1:
        return False
    n, limit = b.fresh("k"), b.choices.pick((3, 2, 4, 6, 17))
    c = condition(b)
    way = b.choices.below(5)
    if c is None or way == 0:
        return _tensor_counted(b, limit)
    if not b.statement(f"{n} = 0", defines=(n,)):
        return False
    with b.inside("while", c.by) as steps:
        b.statement(f"{n} += 1")
        if way == 1:
            b.statement("pass")
            steps[-1] = Step((f"if {n} > {limit} or ({c.text}): break",), (), frozenset(),
                             marks=(("break", "while", c.by),))  # fmt: skip
        body(b)
    b.failed = False
    head = "while True:" if way == 1 else f"while {n} < {limit} and ({c.text}):"
    return _with_else(b, "while", c.by, [Clause(head, tuple(steps))])


def _tensor_counted(b: Builder, limit: int) -> bool:
    """A loop that a tensor counts."""
    t = b.fresh("t")
    if not b.statement(f"{t} = tj.zeros(())"):
        return False
    with b.inside("while", "tensor") as steps:
        b.statement(f"{t} = {t} + 1")
        body(b)
    b.failed = False
    return _added(b, "while", Condition("", "tensor"),
                  [Clause(f"while {t} < {limit}:", tuple(steps))])  # fmt: skip


# -- jumps ---------------------------------------------------------------------------------------
def jump(b: Builder, last: bool = False) -> bool:
    """`break`, `continue`, `return`, `raise` or `assert`, most of them under a condition."""
    loops = [p for p in b.places if p in ("for", "while", "function")]
    words = [] if b.tame and not b.choices.chance(20) else ["return"]
    if loops and loops[-1] != "function":
        words += ["break", "break", "continue", "continue"]
    if b.choices.chance(4 if b.careful else 15):
        words = ["raise", "assert"]
    c = condition(b)
    if c is None or not words:
        return False
    word = b.choices.pick(words)
    text = word
    if word == "return":
        text = f"return {_returned(b)}"
    elif word == "raise":
        text = f"raise {b.choices.pick(('ValueError', 'RuntimeError'))}({_message(b)})"
    elif word == "assert":
        return _jumped(b, f"assert {c.text}, {_message(b)}", word, c)
    if last and b.places and word != "raise" and b.choices.chance(20):
        return _jumped(b, text, word, Condition("", "-"))
    return _jumped(b, f"if {c.text}: {text}", word, c)


def _jumped(b: Builder, line: str, word: str, c: Condition) -> bool:
    b.steps.append(Step((line,), (), frozenset(), marks=((word, b.place, c.by),)))
    return True


def _message(b: Builder) -> str:
    return b.choices.pick(("'no'", f"f'no {{{statements.number(b)}}}'"))


def _returned(b: Builder) -> str:
    x, y = b.tensor() or "None", b.tensor() or "None"
    return b.choices.pick((x, f"({x}, {y})", f"{x} * 2", f"({x}, {statements.number(b)})", "None"))


# -- try -----------------------------------------------------------------------------------------
def try_block(b: Builder) -> bool:
    clauses = [_clause(b, "try:")]
    if b.choices.chance(75):
        clauses.append(_clause(b, "except (ValueError, RuntimeError, AssertionError):", most=1))
        if b.choices.chance(20):
            clauses.append(_clause(b, "else:", most=1))
    if len(clauses) == 1 or b.choices.chance(30):
        clauses.append(_clause(b, "finally:", most=1))
    return _added(b, "try", Condition("", "-"), clauses)


# -- functions -----------------------------------------------------------------------------------
def function(b: Builder) -> bool:
    """A function defined here, over the variables around it, and a call of it."""
    x = b.tensor()
    if x is None or "function" in b.places:
        return False
    h, a = b.fresh("h"), b.fresh("a")
    if b.choices.chance(20):
        body_text = b.choices.pick((f"{a} * 2", f"{a} + {x}", f"{a} if {x}.sum() > 0 else -{a}"))
        if not b.statement(f"{h} = lambda {a}: {body_text}", uses=(x,), mark="lambda"):
            return False
    else:
        head = f"def {h}({a}, scale={b.choices.pick(('2', '0.5', statements.number(b)))}):"
        _defined(b, head, a, x)
    return call(b, h, x)


def _defined(b: Builder, head: str, a: str, x: str) -> None:
    outer = {n for n in (*b.live, *b.numbers) if n.isidentifier()}
    with b.inside("function") as made:
        for space, value in zip(b.spaces, b.values(x)):
            space[a], space["scale"] = value, 2
        b.live.append(a)
        b.numbers.append("scale")
        body(b)
        made.append(Step((f"return {_returned(b)}",), (), frozenset()))
    b.failed = False
    outer |= {argument.name for argument in b.arguments}
    lines = printed(tuple(made))
    changed = sorted({w for w in map(_assigned, lines) if w in outer and w != "scale"})
    outside = [Step((f"nonlocal {', '.join(changed)}",), (), frozenset())] if changed else []
    block = Block((Clause(head, (*outside, *made)),), (("def", b.place, "-"),))
    b.steps.append(block)
    text = "\n".join(printed((block,))).replace("    nonlocal ", "    global ", 1)
    b.run(compile(text, "<function>", "exec"))


def _assigned(line: str) -> str:
    """The name that a line binds."""
    name, _, rest = line.strip().partition(" ")
    return name if rest.startswith(("= ", "+= ", "-= ", "*= ")) else ""


def call(b: Builder, name: str, x: str) -> bool:
    v = b.fresh("v")
    text = b.choices.pick((f"{name}({x})", f"{name}({x})", f"{name}({statements.like(b, x)})"))
    return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="call")


SIMPLE: list[Callable[[Builder], bool]] = [
    *[op] * 12, *[statements.rebind] * 6, *[statements.alias] * 3, statements.truth_value,
    *[statements.count] * 2, statements.host_read, *[statements.append] * 2,
    *[statements.read_list] * 2, *[statements.index_row] * 3, *[state.attribute] * 2,
    state.dictionary, state.outer_number, statements.comprehension,
]  # fmt: skip
COMPOUND = [*[branch] * 8, *[for_loop] * 6, *[while_loop] * 5]
STATEMENTS: list[Callable[[Builder], bool]] = [
    *SIMPLE, *COMPOUND, *COMPOUND, *[jump] * 2, *[try_block] * 2, *[function] * 4
]  # fmt: skip
WILD = (statements.truth_value, statements.host_read)
TAME: list[Callable[[Builder], bool]] = [
    *[op] * 10, *[statements.rebind] * 8, *[statements.alias] * 3, *[statements.index_row] * 3,
    statements.append,
]  # fmt: skip
TAME_STATEMENTS: list[Callable[[Builder], bool]] = [*TAME, *COMPOUND, jump]
