"""Expressions of a user function, in which the runtime object does all that may act on tensors.

In: expressions of one scope. Out: the same expressions. Calls, `and`, `or`, `not`, chained
comparisons, conditional expressions, subscripts, f-strings and displays go through the name
`RUNTIME`. Called by `rewrite.py` and `rewrite_stores.py`, which do the statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

from tracejit.jit.capture.rewrite_bound import may_be_unbound
from tracejit.jit.capture.rewrite_names import INLINED, Scope, has_walrus

# No user can write these as names, so they shadow nothing and are not mangled in classes.
RUNTIME, BOUND = "@tracejit", "@bound"
PLAIN_CALLS = {"isinstance", "issubclass", "hasattr", "callable", "len"}
ITERATORS = {"enumerate", "zip", "reversed", "range"}

Node = TypeVar("Node", bound=ast.AST)


def located(node: Node, at: ast.AST) -> Node:
    return ast.copy_location(node, at)


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def member(name: str, at: ast.AST) -> ast.Attribute:
    """Return `RUNTIME.name`, on one line: Python reports a call of a longer attribute at its
    end."""
    found = located(ast.Attribute(located(load(RUNTIME), at), name, ast.Load()), at)
    found.end_lineno, found.end_col_offset = found.lineno, found.col_offset
    return found


def ask(name: str, arguments: Sequence[ast.expr], at: ast.AST) -> ast.Call:
    """Return the call `RUNTIME.name(arguments)`."""
    return located(ast.Call(member(name, at), list(arguments), []), at)


def thunk(body: ast.expr, *names: str) -> ast.Lambda:
    """Return a lambda with this body. An unused parameter, `@thunk`, tells it from the user's own
    lambdas."""
    parameters = [ast.arg(name) for name in names]
    arguments = ast.arguments([], parameters, ast.arg("@thunk"), [], [], None, [])
    return located(ast.Lambda(arguments, body), body)


def call_location(node: ast.Call) -> ast.AST:
    """Return the place at which Python reports an error of a call: the method's name if it ends on
    another line."""
    attribute = node.func
    if not isinstance(attribute, ast.Attribute) or attribute.lineno == attribute.end_lineno:
        return node
    place = located(ast.Pass(), node)
    place.lineno = attribute.end_lineno or attribute.lineno
    place.col_offset = max(0, (attribute.end_col_offset or 0) - len(attribute.attr))
    return place


_NAMES = {
    (ast.And, False): "and_",
    (ast.Or, False): "or_",
    (ast.And, True): "both",
    (ast.Or, True): "either",
}


def for_its_truth(node: ast.expr) -> ast.expr:
    """Mark an expression whose truth alone counts, and its parts for which the same holds."""
    if isinstance(node, ast.BoolOp):
        node.only_truth = True  # type: ignore[attr-defined]
        for value in node.values:
            for_its_truth(value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.only_truth = True  # type: ignore[attr-defined]
        for_its_truth(node.operand)
    return node


class Expressions(ast.NodeTransformer):
    """Rewriter of the expressions of one scope. `inner` counts the inner functions around."""

    def __init__(self, scope: Scope, function: Callable[[ast.Lambda], ast.expr]) -> None:
        self.scope = scope
        self.function = function
        self.inner = 0
        self.comprehensions = 0

    def moved(self, node: ast.expr, *names: str) -> ast.Lambda:
        """Return the rewritten expression as a lambda with these parameters."""
        self.inner += 1
        body = self.visit(node)
        self.inner -= 1
        return thunk(body, *names)

    def tested(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression whose truth alone counts."""
        return self.visit(for_its_truth(node))

    def plain(self, node: ast.expr) -> bool:
        """Return True if the form of an expression shows that its truth is never a tensor's."""
        if isinstance(node, ast.BoolOp):
            return all(self.plain(value) for value in node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.plain(node.operand)
        if isinstance(node, ast.Compare):
            return self.plain_comparison(node)
        if isinstance(node, ast.Attribute):
            return node.attr == "training"
        return isinstance(node, ast.Constant) or self.plain_call(node)

    def plain_call(self, node: ast.expr) -> bool:
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        return name in PLAIN_CALLS and name not in self.scope.bound

    def plain_comparison(self, node: ast.Compare) -> bool:
        operands = [node.left, *node.comparators]
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return True
        if isinstance(node.ops[0], ast.In | ast.NotIn) and len(node.ops) == 1:
            (container,) = node.comparators  # `in` a text wants a known text on the left
            text = isinstance(container, ast.Constant) and isinstance(container.value, str)
            return _constant_container(container) and not text
        if any(isinstance(o, ast.Constant) and isinstance(o.value, str) for o in operands):
            return len(node.ops) == 1
        return all(isinstance(o, ast.Constant) or self.plain_call(o) for o in operands)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if self.inner and isinstance(node.ctx, ast.Load) and may_be_unbound(node):
            return self.checked(node)
        return node

    def checked(self, node: ast.Name) -> ast.Call:
        """Return a read that raises the error which the function that owns the name would raise."""
        value = thunk(located(load(node.id), node))
        name = ast.Constant(self.scope.compiled(node.id))
        return located(ast.Call(load(BOUND), [value, name], []), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if getattr(node.func, "id", "") == "super" and not node.args and not node.keywords:
            return self.bare_super(node)
        at = call_location(node)
        callee = ask("call", [self.visit(node.func)], at)
        arguments = [self.visit(argument) for argument in node.args]
        keywords = [self.visit(keyword) for keyword in node.keywords]
        for keyword in keywords:
            if keyword.arg is None:
                keyword.value = ask("named_plainly", [keyword.value], keyword.value)
        return located(ast.Call(callee, arguments, keywords), at)

    def bare_super(self, node: ast.Call) -> ast.expr:
        first = self.scope.first
        if self.scope.class_name is None or first is None or self.comprehensions:
            return node
        arguments: list[ast.expr] = [load("__class__"), load(first)]
        return located(ast.Call(ask("call", [node.func], node), arguments, []), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Ask the runtime for the owner of a stored or deleted attribute: it may be one of two
        tensors."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = ask("attribute_owner", [node.value], node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return ask("get_item", [node.value, node.slice], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if self.plain(node) or has_walrus(node):
            return self.generic_visit(node)  # type: ignore[return-value]
        name = _NAMES[type(node.op), hasattr(node, "only_truth")]
        *before, result = [self.moved(value) for value in node.values]
        while before:
            both = ask(name, [before.pop(), result], node)
            result = thunk(both)
        return both

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        plain = not hasattr(node, "only_truth") or self.plain(node)
        if isinstance(node.op, ast.Not):
            for_its_truth(node.operand)
        self.generic_visit(node)
        return node if plain else ask("not_", [node.operand], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            return self.identity(node)
        plain = self.plain(node) and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        if plain or len(node.ops) == 1 or has_walrus(*node.comparators[1:]):
            return self.searched(node)
        first, second, *others = [node.left, *node.comparators]
        chain = self.chain(node, node.ops, others)
        return located(ast.Call(chain, [self.visit(first), self.visit(second)], []), node)

    def identity(self, node: ast.Compare) -> ast.expr:
        """Rewrite `a is b`, except comparisons with None or `...`.

        These are no tensor that could be another one, nor a number that only the program knows.
        """
        operands = [node.left, *node.comparators]
        if any(isinstance(x, ast.Constant) and x.value in (None, ...) for x in operands):
            return self.generic_visit(node)  # type: ignore[return-value]
        return self.asked(node.ops[0], [self.visit(x) for x in operands], node)

    def asked(self, op: ast.cmpop, operands: list[ast.expr], at: ast.AST) -> ast.expr:
        """Return the runtime's `is` or `in`, under `not` for `is not` and `not in`."""
        found = ask("is_" if isinstance(op, ast.Is | ast.IsNot) else "in_", operands, at)
        negated = isinstance(op, ast.IsNot | ast.NotIn)
        return located(ast.UnaryOp(ast.Not(), found), at) if negated else found

    def searched(self, node: ast.Compare) -> ast.expr:
        """Rewrite a comparison. The runtime does `in`, which may consume an iterator."""
        plain = self.plain(node)
        self.generic_visit(node)
        if plain or len(node.ops) > 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        return self.asked(node.ops[0], [node.left, *node.comparators], node)

    def chain(self, node: ast.Compare, ops: list[ast.cmpop], others: list[ast.expr]) -> ast.Lambda:
        """Return a lambda of the first two operands for the whole chain; it evaluates each other
        operand once."""
        left, right = "@left", "@right"
        here: ast.expr = located(ast.Compare(load(left), ops[:1], [load(right)]), node)
        if isinstance(ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
            here = self.asked(ops[0], [load(left), load(right)], node)
        if not others:
            return thunk(here, left, right)
        following = self.chain(node, ops[1:], others[1:])
        self.inner += 1
        operands: list[ast.expr] = [load(right), self.visit(others[0])]
        self.inner -= 1
        after = located(ast.Call(following, operands, []), node)
        return thunk(ask("and_", [thunk(here), thunk(after)], node), left, right)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if self.plain(node.test) or has_walrus(node.body, node.orelse):
            return self.generic_visit(node)  # type: ignore[return-value]
        parts = [self.tested(node.test), self.moved(node.body), self.moved(node.orelse)]
        return ask("ternary", parts, node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self.defaults(node.args)
        return self.function(node)

    def defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(value) for value in arguments.defaults]
        values = arguments.kw_defaults
        arguments.kw_defaults = [value and self.visit(value) for value in values]

    def display(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        written = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        return node if written else ask("new_container", [node], node)

    visit_List = visit_Set = visit_Dict = display

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """Rewrite an f-string: the runtime formats each value where it stands, then joins the
        parts."""
        parts = [self.formatted(v) if isinstance(v, ast.FormattedValue) else v for v in node.values]
        plain = all(isinstance(v, ast.Constant) for v in node.values)
        return node if plain else ask("text", parts, node)

    def formatted(self, node: ast.FormattedValue) -> ast.expr:
        conversion = chr(node.conversion) if node.conversion > 0 else None
        spec = ast.Constant("") if node.format_spec is None else self.visit(node.format_spec)
        return ask("formatted", [self.visit(node.value), ast.Constant(conversion), spec], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        template = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if template and isinstance(node.op, ast.Mod):
            return ask("percent", [node.left, node.right], node)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = ask("iterated", [node.value], node.value)
        return node

    def comprehension(self, node: ast.expr) -> ast.expr:
        first = node.generators[0]  # type: ignore[attr-defined]
        iterable = ask("iterated", [self.visit(first.iter)], first.iter)
        inlined = isinstance(node, INLINED)
        self.comprehensions += not inlined
        first.iter = ast.Constant(None)
        self.generic_visit(node)
        first.iter = iterable
        for other in node.generators[1:]:  # type: ignore[attr-defined]
            other.iter = ask("iterated", [other.iter], other.iter)
        self.comprehensions -= not inlined
        return ask("new_container", [node], node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def iterable(self, node: ast.expr) -> ast.expr:
        """Rewrite the iterable of a `for`: the runtime gets the arguments of `enumerate`, `zip`,
        `reversed`, `range`."""
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ITERATORS:
            return self.visit(node)
        arguments = [self.iterable(argument) for argument in node.args]
        keywords = [self.visit(keyword) for keyword in node.keywords]
        parts = [self.visit(node.func), *arguments]
        return located(ast.Call(member("iterate", node), parts, keywords), node)


def _constant_container(node: ast.expr) -> bool:
    elements = getattr(node, "elts", None)
    if elements is None:
        return isinstance(node, ast.Constant)
    return all(isinstance(element, ast.Constant) for element in elements)
