"""Names in a user function: its scope, and jumps out of its statements.

In: syntax trees of one user function. Out: the names that it binds, reads, declares global or
nonlocal. Also: does a block jump out of itself, and can the function be rewritten at all? Called by
the other files of the rewriting and by `source.py`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
LOOPS = (ast.For, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CHOOSING = (ast.BoolOp, ast.IfExp, ast.Compare, ast.Assert, *COMPREHENSIONS)
INLINED = (ast.ListComp, ast.SetComp, ast.DictComp) if sys.version_info >= (3, 12) else ()
SUSPENDS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
# Functions that look at the names of the frame that calls them.
FRAME_READERS = {"locals", "globals", "exec", "eval", "_getframe", "currentframe"}
FRAME_READERS_WITHOUT_ARGUMENTS = {"vars", "dir"}


def header(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a definition that the scope around evaluates.

    These are decorators, defaults, bases, keywords and annotations.
    """
    kept = [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ())]
    kept += getattr(node, "keywords", ())
    if isinstance(node, FUNCTIONS):
        kept += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        named = [n for n in ast.iter_child_nodes(node.args) if isinstance(n, ast.arg)]
        kept += [a for a in (*[n.annotation for n in named], getattr(node, "returns", None)) if a]
    return kept


def own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield all nodes of one scope, with comprehensions; of nested definitions the header alone."""
    pending = [*nodes][::-1]
    while pending:
        node = pending.pop()
        yield node
        inside = header(node) if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
        pending += [*inside][::-1]


def bound_names(nodes: Iterable[ast.AST], surely: bool = False) -> set[str]:
    """Return the names that statements bind or delete in their own scope.

    `surely`: only names bound by the parts of expressions that Python always evaluates.
    """
    found: set[str] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        found |= _bound_here(node)
        if surely and isinstance(node, CHOOSING):
            pending += _evaluated_first(node)
        elif isinstance(node, COMPREHENSIONS):
            walrus = (n for n in own([node]) if isinstance(n, ast.NamedExpr))
            found |= {n.target.id for n in walrus}
        else:
            pending += header(node) if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
    return found


def _evaluated_first(node: ast.AST) -> list[ast.expr]:
    """Return the parts of an expression that Python always evaluates."""
    if isinstance(node, ast.Compare):
        return [node.left, node.comparators[0]]
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    return [node.test] if isinstance(node, ast.IfExp | ast.Assert) else []


def _bound_here(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.alias):
        return {node.asname or node.name.split(".")[0]}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return {node.name} if node.name else set()
    if isinstance(node, ast.MatchMapping):
        return {node.rest} if node.rest else set()
    return set()


def deleted_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that may become unbound again: by `del`, or as variable of an exception
    handler."""
    found = set()
    for node in own(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)


def reads(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count how often the scope itself reads each name.

    A comprehension's reads of its own variables count only in its first iterable. A `del` counts,
    since it needs the name.
    """
    counts: Counter[str] = Counter()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if _is_read(node):
            counts[node.id] += 1  # type: ignore[attr-defined]
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] += 1
        if isinstance(node, COMPREHENSIONS):
            inside, first = reads(ast.iter_child_nodes(node)), reads([node.generators[0].iter])
            bound = _bound_by(node)
            counts += Counter({n: first[n] if n in bound else k for n, k in inside.items()})
        else:
            pending += header(node) if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
    return counts


def _bound_by(comprehension: ast.AST) -> set[str]:
    targets = [generator.target for generator in comprehension.generators]  # type: ignore[attr-defined]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def reads_below(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count reads in the bodies of nested functions and classes, whichever scope binds the
    names."""
    counts: Counter[str] = Counter()
    for node in own(nodes):
        if isinstance(node, SCOPES):
            body = node.body if isinstance(node.body, list) else [node.body]
            counts += reads(body) + reads_below(body)
    return counts


def has_walrus(*nodes: ast.AST) -> bool:
    """Return True if an expression binds a name, so that it cannot move into a function of its
    own."""
    return any(isinstance(node, ast.NamedExpr) for node in own(nodes))


def leaves(statements: Iterable[ast.stmt], loops: int = 0) -> bool:
    """Return True if a `return`, `break` or `continue` here jumps out of these statements."""
    return any(_leaves(statement, loops) for statement in statements)


def _leaves(node: ast.stmt, loops: int) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.Break | ast.Continue):
        return not loops
    if isinstance(node, LOOPS):
        return leaves(node.body, loops + 1) or leaves(node.orelse, loops)
    return any(leaves(block, loops) for block in blocks(node))


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement that belong to the same scope."""
    if isinstance(node, SCOPES):
        return []
    found = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
    parts = [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    return found + [part.body for part in parts]


def looks_at_its_frame(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    bare = not node.args and not node.keywords and isinstance(node.func, ast.Name)
    return name in FRAME_READERS or (bare and name in FRAME_READERS_WITHOUT_ARGUMENTS)


def parameters(arguments: ast.arguments) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    stars = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [a.arg for a in [*positional, *arguments.kwonlyargs, *stars]]


def body_of(node: Function) -> list[ast.stmt]:
    """Return the statements of a function; a lambda is one `return`."""
    if isinstance(node, ast.Lambda):
        return [ast.copy_location(ast.Return(node.body), node.body)]
    return node.body


@dataclass
class Scope:
    """Names of one user function, and where they live."""

    parameters: list[str]
    first: str | None
    bound: set[str]
    globals: set[str]
    nonlocals: set[str]
    counts: Counter[str]
    class_name: str | None  # of the class around the function
    convertible: bool

    @property
    def cells(self) -> set[str]:
        """Names that an inner function can declare nonlocal."""
        return self.bound | self.nonlocals

    def compiled(self, name: str) -> str:
        """Return a name as Python compiles it: private names of a class carry the class's name."""
        owner = (self.class_name or "").lstrip("_")
        private = name.startswith("__") and not name.endswith("__")
        return f"_{owner}{name}" if owner and private else name

    @property
    def foreign(self) -> set[str]:
        """Names bound here that live elsewhere: globals, and variables of enclosing functions."""
        return self.globals | self.nonlocals


def scope_of(node: Function, class_name: str | None) -> Scope:
    """Collect the names of one function."""
    body = body_of(node)
    nodes = list(own(body))
    outer = {n for d in nodes if isinstance(d, ast.Global) for n in d.names}
    enclosing = {n for d in nodes if isinstance(d, ast.Nonlocal) for n in d.names}
    named = parameters(node.args)
    positional = [*node.args.posonlyargs, *node.args.args]
    refused = any(isinstance(n, SUSPENDS) or looks_at_its_frame(n) for n in nodes)
    refused |= any(isinstance(n, ast.comprehension) and n.is_async for n in nodes)
    return Scope(
        parameters=named,
        first=positional[0].arg if positional else None,
        bound=(bound_names(body) | set(named)) - outer - enclosing,
        globals=outer,
        nonlocals=enclosing,
        counts=reads(body) + reads_below(body),
        class_name=class_name,
        convertible=not refused and not isinstance(node, ast.AsyncFunctionDef),
    )
