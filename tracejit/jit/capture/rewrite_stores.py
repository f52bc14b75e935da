"""Simple statements of a user function: stores, deletions, imports, assertions.

In: a statement without blocks. Out: statements that do the same. They announce a change that other
code could see to the runtime object (`effect`), or let it make the change (`set_item`, `inplace`).
Called by `rewrite.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from tracejit.jit.capture.rewrite_bound import may_be_unbound
from tracejit.jit.capture.rewrite_expressions import Expressions, ask, load, located, store, thunk
from tracejit.jit.capture.rewrite_names import Scope, bound_names, has_walrus, own

OPERATORS = {
    ast.Add: "+=",
    ast.Sub: "-=",
    ast.Mult: "*=",
    ast.MatMult: "@=",
    ast.Div: "/=",
    ast.Mod: "%=",
    ast.Pow: "**=",
    ast.LShift: "<<=",
    ast.RShift: ">>=",
    ast.BitOr: "|=",
    ast.BitXor: "^=",
    ast.BitAnd: "&=",
    ast.FloorDiv: "//=",
}


def _stores_item(*targets: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in own(targets)
    )


class Stores:
    """Rewriter of the simple statements of one scope."""

    def __init__(self, scope: Scope, expressions: Expressions) -> None:
        self.scope = scope
        self.expressions = expressions
        self.count = 0

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        handler = getattr(self, f"at_{type(node).__name__}", self.evaluated)
        return [*self.announce([node], node), *handler(node)]

    def evaluated(self, node: ast.stmt) -> list[ast.stmt]:
        return [self.expressions.generic_visit(node)]  # type: ignore[list-item]

    # Announcements

    def effect(self, text: str, at: ast.AST) -> ast.stmt:
        return located(ast.Expr(ask("effect", [ast.Constant(text)], at)), at)

    def announce(self, nodes: Sequence[ast.AST], at: ast.AST) -> list[ast.stmt]:
        """Return announcements of what these nodes store or delete in sight of other code."""
        found = self.announce_names(bound_names(nodes), at)
        for node in own(nodes):
            context = getattr(node, "ctx", None)
            if isinstance(node, ast.Attribute) and not isinstance(context, ast.Load):
                does = "sets" if isinstance(context, ast.Store) else "deletes"
                found.append(self.effect(f"it {does} the attribute {node.attr}", node))
            elif isinstance(node, ast.Subscript) and isinstance(context, ast.Del):
                found.append(self.effect("it deletes an item", node))
        return found

    def announce_names(self, names: set[str], at: ast.AST) -> list[ast.stmt]:
        return [
            self.effect(f"it sets the {kind} variable {name}", at)
            for kind, outer in (("global", self.scope.globals), ("nonlocal", self.scope.nonlocals))
            for name in sorted(names & outer)
        ]

    def announce_walrus(self, node: ast.AST) -> list[ast.stmt]:
        """Return announcements of the names of other scopes that the head of a statement binds by
        `:=`."""
        fields = (getattr(node, field, None) for field in ("test", "iter", "value"))
        heads = [head for head in fields if isinstance(head, ast.expr)]
        return self.announce_names(bound_names(heads), node) if heads else []

    # Stores

    def temporary(self, kind: str) -> str:
        self.count += 1
        return f"@{kind}_{self.count}"

    def set(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        return located(ast.Assign([store(name)], value), at)

    def forget(self, names: Iterable[str], at: ast.AST) -> ast.stmt:
        return located(ast.Delete([ast.Name(name, ast.Del()) for name in names]), at)

    def at_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.expressions.visit(node.value)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            value = ask("iterated", [value], node.value)
        if not _stores_item(*node.targets):
            node.targets, node.value = [self.expressions.visit(t) for t in node.targets], value
            return [node]
        name = self.temporary("value")
        stored = [s for target in node.targets for s in self.bind(target, name, node)]
        return [self.set(name, value, node), *stored, self.forget([name], node)]

    def bind(self, target: ast.expr, name: str, at: ast.AST) -> list[ast.stmt]:
        """Return statements that store the temporary `name` in a target, parts of a pattern from
        left to right."""
        if isinstance(target, ast.Subscript):
            where = [self.expressions.visit(target.value), self.expressions.visit(target.slice)]
            call = ask("set_item", [*where, load(name)], target)
            return [located(ast.Expr(call), target)]
        if isinstance(target, ast.Tuple | ast.List) and _stores_item(target):
            return self.unpack(target, name, at)
        return [located(ast.Assign([self.expressions.visit(target)], load(name)), at)]

    def unpack(self, target: ast.Tuple | ast.List, name: str, at: ast.AST) -> list[ast.stmt]:
        names = [self.temporary("part") for _ in target.elts]
        parts: list[ast.expr] = [
            ast.Starred(store(part), ast.Store()) if isinstance(e, ast.Starred) else store(part)
            for e, part in zip(target.elts, names)
        ]
        pattern = located(ast.Tuple(parts, ast.Store()), target)
        done: list[ast.stmt] = [located(ast.Assign([pattern], load(name)), at)]
        for element, part in zip(target.elts, names):
            inner = element.value if isinstance(element, ast.Starred) else element
            done += self.bind(inner, part, at)
        return [*done, self.forget(names, at)]

    def at_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        """Drop the annotation: Python does not evaluate it inside functions, and forbids it on
        shared names."""
        if node.value is not None:
            return self.at_Assign(located(ast.Assign([node.target], node.value), node))
        parts = [getattr(node.target, field, None) for field in ("value", "slice")]
        found: list[ast.stmt] = [
            located(ast.Expr(self.expressions.visit(p)), node) for p in parts if p is not None
        ]
        return found or [located(ast.Pass(), node)]

    def at_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        if isinstance(node.target, ast.Name):
            return [self.set(node.target.id, self.updated(self.current(node.target), node), node)]
        if isinstance(node.target, ast.Attribute):
            return self.evaluated(node)
        return self.update_item(node, node.target)

    def current(self, target: ast.Name) -> ast.expr:
        name = located(load(target.id), target)
        name.unbound = may_be_unbound(target)  # type: ignore[attr-defined]
        return self.expressions.visit(name)

    def updated(self, old: ast.expr, node: ast.AugAssign) -> ast.expr:
        operator = ast.Constant(OPERATORS[type(node.op)])
        return ask("inplace", [operator, old, self.expressions.visit(node.value)], node)

    def update_item(self, node: ast.AugAssign, target: ast.Subscript) -> list[ast.stmt]:
        names = [self.temporary("object"), self.temporary("index")]
        parts = [self.expressions.visit(target.value), self.expressions.visit(target.slice)]
        before = [self.set(name, part, node) for name, part in zip(names, parts)]
        place = [load(name) for name in names]
        if isinstance(node.value, ast.Name | ast.Constant):  # read before the item, or twice
            parts = [*place, ast.Constant(OPERATORS[type(node.op)])]
            update = ask("update_item", [*parts, self.expressions.moved(node.value)], node)
            return [*before, located(ast.Expr(update), node), self.forget(names, node)]
        new = self.updated(ask("item_to_update", place, target), node)
        change = located(ast.Expr(ask("set_item", [*place, new], node)), node)
        return [*before, change, self.forget(names, node)]

    def at_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        return [s for target in node.targets for s in self.delete(target, node)]

    def delete(self, target: ast.expr, at: ast.AST) -> list[ast.stmt]:
        checked = []
        if self.expressions.inner and isinstance(target, ast.Name) and may_be_unbound(target):
            checked = [located(ast.Expr(self.expressions.checked(target)), target)]
        return [*checked, located(ast.Delete([self.expressions.visit(target)]), at)]

    # Others

    def declared(self, node: ast.stmt) -> list[ast.stmt]:
        """Drop a declaration: `rewrite.py` repeats it at the top of each inner function."""
        return [located(ast.Pass(), node)]

    at_Global = at_Nonlocal = declared

    def imports(self, node: ast.stmt) -> list[ast.stmt]:
        return [self.effect("it imports a module", node), node]

    at_Import = at_ImportFrom = imports

    def at_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        if not __debug__:
            return []
        if node.msg is not None and has_walrus(node.msg):
            return self.evaluated(node)
        test = self.expressions.tested(node.test)
        self.expressions.inner += 1
        message = [self.expressions.visit(node.msg)] if node.msg is not None else []
        self.expressions.inner -= 1
        parts = [test, *[thunk(text) for text in message]]
        return [located(ast.Expr(ask("assert_", parts, node)), node)]
