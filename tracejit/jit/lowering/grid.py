"""CUDA grids: a kernel's text dealt out, the same statements with the shared loop in strides.

In: a Kernel in the one ABI. Out: a `GridKernel`. Its text takes, besides the ABI's parameters,
shared memory of its block and its own number: worker of `workers`, lane of `lanes`. Called by `ptx`
and by `numba_cuda`, so that compiled code and numba's simulator run one text.

    thread   a worker is a thread; the loop over lo..hi, or over a segment, goes in strides
    column   a worker is a block and takes tiles; its lanes share the columns of a tile
    row      a worker is a block and takes rows; its lanes share inner loops, and reductions are
             finished in the order of the lanes, so that results depend on shapes alone
    single   one thread runs the text as it is: scatters, and whatever is none of the above

Before you add a rule here: the forms are recognised by the text that `printing.py`, `columns.py`
and `kernels.py` write, such as `range(lo, hi)`. `deal` tries column, row and thread in this order,
each on a fresh copy; a form that does not fit raises `Refused`. A form may change its copy before
it refuses. A loop that is written otherwise silently gets a simpler form. `test_kinds` in
`tests/cuda/test_ptx.py` shows that.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.jit.lowering import abi
from tracejit.jit.lowering.kernel_emitter import function_definition
from tracejit.jit.lowering.long_sums import BLOCK, BLOCK_NAME
from tracejit.jit.lowering.program import Kernel

PLACES = ("shared", "worker", "workers", "lane", "lanes")
PARAMETERS = (*abi.PARAMETERS, *PLACES)
LANES = {"thread": 1, "single": 1, "column": 256, "row": 32}
SHARED_BYTES = 8 * LANES["row"]


class Refused(Exception):
    """Text is not of the expected form; `deal` tries a simpler form."""


@dataclass(frozen=True)
class GridKernel:
    """Kernel's text for a grid. `kind` says what a worker is; `checked`: it may fail."""

    kernel: Kernel
    kind: str
    source: str
    checked: bool

    @property
    def lanes(self) -> int:
        return LANES[self.kind]


def barrier() -> None:
    """Wait for all threads of the block; numba's simulator runs this very text."""
    from numba import cuda

    cuda.syncthreads()


@functools.lru_cache(maxsize=4096)
def deal(kernel: Kernel) -> GridKernel:
    """Return the kernel's text for a grid, in the most parallel form it allows."""
    from tracejit.jit.lowering.native import namespace_of

    namespace = namespace_of(kernel)
    for kind, form in (("column", _columns), ("row", _rows), ("thread", _threads)):
        definition = _definition(kernel)
        try:
            form(definition, namespace)
        except Refused:
            continue
        return GridKernel(kernel, kind, _module(kernel, definition), bool(kernel.messages))
    definition = _definition(kernel)
    return GridKernel(kernel, "single", _module(kernel, definition), bool(kernel.messages))


class _InBlocks(ast.NodeTransformer):
    """Keeps the text with blocks, which serves every length, and drops the one for short rows."""

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test).endswith(f" <= {BLOCK}") else node


def _definition(kernel: Kernel) -> ast.FunctionDef:
    found = function_definition(kernel.source, kernel.name)
    return _InBlocks().visit(found)


def _module(kernel: Kernel, definition: ast.FunctionDef) -> str:
    """Return the module's text with the function replaced."""
    definition.args.args = [ast.arg(name) for name in PARAMETERS]
    tree = ast.parse(kernel.source)
    at = next(
        k for k, node in enumerate(tree.body)
        if isinstance(node, ast.FunctionDef) and node.name == kernel.name
    )  # fmt: skip
    elements = ", ".join(f"{element}_scratch" for element in _SHARED_ELEMENTS)
    imports = ast.parse(
        f"from tracejit.jit.lowering.abi import {elements}\n"
        "from tracejit.jit.lowering.grid import barrier"
    )
    tree.body[at : at + 1] = [*imports.body, definition]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


_SHARED_ELEMENTS = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8")


# -- the shared loop -----------------------------------------------------------------------------


def _threads(definition: ast.FunctionDef, namespace: dict[str, Any]) -> None:
    """Give each thread elements that are `workers` apart."""
    place = _shared_loop(definition)
    if place is None:
        raise Refused
    body, k = place
    body[k : k + 1] = _strided(body[k], "worker", "workers")


def _shared_loop(definition: ast.FunctionDef) -> tuple[list[Any], int] | None:
    """Return the place of the loop over lo..hi: a list of statements and a position in it, or
    None."""
    uses = [n.id for n in _names(definition.body) if n.id in ("lo", "hi")]
    if sorted(uses) != ["hi", "lo"]:
        return None
    for k, statement in enumerate(definition.body):
        if _ranges(statement) == "range(lo, hi)":
            return definition.body, k
        if isinstance(statement, ast.For) and _ranges(statement) == "range(segments)":
            return _segment_loop(statement)
    return None


def _segment_loop(segments: ast.For) -> tuple[list[Any], int] | None:
    """Return the place of the loop over one segment's part of lo..hi, or None."""
    last = segments.body[-1]
    if isinstance(last, ast.If) and _ranges(last.body[-1]) == "range(first, last)":
        return last.body, len(last.body) - 1
    return None


def _ranges(statement: Any) -> str:
    return ast.unparse(statement.iter) if isinstance(statement, ast.For) else ""


def _strided(loop: Any, first: str, step: str) -> list[ast.stmt]:
    """Return `for x in range(a, b)` as a loop over every `step`-th, from the `first` on."""
    if not isinstance(loop, ast.For) or any(isinstance(n, ast.Continue) for n in ast.walk(loop)):
        raise Refused
    bounds = [ast.unparse(a) for a in loop.iter.args]  # type: ignore[attr-defined]
    if len(bounds) > 2:
        raise Refused
    start = f"{bounds[0]} + {first}" if len(bounds) == 2 and bounds[0] != "0" else first
    name = ast.unparse(loop.target)
    found = ast.parse(f"{name} = {start}\nwhile {name} < {bounds[-1]}:\n    {name} += {step}").body
    found[1].body[:0] = loop.body  # type: ignore[attr-defined]
    return found


# -- a tile of columns for each block ------------------------------------------------------------


def _columns(definition: ast.FunctionDef, namespace: dict[str, Any]) -> None:
    """Give each block tiles. Each lane keeps to its own columns, so no lane waits for another."""
    place = _shared_loop(definition)
    if place is None or "range(first, last)" in _ranges(place[0][place[1]]):
        raise Refused
    body, k = place
    across = [n for n in ast.walk(body[k]) if _ranges(n) == "range(first, last)"]
    inside = {id(n) for loop in across for n in ast.walk(loop)}
    if not across or not all(id(store) in inside for store in _stores([body[k]])):
        raise Refused
    body[k] = _AcrossLanes().visit(body[k])
    body[k : k + 1] = _strided(body[k], "worker", "workers")


class _AcrossLanes(ast.NodeTransformer):
    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if _ranges(node) == "range(first, last)":
            return _strided(node, "lane", "lanes")
        return node


# -- a row for each block ------------------------------------------------------------------------


def _rows(definition: ast.FunctionDef, namespace: dict[str, Any]) -> None:
    """Give each block rows. If there is one row only, the whole text is that row."""
    place = _shared_loop(definition)
    if place is None:
        if any(n.id in ("lo", "hi") for n in _names(definition.body)):
            raise Refused
        definition.body = _Row(namespace).shared(definition.body)
        return
    body, k = place
    if not _loops(body[k].body) or _ranges(body[k]) != "range(lo, hi)":
        raise Refused
    if _loops(body[:k]):
        raise Refused  # every block would repeat them alone
    body[k].body = _Row(namespace).shared(body[k].body)
    body[k : k + 1] = _strided(body[k], "worker", "workers")


class _Row:
    """Shares out the statements of one row among the lanes."""

    def __init__(self, namespace: dict[str, Any]):
        self.namespace = namespace
        self.first: dict[str, Any] = {}  # name -> what it was given at the row's own level

    def shared(self, statements: Sequence[Any]) -> list[Any]:
        if not _loops(statements):
            raise Refused
        found: list[Any] = []
        # Lanes wait before one stores for all, and where one may read what another stored.
        apart = True
        for statement in statements:
            if isinstance(statement, ast.For):
                found += [] if apart else ast.parse("barrier()").body
                found += self._loop(statement)
                apart = not _stores([statement])
            elif _stores([statement]) and not isinstance(statement, ast.If):
                found += ast.parse("barrier()").body
                found.append(ast.If(ast.parse("lane == 0", mode="eval").body, [statement], []))
                apart = False
            elif isinstance(statement, (ast.Assign, ast.If, ast.Expr)):
                self._noted(statement)
                found.append(statement)
            else:
                raise Refused
        return found

    def _noted(self, statement: Any) -> None:
        inside = list(ast.walk(statement))
        if isinstance(statement, ast.If):
            if _stores([statement]) or any(isinstance(n, (ast.For, ast.While)) for n in inside):
                raise Refused
        for node in inside:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.first[node.targets[0].id] = node.value

    def _loop(self, loop: ast.For) -> list[Any]:
        steps = [
            n for n in ast.walk(loop)
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
            and n.targets[0].id in self.first
        ]  # fmt: skip
        totals = [ast.unparse(step.targets[0]) for step in steps]
        own = {n.id for n in _names([loop]) if isinstance(n.ctx, ast.Store)}
        own -= {ast.unparse(n.target) for n in ast.walk(loop) if isinstance(n, ast.For)}
        places = [n.targets[0].slice for n in _stores([loop])]
        if len(set(totals)) != len(totals) or own & {n.id for n in _names(places)}:
            raise Refused  # a scatter, among others: its order matters
        combined: list[Any] = []
        for step, total in zip(steps, totals):
            combined += self._combined(step.value, total)
        return [*self._dealt(loop), *combined]

    def _dealt(self, loop: ast.For) -> list[Any]:
        """Return the loop with its elements dealt out; of a loop over blocks, each block's
        elements."""
        if ast.unparse(loop.target) != BLOCK_NAME:
            return _strided(loop, "lane", "lanes")
        (k,) = (k for k, inner in enumerate(loop.body) if isinstance(inner, ast.For))
        loop.body[k : k + 1] = _strided(loop.body[k], "lane", "lanes")
        return [loop]

    def _combined(self, step: ast.expr, total: str) -> list[ast.stmt]:
        """Return statements that make the lanes' totals one, the same in every lane."""
        others = {n.id for n in _names([step])} - {total}
        others -= {name for name in others if callable(self._meaning(name))}
        if len(others) != 1 or total not in {n.id for n in _names([step])}:
            raise Refused
        (other,) = others
        kind = self._dtype(self.first[total])
        element = "uint8" if kind == "bool" else kind
        exchange = f"{element}_scratch(shared, 0)"
        value = f"{element}({total})" if kind == "bool" else total
        read = "e{0}[{1}] != 0" if kind == "bool" else "e{0}[{1}]"
        again = ast.unparse(_Renamed(other, f"p{total}").visit(ast.parse(ast.unparse(step))))
        return ast.parse(
            f"e{total} = {exchange}\n"
            f"e{total}[lane] = {value}\n"
            "barrier()\n"
            f"{total} = {read.format(total, 0)}\n"
            f"for other in range(1, lanes):\n"
            f"    p{total} = {read.format(total, 'other')}\n"
            f"    {total} = {again}\n"
            "barrier()\n"
        ).body

    def _meaning(self, name: str) -> Any:
        return self.namespace.get(name, {"min": min, "max": max, "abs": abs}.get(name))

    def _dtype(self, first: ast.expr) -> str:
        """Return the type of a reduction's total, from the constant it begins with."""
        if any(not callable(v) and not isinstance(v, (np.generic, int, float))
               for v in (self._meaning(n.id) for n in _names([first]))):
            raise Refused
        value = eval(ast.unparse(first), dict(self.namespace))
        if isinstance(value, (bool, np.bool_)):
            return "bool"
        kind = "int64" if type(value) is int else np.asarray(value).dtype.name
        if kind not in _SHARED_ELEMENTS:
            raise Refused
        return kind


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str):
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.new, node.ctx) if node.id == self.old else node


# -- what statements do --------------------------------------------------------------------------


def _names(nodes: Sequence[ast.AST]) -> Iterator[ast.Name]:
    for node in nodes:
        yield from (n for n in ast.walk(node) if isinstance(n, ast.Name))


def _loops(statements: Sequence[Any]) -> list[ast.For]:
    return [s for s in statements if isinstance(s, ast.For)]


def _stores(statements: Sequence[ast.AST]) -> list[Any]:
    """Return assignments to elements, wherever they stand; reports of a failure are none."""
    return [
        n for s in statements for n in ast.walk(s)
        if isinstance(n, (ast.Assign, ast.AugAssign)) and _stored_to(n) not in ("", "status")
    ]  # fmt: skip


def _stored_to(node: Any) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return ast.unparse(target.value) if isinstance(target, ast.Subscript) else ""
