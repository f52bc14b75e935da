"""Reads of local names that may be unbound.

In: the body of a function and its local names. Out: a mark, `unbound`, on each `Name` that may be
read before it is bound. An inner function raises another error for such a read than the function
that owns the name. So `rewrite_expressions.py` checks marked reads that move into inner functions.
`upward_exposed_names` returns the names that code may read as they were before. Any other name is
bound again before a read, wherever control may come from a place that left it unbound.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tracejit.jit.capture.rewrite_names import (
    COMPREHENSIONS,
    INLINED,
    SCOPES,
    Scope,
    bound_names,
    deleted_names,
    header,
    own,
    reads_below,
)

State = frozenset[str] | None  # None: never reached
_TRIES = (ast.Try, ast.TryStar)
_WITHS = (ast.With, ast.AsyncWith)


def mark_unbound(body: list[ast.stmt], scope: Scope) -> None:
    """Mark each read, in the function's own scope, that may come before the name is bound."""
    _Marker(frozenset(scope.bound)).block(body, frozenset(scope.parameters))


def may_be_unbound(node: ast.Name) -> bool:
    return getattr(node, "unbound", False)


def upward_exposed_names(body: list[ast.stmt], scope: Scope) -> set[str]:
    """Return the names that code may read without binding them first.

    Marked reads count, and reads by code that runs at another time or on the way out. All names
    count if code may go on after a `return`. `mark_unbound` must have marked the body.
    """
    nodes = list(own(body))
    if any(map(_goes_on, nodes)):
        return {n.id for n in nodes if isinstance(n, ast.Name)}
    found = {n.id for n in nodes if isinstance(n, ast.Name) and may_be_unbound(n)}
    later = [n for n in nodes if isinstance(n, COMPREHENSIONS)]
    later += [s for n in nodes for s in getattr(n, "finalbody", ())]
    inside = {n.id for n in own(later) if isinstance(n, ast.Name)}
    return found | inside | set(reads_below(body)) | scope.nonlocals


def _goes_on(node: ast.AST) -> bool:
    """Return True if a jump or a caught error inside the statement may replace a `return`.

    The jump is in a `finally`. The error comes from a `finally`, or from the end of a `with`. An
    error from the end of a `with` counts only if an `except` may catch it, not another `with`.
    """
    if isinstance(node, _TRIES):
        if _returns(node) and any(isinstance(n, (ast.Break, ast.Continue))
                                  for n in own(node.finalbody)):
            return True
        catches, ends = bool(node.handlers), True
    else:
        catches, ends = isinstance(node, _WITHS), False
    return catches and any(
        (isinstance(n, _TRIES) and n.finalbody or ends and isinstance(n, _WITHS)) and _returns(n)
        for n in own([node]) if n is not node)


def _returns(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Return) for n in own([node]))


def _joined(*states: State) -> State:
    reached = [state for state in states if state is not None]
    return frozenset.intersection(*reached) if reached else None


def _read_here(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    """Yield names that code of this scope reads or deletes. Nested functions are left out, and
    comprehensions that are functions."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store):
                yield node
        elif isinstance(node, SCOPES):
            pending += header(node)
        elif isinstance(node, COMPREHENSIONS) and not isinstance(node, INLINED):
            pending.append(node.generators[0].iter)
        else:
            pending += ast.iter_child_nodes(node)


class _Marker:
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def block(self, statements: list[ast.stmt], state: State) -> State:
        for statement in statements:
            handler = getattr(self, f"at_{type(statement).__name__}", self.simple)
            state = handler(statement, state)
        return state

    def read(self, nodes: Iterable[ast.AST | None], state: State) -> None:
        for name in _read_here(node for node in nodes if node is not None):
            self.mark(name, state)

    def mark(self, name: ast.Name, state: State) -> None:
        if state is not None and name.id in self.names and name.id not in state:
            name.unbound = True  # type: ignore[attr-defined]

    def simple(self, node: ast.stmt, state: State) -> State:
        self.read([node], state)
        return None if state is None else state | bound_names([node], surely=True)

    def jump(self, node: ast.stmt, state: State) -> State:
        self.read([node], state)
        return None

    at_Return = at_Raise = at_Break = at_Continue = jump

    def at_AnnAssign(self, node: ast.AnnAssign, state: State) -> State:
        self.read([node.value, node.target], state)
        return state if node.value is None or state is None else state | bound_names([node.target])

    def at_AugAssign(self, node: ast.AugAssign, state: State) -> State:
        if isinstance(node.target, ast.Name):
            self.mark(node.target, state)
        return self.simple(node, state)

    def at_Delete(self, node: ast.Delete, state: State) -> State:
        for target in node.targets:
            self.read([target], state)
            state = None if state is None else state - deleted_names([target])
        return state

    def at_If(self, node: ast.If, state: State) -> State:
        self.read([node.test], state)
        return _joined(self.block(node.body, state), self.block(node.orelse, state))

    def at_While(self, node: ast.While, state: State) -> State:
        state = None if state is None else state - deleted_names([node])
        self.read([node.test], state)
        self.block(node.body, state)
        self.block(node.orelse, state)
        return state

    def at_For(self, node: ast.For, state: State) -> State:
        self.read([node.iter], state)
        state = None if state is None else state - deleted_names([node])
        self.read([node.target], state)
        bound = None if state is None else state | bound_names([node.target])
        self.block(node.body, bound)
        self.block(node.orelse, state)
        return state

    def at_With(self, node: ast.With, state: State) -> State:
        self.read(node.items, state)
        bound = None if state is None else state | bound_names(node.items, surely=True)
        self.block(node.body, bound)
        return None if state is None else state - deleted_names([node])

    def at_Try(self, node: ast.Try, state: State) -> State:
        failed = None if state is None else state - deleted_names(node.body)
        ends = [self.block(node.orelse, self.block(node.body, state))]
        ends += [self.handler(handler, failed) for handler in node.handlers]
        self.block(node.finalbody, None if state is None else state - deleted_names([node]))
        return self.block(node.finalbody, _joined(*ends))

    at_TryStar = at_Try

    def handler(self, node: ast.ExceptHandler, state: State) -> State:
        self.read([node.type], state)
        name = {node.name} if node.name else set()
        state = self.block(node.body, None if state is None else state | name)
        return None if state is None else state - name

    def at_Match(self, node: ast.Match, state: State) -> State:
        self.read([node.subject], state)
        for case in node.cases:
            bound = None if state is None else state | bound_names([case.pattern])
            self.read([case.pattern, case.guard], bound)
            self.block(case.body, bound)
        return None if state is None else state - deleted_names([node])
