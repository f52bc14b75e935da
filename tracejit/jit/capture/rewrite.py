"""Statements of a user function, with control flow handed to a runtime object.

In: the syntax tree of one function. Out: a tree of the same function. In it the blocks of `if`,
`while` and `for` are inner functions that share its variables, and jumps are what these functions
return. Called by `source.py`, which finds the tree and compiles the result.

Inner functions are defined at the top of the function and share its variables as cells. Each
returns None at its end, else a signal: BREAK, CONTINUE or Return(value). A statement that may jump
out of itself takes the rest of its block along. So each of its ends is an end of the function.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracejit.jit.capture.rewrite_bound import mark_unbound, upward_exposed_names
from tracejit.jit.capture.rewrite_expressions import (
    Expressions,
    ask,
    for_its_truth,
    load,
    located,
    member,
    store,
)
from tracejit.jit.capture.rewrite_liveness import mark_private, private_to_iterations
from tracejit.jit.capture.rewrite_names import (
    LOOPS,
    Function,
    blocks,
    body_of,
    bound_names,
    has_walrus,
    leaves,
    reads,
    scope_of,
)
from tracejit.jit.capture.rewrite_stores import Stores

ITEM, SIGNAL = "@item", "@signal"
_UNTYPED: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}


@dataclass(frozen=True)
class Rest:
    """Rest of a block after a statement, as an inner function.

    `bound` and `reads`: the names that it and the rests after it bind and read.
    """

    function: str
    bound: frozenset[str]
    reads: Counter[str]


@dataclass(frozen=True)
class Block:
    """Statements that become an inner function; `after` runs at their end, `start` makes those
    before them."""

    name: str
    statements: list[ast.stmt]
    after: Rest | None
    names: tuple[str, ...]
    loops: int
    at: ast.AST
    start: Callable[[], list[ast.stmt]] = list
    parameters: tuple[str, ...] = ()
    binds: frozenset[str] = frozenset()  # by `start`
    within: bool = False  # in a native statement such as `with`; the iteration goes on after it


def rewrite_function(node: Function, class_name: str | None) -> Function:
    """Rewrite the function's control flow; return the function unchanged if that cannot be done.

    `class_name`: the class around the function.
    """
    scope = scope_of(node, class_name)
    if not scope.convertible:
        return node
    return _Rewriter(node, class_name).function()


class _Rewriter:
    """Rewriter of one user function; nested functions get rewriters of their own."""

    def __init__(self, node: Function, class_name: str | None) -> None:
        self.node = node
        self.class_name = class_name
        self.scope = scope_of(node, class_name)
        self.expressions = Expressions(self.scope, self.nested)
        self.stores = Stores(self.scope, self.expressions)
        self.upward_exposed: set[str] = set()
        self.pending: list[Block] = []
        self.count = 0
        self.loops = 0
        self.within = False  # as `Block.within`, of the place at work
        self.leaving = False  # as `Block.within`, of the inner function at work
        self.ends = False  # the iteration ends with the statement at work

    def nested(self, node: ast.Lambda) -> ast.expr:
        return rewrite_function(node, self.class_name)  # type: ignore[return-value]

    def function(self) -> Function:
        body = body_of(self.node)
        mark_unbound(body, self.scope)
        self.upward_exposed = upward_exposed_names(body, self.scope)
        mark_private(body, self.scope)
        if isinstance(self.node, ast.Lambda):
            self.node.body = self.expressions.visit(self.node.body)
            return self.node
        text = body[:1] if ast.get_docstring(self.node, clean=False) is not None else []
        main = self.block(body[len(text) :])
        self.node.body = [*text, *self.bindings(), *self.functions(), *main] or body
        return self.node

    def bindings(self) -> list[ast.stmt]:
        """Return the declarations of the function, after dead code that makes every local name a
        variable of it.

        Without that code, a name that only inner functions bind would be none of its variables.
        """
        names = sorted(self.scope.bound - set(self.scope.parameters))
        never = ast.If(ast.Constant(False), [], [])
        never.body = [ast.Assign([store(name)], ast.Constant(None)) for name in names]
        found: list[ast.stmt] = [never] if names else []
        found += [ast.Global([name]) for name in sorted(self.scope.globals)]
        found += [ast.Nonlocal([name]) for name in sorted(self.scope.nonlocals)]
        return [located(statement, self.node) for statement in found]

    def functions(self) -> list[ast.stmt]:
        defined: list[ast.stmt] = []
        while self.pending:
            defined.append(self.inner_function(self.pending.pop()))
        return defined

    def inner_function(self, block: Block) -> ast.FunctionDef:
        self.loops, self.expressions.inner = block.loops, 1
        self.within = self.leaving = block.within
        outer = sorted((bound_names(block.statements) | block.binds) & self.scope.globals)
        body: list[ast.stmt] = [ast.Nonlocal([*block.names])] if block.names else []
        body += [ast.Global(outer)] if outer else []
        body += [*block.start(), *self.block(block.statements, block.after)]
        arguments = ast.arguments(
            [], [ast.arg(n) for n in block.parameters], None, [], [], None, []
        )
        return located(
            ast.FunctionDef(block.name, arguments, body or [ast.Pass()], [], **_UNTYPED), block.at
        )

    def name(self, kind: str) -> str:
        self.count += 1
        return f"@{kind}_{self.count}"

    # Blocks

    def block(
        self, statements: list[ast.stmt], after: Rest | None = None, tail: bool = True
    ) -> list[ast.stmt]:
        """Rewrite a block, which calls `after` at its end. `tail`: its end is the function's
        end."""
        done: list[ast.stmt] = []
        for place, statement in enumerate(statements, 1):
            rest = statements[place:]
            self.ends = not (self.within or rest or after)
            if self.takes_rest(statement, tail):
                return done + self.with_rest(statement, rest, after, tail)
            done += self.statement(statement)
            if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
                return done
        if after is not None:
            at = statements[-1] if statements else self.node
            signal = located(ast.Call(load(after.function), [], []), at)
            done.append(self.given_back(signal))
        return done

    def native(self, statement: ast.stmt) -> bool:
        """Return True if a statement stays itself, though its blocks are rewritten."""
        if isinstance(statement, ast.If):
            return self.expressions.plain(statement.test)
        return not isinstance(statement, LOOPS)

    def takes_rest(self, statement: ast.stmt, tail: bool) -> bool:
        """Return True if the statement may jump by a signal, so that it takes the rest of its block
        along."""
        if not leaves([statement]):
            return False
        native_if = isinstance(statement, ast.If) and self.native(statement)
        return not self.native(statement) or (tail and native_if and self.signals(statement))

    def signals(self, statement: ast.stmt) -> bool:
        """Return True if a statement inside a native one jumps by a signal."""
        inside = [inner for block in blocks(statement) for inner in block]
        return any(
            leaves([inner]) and (not self.native(inner) or self.signals(inner)) for inner in inside
        )

    def with_rest(
        self, statement: ast.stmt, rest: list[ast.stmt], after: Rest | None, tail: bool
    ) -> list[ast.stmt]:
        following = self.rest(rest, after) if rest else after
        if self.native(statement):
            return self.native_if(statement, following, tail=True)  # type: ignore[arg-type]
        before = self.stores.announce_walrus(statement)
        signal = self.control(statement, following)
        return [*before, *([self.given_back(signal)] if tail else self.passed_on(signal))]

    def given_back(self, signal: ast.expr) -> ast.stmt:
        """Return a statement that returns a signal; in the user's function itself, the value of the
        signal."""
        value = signal if self.expressions.inner else ask("value", [signal], signal)
        return located(ast.Return(value), signal)

    def rest(self, statements: list[ast.stmt], after: Rest | None) -> Rest:
        bound = bound_names(statements) | (after.bound if after else set())
        counts = reads(statements) + (after.reads if after else Counter())
        found = Rest(self.name("rest"), frozenset(bound), counts)
        place = (self.shared(bound), self.loops, statements[0])
        self.pending.append(Block(found.function, statements, after, *place, within=self.within))
        return found

    def passed_on(self, signal: ast.expr) -> list[ast.stmt]:
        """Return statements that store a signal and return it unless it is None.

        `resolve_exit` makes the signal known first, since native statements stand around it.
        """
        signal = ask("resolve_exit", [signal, *[ast.Constant(True)] * self.leaving], signal)
        given = ast.Compare(load(SIGNAL), [ast.IsNot()], [ast.Constant(None)])
        out = self.given_back(located(load(SIGNAL), signal))
        found = [ast.Assign([store(SIGNAL)], signal), ast.If(given, [out], [])]
        return [located(statement, signal) for statement in found]

    # Control flow

    def shared(self, bound: set[str] | frozenset[str]) -> tuple[str, ...]:
        return tuple(sorted(bound & self.scope.cells))

    def live_out(self, names: tuple[str, ...], inside: Counter[str]) -> tuple[str, ...]:
        """Return the names that code reads outside a statement, or the statement itself in a later
        iteration."""
        others = self.scope.counts.copy()
        if not self.loops:
            others.subtract(inside)
        return tuple(n for n in names if others[n] > 0 or n in self.scope.nonlocals)

    def told(self, names: tuple[str, ...]) -> ast.Constant:
        """Return names of variables as the runtime object finds them in a code object."""
        found: Any = tuple([self.scope.compiled(name) for name in names])
        return ast.Constant(found)

    def control(self, node: ast.stmt, following: Rest | None) -> ast.Call:
        """Make the call that runs an `if`, `while` or `for`; its result is a signal."""
        bound, inside = bound_names([node]), reads([node])
        if following is not None:
            bound, inside = bound | following.bound, inside + following.reads
        names = self.shared(bound)
        upward_exposed = tuple(n for n in names if n in self.upward_exposed)
        described: list[ast.expr] = [
            self.told(x) for x in (names, self.live_out(names, inside), upward_exposed)]
        if isinstance(node, ast.If):
            return self.branches(node, following, names, described)
        return self.loop(node, following, names, described)  # type: ignore[arg-type]

    def part(
        self,
        kind: str,
        statements: list[ast.stmt],
        after: Rest | None,
        names: tuple[str, ...],
        at: ast.AST,
    ) -> ast.expr:
        """Queue a block as an inner function; return the expression that loads it."""
        name = self.name(kind)
        self.pending.append(
            Block(name, statements, after, names, self.loops, at, within=self.within))
        return load(name)

    def branches(
        self, node: ast.If, after: Rest | None, names: tuple[str, ...], described: list
    ) -> ast.Call:
        body = self.part("if", node.body, after, names, node)
        orelse = self.part("else", node.orelse, after, names, node)
        parts = [self.expressions.tested(node.test), body, orelse, *described]
        return ask("if_", parts, node.test)

    def loop(
        self,
        node: ast.For | ast.While,
        following: Rest | None,
        names: tuple[str, ...],
        described: list,
    ) -> ast.Call:
        none = ast.Constant(None)
        over, head = self.loop_head(node, names)
        self.pending.append(head)
        orelse = self.part("else", node.orelse, following, names, node) if node.orelse else none
        rest = load(following.function) if following else none
        kind, at = ("for_", node.iter) if isinstance(node, ast.For) else ("while_", node.test)
        private = self.told(self.shared(private_to_iterations(node)))
        return ask(kind, [over, load(head.name), orelse, rest, *described, private], at)

    def loop_head(
        self, node: ast.For | ast.While, names: tuple[str, ...]
    ) -> tuple[ast.expr, Block]:
        """Return the iterable or test of a loop, and the block of its body."""
        place = (names, self.loops + 1, node)
        if isinstance(node, ast.While):
            over = self.test(node, names)
            return over, Block(self.name("while"), node.body, None, *place)
        target = node.target

        def start() -> list[ast.stmt]:
            effects = self.stores.announce([target], target)
            return [*effects, *self.stores.bind(target, ITEM, target)]

        over = self.expressions.iterable(node.iter)
        return over, Block(
            self.name("for"),
            node.body,
            None,
            *place,
            start,
            (ITEM,),
            frozenset(bound_names([target])),
        )

    def test(self, node: ast.While, names: tuple[str, ...]) -> ast.expr:
        """Return the test of a `while` as a function: an inner function if it binds names, else a
        lambda."""
        if not has_walrus(node.test):
            return self.expressions.moved(for_its_truth(node.test))
        name = self.name("test")

        def start() -> list[ast.stmt]:
            before = self.stores.announce_walrus(node)
            value = self.expressions.tested(node.test)
            return [*before, located(ast.Return(value), node.test)]

        binds = frozenset(bound_names([node.test]))
        place = (names, self.loops + 1, node.test)
        self.pending.append(Block(name, [], None, *place, start, binds=binds))
        return load(name)

    # Statements

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Rewrite one statement that jumps by no signal."""
        handler = getattr(self, f"at_{type(node).__name__}", None)
        if handler is not None:
            return handler(node)
        return self.stores.statement(node)

    def at_Return(self, node: ast.Return) -> list[ast.stmt]:
        before = self.stores.announce_walrus(node)
        value = node.value and self.expressions.visit(node.value)
        if self.expressions.inner:
            value = ask("Return", [value or ast.Constant(None)], node)
        return [*before, located(ast.Return(value), node)]

    def at_Break(self, node: ast.stmt) -> list[ast.stmt]:
        return [located(ast.Return(member("BREAK", node)), node)]

    def at_Continue(self, node: ast.stmt) -> list[ast.stmt]:
        signal = "CONTINUE_THROUGH" if self.leaving else "CONTINUE"
        return [located(ast.Return(member(signal, node)), node)]

    def at_If(self, node: ast.If) -> list[ast.stmt]:
        if self.native(node):
            return self.native_if(node, None, tail=False)
        return self.controlled(node)

    def controlled(self, node: ast.stmt) -> list[ast.stmt]:
        before = self.stores.announce_walrus(node)
        call = self.control(node, None)
        return [*before, located(ast.Expr(call), call)]

    at_While = at_For = controlled

    def native_if(self, node: ast.If, after: Rest | None, tail: bool) -> list[ast.stmt]:
        before, ends = self.stores.announce_walrus(node), self.ends
        node.test = self.expressions.visit(node.test)
        orelse = node.orelse and self.inside(node.orelse, after, tail, ends)
        orelse = orelse or self.block([], after, tail)
        node.body, node.orelse = self.inside(node.body, after, tail, ends), orelse
        return [*before, node]

    def inside(
        self, statements: list[ast.stmt], after: Rest | None = None, tail: bool = False,
        ends: bool = False
    ) -> list[ast.stmt]:
        """Rewrite a block of a native statement; the result is never empty.

        `ends`: the iteration ends with the block.
        """
        around, self.within = self.within, self.within or not (tail or ends)
        done = self.block(statements, after, tail)
        self.within = around
        return done or [located(ast.Pass(), statements[0])]

    def at_With(self, node: ast.With) -> list[ast.stmt]:
        before = self.stores.announce(node.items, node)
        node.items = [self.expressions.visit(item) for item in node.items]
        node.body = self.inside(node.body, ends=self.ends)
        return [*before, node]

    def at_Try(self, node: ast.Try) -> list[ast.stmt]:
        caught = [ast.ExceptHandler(h.type, h.name, []) for h in node.handlers]
        before, ends = self.stores.announce(caught, node), self.ends
        node.body = self.inside(node.body, ends=ends and not node.orelse)
        for handler in node.handlers:
            handler.type = handler.type and self.expressions.visit(handler.type)
            handler.body = self.unless_refused(self.inside(handler.body, ends=ends))
        node.orelse = node.orelse and self.inside(node.orelse, ends=ends)
        # no `ends`: a jump or an error may go on behind a `finally`
        last = node.finalbody and self.inside(node.finalbody)
        node.finalbody = last and self.unless_refused(last)
        return [*before, node]

    at_TryStar = at_Try

    def unless_refused(self, block: list[ast.stmt]) -> list[ast.stmt]:
        """Guard an `except` or `finally` block: it must not run where a refused trial raises."""
        return [located(ast.Expr(ask("unless_refused", [], block[0])), block[0]), *block]

    def at_Match(self, node: ast.Match) -> list[ast.stmt]:
        headers = [part for case in node.cases for part in (case.pattern, case.guard) if part]
        before, ends = self.stores.announce([node.subject, *headers], node), self.ends
        node.subject = self.expressions.visit(node.subject)
        for case in node.cases:
            case.guard = case.guard and self.expressions.visit(case.guard)
            case.body = self.inside(case.body, ends=ends)
        return [*before, node]

    def at_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        before = self.stores.announce_names({node.name}, node)
        self.expressions.defaults(node.args)
        node.decorator_list = [self.decorator(d) for d in node.decorator_list]
        return [*before, rewrite_function(node, self.class_name)]  # type: ignore[list-item]

    def decorator(self, node: ast.expr) -> ast.expr:
        return ask("call", [self.expressions.visit(node)], node)

    def at_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> list[ast.stmt]:
        return [*self.stores.announce_names({node.name}, node), node]

    def at_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:
        before = self.stores.announce_names({node.name}, node)
        node.decorator_list = [self.decorator(d) for d in node.decorator_list]
        node.bases = [self.expressions.visit(b) for b in node.bases]
        node.keywords = [self.expressions.visit(k) for k in node.keywords]
        return [*before, node]
