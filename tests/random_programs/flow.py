"""Statements of random programs, of any kind and at any depth: ops, branches, jumps, `try`, and
what `loops.py`, `functions.py`, `statements.py` and `state.py` make.

In: a Builder. Out: a statement with what stands inside it, added to the Builder; whether it was.
Called by `generator.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.random_programs import (
    functions,
    identities,
    loops,
    movements,
    operations,
    state,
    statements,
)
from tests.random_programs.builder import Builder
from tests.random_programs.conditions import DECIDED, Condition, condition
from tests.random_programs.program import Block, Clause, Step

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
    if draft is None or b.careful and draft.text.startswith(("o.t +=", "o.t *=")):
        return False
    if b.careful and not draft.writes and b.choices.chance(80):
        return b.add_into(draft)
    return b.add(draft)


def statement(b: Builder) -> bool:
    """A statement of any kind; deep inside only simple ones."""
    simple = len(b.places) >= DEPTH or b.tame and b.regions > 1 or b.choices.chance(25)
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
    other = condition(b) if b.choices.chance(15) else None
    by = min((c, other or c), key=lambda c: DECIDED.index(c.by)).by
    clauses = [_clause(b, f"if {c.text}:", by=by)]
    if other is not None:
        clauses.append(_clause(b, f"elif {other.text}:", by=by))
    if b.choices.chance(60):
        clauses.append(_clause(b, "else:", by=by))
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


# -- jumps ---------------------------------------------------------------------------------------
def jump(b: Builder, last: bool = False) -> bool:
    """`break`, `continue`, `return`, `raise` or `assert`, most of them under a condition."""
    around = [p for p in b.places if p in ("for", "while", "function")]
    words = [] if b.tame and not b.choices.chance(20) else ["return"]
    if around and around[-1] != "function":
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


def without_gradients(b: Builder) -> bool:
    head = b.choices.pick(("with tj.no_grad():", "with tj.no_grad():", "with tj.enable_grad():"))
    return _added(b, "with", Condition("", "-"), [_clause(b, head)])


def for_loop(b: Builder) -> bool:
    return loops.for_loop(b, body)


def while_loop(b: Builder) -> bool:
    return loops.while_loop(b, body)


def function(b: Builder) -> bool:
    return functions.function(b, body, _returned)


SIMPLE: list[Callable[[Builder], bool]] = [
    *[op] * 12, *[statements.rebind] * 6, *[statements.alias] * 3, statements.truth_value,
    *[statements.count] * 2, statements.host_read, *[statements.append] * 2,
    *[statements.read_list] * 2, *[statements.index_row] * 3, *[state.attribute] * 2,
    state.dictionary, state.outer_number, statements.comprehension, statements.swap,
    statements.gradient, identities.identity, identities.identity,
]  # fmt: skip
COMPOUND = [*[branch] * 8, *[for_loop] * 6, *[while_loop] * 5]
STATEMENTS: list[Callable[[Builder], bool]] = [
    *SIMPLE, *COMPOUND, *COMPOUND, *[jump] * 2, *[try_block] * 2, *[function] * 5,
    without_gradients,
]  # fmt: skip
WILD = (statements.truth_value, statements.host_read, identities.identity)
TAME: list[Callable[[Builder], bool]] = [
    *[op] * 10, *[statements.rebind] * 8, *[statements.alias] * 3, *[statements.index_row] * 3,
    statements.append, statements.swap,
]  # fmt: skip
TAME_STATEMENTS: list[Callable[[Builder], bool]] = [*TAME, *COMPOUND, jump]
