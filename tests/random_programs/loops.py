"""Loops of random programs: over ranges, rows, lists; `while` bounded by a counter or a tensor.

In: a Builder, and `body`, which fills a block. Out: whether a loop was added. Called by `flow.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import tracejit as tj
from tests.random_programs import statements
from tests.random_programs.builder import Builder
from tests.random_programs.conditions import condition
from tests.random_programs.program import Block, Clause

Body = Callable[[Builder], None]
Header = tuple[str, str, list[str], list[list]]  # a line, what decides, names, their first values


def for_loop(b: Builder, body: Body) -> bool:
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
    return _with_else(b, "for", by, Clause(head, tuple(steps)), body)


def _with_else(b: Builder, what: str, by: str, loop: Clause, body: Body) -> bool:
    clauses = [loop]
    if b.choices.chance(6):
        with b.inside("branch") as made:
            body(b)
        clauses.append(Clause("else:", tuple(made)))
    return _added(b, what, by, *clauses)


def _added(b: Builder, what: str, by: str, *clauses: Clause) -> bool:
    b.failed = False
    if clauses[0].body:
        b.steps.append(Block(clauses, ((what, b.place, by),)))
    return bool(clauses[0].body)


def _range(b: Builder) -> Header | None:
    c, i = b.choices, b.fresh("i")
    most = 5 if _in_loop(b) else 20
    x = b.tensor("fib", 1, fits=lambda n: all(s[0] <= most for s in b.shapes(n)))
    plain = ("3", "2", "4", "1, 4", "3, 0, -1", "0", "1", "0, 6, 2")
    long = ("17", "16", "18, -1, -1", "2, 20")
    kind = c.below(7 if _in_loop(b) else 10)
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


def _in_loop(b: Builder) -> bool:
    return "for" in b.places or "while" in b.places


def _row(b: Builder, x: str) -> list:
    """The first row at each size; zeros where there is none."""
    return [
        v[0] if len(v) else tj.zeros(v.shape[1:], dtype=v.dtype) for v in b.values(x)
    ]


def _iterated(b: Builder) -> str | None:
    most = 5 if _in_loop(b) else 20
    return b.tensor("fib", 1, fits=lambda n: all(s[0] <= most for s in b.shapes(n)))


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
        return f"for {r} in {name}[:3]:", "flag", [r], [[v[0] for v in b.values(name)]]
    return f"for {r} in ({x}, {y}, {x} * 2):", "flag", [r], [b.values(x)]


def while_loop(b: Builder, body: Body) -> bool:
    """A loop that a counter bounds, and that a condition may leave earlier."""
    if b.places.count("for") + b.places.count("while") > 1:
        return False
    n, limit = b.fresh("k"), b.choices.pick((3, 2, 4) if _in_loop(b) else (3, 2, 4, 6, 17))
    c = condition(b)
    way = b.choices.below(5)
    if c is None or way == 0:
        return _tensor_counted(b, limit, body)
    if not b.statement(f"{n} = 0", defines=(n,)):
        return False
    start = [f"{n} += 1"]
    if way == 1:
        start.append(f"if {n} > {limit} or ({c.text}): break")
    with b.inside("while", c.by) as steps:
        body(b)
    head = "while True:" if way == 1 else f"while {n} < {limit} and ({c.text}):"
    loop = Clause(head, tuple(steps), tuple(start))
    return _with_else(b, "while True" if way == 1 else "while", c.by, loop, body)


def _tensor_counted(b: Builder, limit: int, body: Body) -> bool:
    """A loop that a tensor counts."""
    t = b.fresh("t")
    if not b.statement(f"{t} = tj.zeros(())"):
        return False
    with b.inside("while", "tensor") as steps:
        body(b)
    loop = Clause(f"while {t} < {limit}:", tuple(steps), (f"{t} = {t} + 1",))
    return _added(b, "while", "tensor", loop)
