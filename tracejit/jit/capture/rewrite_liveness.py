"""Variables that an iteration of a loop keeps to itself, by liveness.

In: the body of a function and its scope. Out: a mark, `private`, on each `for` and `while`: the
names that it binds and that no later code reads before it binds them again. "Later" is the next
iteration, or what follows the loop. Such a variable is not carried. Called by `rewrite.py`.

The analysis goes backward over the syntax tree, and around each loop until nothing changes. Where
control may leave at any point (`try`, `with`), and for names that nested functions read, it counts
names as read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracejit.jit.capture.rewrite_names import (
    FUNCTIONS,
    LOOPS,
    Scope,
    body_of,
    bound_names,
    own,
    parameters,
    reads,
)

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class _Jumps:
    """Names that are live where jumps and errors go."""

    broken: Names = NONE  # behind a `break`
    continued: Names = NONE  # behind a `continue`
    anywhere: Names = NONE  # where an error, or the end of a `with`, may go on


def mark_private(body: list[ast.stmt], scope: Scope) -> None:
    """Mark each loop with the names that its iterations keep to themselves."""
    if not any(isinstance(node, LOOPS) for node in own(body)):
        return
    always = _read_below(body) | scope.nonlocals | scope.globals
    _Liveness().block(body, always, _Jumps(anywhere=always))


def private_to_iterations(node: ast.AST) -> Names:
    """Return the names that iterations of a loop keep to themselves."""
    return getattr(node, "private", NONE)


def _read_below(body: list[ast.stmt]) -> Names:
    """Return the names of this scope that nested functions and classes read."""
    found: set[str] = set()
    for node in own(body):
        if isinstance(node, FUNCTIONS):
            inside = body_of(node)
            declared = {n for d in own(inside) if isinstance(d, ast.Nonlocal) for n in d.names}
            kept = (bound_names(inside) | set(parameters(node.args))) - declared
            found |= ({*reads(inside), *declared} - kept) | (_read_below(inside) - kept)
        elif isinstance(node, ast.ClassDef):
            found |= {*reads(node.body)} | _read_below(node.body)
    return frozenset(found)


def _read(*nodes: ast.AST | None) -> Names:
    return frozenset(reads([node for node in nodes if node is not None]))


class _Liveness:
    """Each method returns the names that are live before a statement, given those behind it."""

    def block(self, statements: Iterable[ast.stmt], after: Names, jumps: _Jumps) -> Names:
        for statement in reversed([*statements]):
            handler = getattr(self, f"at_{type(statement).__name__}", self.simple)
            after = handler(statement, after, jumps) | jumps.anywhere
        return after

    def simple(self, node: ast.stmt, after: Names, jumps: _Jumps) -> Names:
        return after - bound_names([node], surely=True) | _read(node)

    def at_Return(self, node: ast.stmt, after: Names, jumps: _Jumps) -> Names:
        return _read(node)

    at_Raise = at_Return

    def at_Break(self, node: ast.stmt, after: Names, jumps: _Jumps) -> Names:
        return jumps.broken

    def at_Continue(self, node: ast.stmt, after: Names, jumps: _Jumps) -> Names:
        return jumps.continued

    def at_Assert(self, node: ast.Assert, after: Names, jumps: _Jumps) -> Names:
        return after | _read(node)

    def at_If(self, node: ast.If, after: Names, jumps: _Jumps) -> Names:
        sides = self.block(node.body, after, jumps) | self.block(node.orelse, after, jumps)
        return sides | _read(node.test)

    def at_For(self, node: ast.For, after: Names, jumps: _Jumps) -> Names:
        bound, read = bound_names([node.target]), _read(node.target)
        return self.loop(node, after, jumps, lambda live: live - bound | read) | _read(node.iter)

    def at_While(self, node: ast.While, after: Names, jumps: _Jumps) -> Names:
        return self.loop(node, after, jumps, lambda live: live, _read(node.test))

    def loop(self, node: ast.For | ast.While, after: Names, jumps: _Jumps, entered: object,
             test: Names = NONE) -> Names:
        """Return the names that are live where a loop decides if it goes on, and mark the loop."""
        head = self.block(node.orelse, after, jumps) | test
        while True:
            inside = replace(jumps, broken=after, continued=head)
            live = head | entered(self.block(node.body, head, inside))  # type: ignore[operator]
            if live == head:
                break
            head = live
        head |= jumps.anywhere
        node.private = frozenset(bound_names([node])) - head - after  # type: ignore[union-attr]
        return head

    def guarded(self, node: ast.stmt, after: Names, jumps: _Jumps) -> Names:
        """Return all names that a statement reads, and those behind it: any part of it may not run.
        """
        live = after | _read(node)
        inside = replace(jumps, anywhere=jumps.anywhere | live | jumps.broken | jumps.continued)
        for name in ("body", "orelse", "finalbody"):
            self.block(getattr(node, name, []), live, inside)
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.block(part.body, live, inside)
        return live

    at_Try = at_TryStar = at_With = at_AsyncWith = at_Match = guarded
