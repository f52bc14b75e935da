"""Kernels of loops for small sizes: a text of its own, in which the sizes are numbers.

In: the instruction of a loop that is one kernel, and the values of symbols. Out: the kernel for
these values. Called by `binding.py`. With numbers, LLVM writes short loops out and keeps what they
make in registers: an iteration over 4 x 3 elements takes half the time. All depends on the sizes
of the call alone, so results have the same bits whichever sizes came before.

A size is a number if all its symbols are at most `SMALL`. The length of the loop itself stays a
size, or each length would be another kernel. Memory that an iteration leaves to no other is then
the kernel's own.
"""

from __future__ import annotations

import ast
import hashlib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tracejit.jit.ir.sizes import evaluate, symbols_of
from tracejit.jit.lowering.abi import ELEMENTS
from tracejit.jit.lowering.inlining import decided_by
from tracejit.jit.lowering.loops import TILE
from tracejit.jit.lowering.program import Instruction, Kernel

SMALL = 16  # of a symbol: a kernel for each such set of values is compiled when it is met
ITERATIONS = 16  # of the loop, at least: fewer are not worth a kernel of their own
OWN = "t"  # begins names of memory that no iteration leaves to another
STRAIGHT = "SMALL_SIZES = True"  # line of a text whose short loops are written out
ROOM = 1 << 14  # bytes of such memory, at most, that lie on the stack
_SIZE = re.compile(r"n\d+")
_FOLDED: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def kernel_for(instruction: Instruction, values: Mapping[str, int], nbytes: Sequence[int]
               ) -> Kernel:  # fmt: skip
    """Return the kernel of a loop for these values of the symbols: its own, or one with numbers.

    nbytes  of each operand's memory
    """
    kernel = instruction.kernel
    assert kernel is not None
    if evaluate(instruction.total, values) < ITERATIONS:
        return kernel
    length = symbols_of(instruction.total)
    known = {
        f"n{k}": evaluate(size, values) for k, size in enumerate(instruction.sizes)
        if all(values[name] <= SMALL and name not in length for name in symbols_of(size))
    }  # fmt: skip
    return with_numbers(kernel, known, nbytes) if known else kernel


def with_numbers(kernel: Kernel, known: Mapping[str, int], nbytes: Sequence[int]) -> Kernel:
    """Return a kernel in whose text sizes are numbers."""
    tree = ast.parse(kernel.source)
    change = _Change(known, nbytes, _tiles(tree))
    tree = ast.fix_missing_locations(change.visit(tree))
    if change.elements:
        names = [ast.alias(f"{element}_local") for element in sorted(change.elements)]
        tree.body.insert(0, ast.ImportFrom("tracejit.jit.lowering.abi", names, 0))
    numbers = ", ".join(f"{name} = {number}" for name, number in known.items())
    source = f"{STRAIGHT}  # {numbers}\n{ast.unparse(ast.fix_missing_locations(tree))}\n"
    digest = hashlib.sha256(f"{kernel.digest}\n{source}".encode()).hexdigest()[:32]
    return replace(kernel, source=source, digest=digest)


class _Change(ast.NodeTransformer):
    """Writer of numbers for names; what they decide is decided."""

    def __init__(self, known: Mapping[str, int], nbytes: Sequence[int],
                 tiles: Mapping[str, tuple[str, int]]):  # fmt: skip
        self.tiles = tiles
        self.known, self.nbytes, self.room = known, nbytes, ROOM
        self.elements: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.expr:
        number = self.known.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if number is None else ast.Constant(number)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        (target,) = node.targets
        if isinstance(target, ast.Name):
            if target.id in self.tiles:
                return self._local(node, *self.tiles[target.id])
            if target.id in self.known and _SIZE.fullmatch(target.id):
                return None  # its fetch
            if target.id[0] == OWN and isinstance(node.value, ast.Call):
                return self._own(node, node.value)
        return self.generic_visit(node)  # type: ignore[return-value]

    def _own(self, node: ast.Assign, fetch: ast.Call) -> ast.stmt:
        """Return what makes memory of the kernel's own, in place of what fetches an operand."""
        element = ELEMENTS[ast.unparse(fetch.func).removesuffix("_pointer")]
        (number,) = (n.value for n in ast.walk(fetch.args[1]) if isinstance(n, ast.Constant))
        assert type(number) is int
        nbytes = self.nbytes[number]
        if not 0 < nbytes <= self.room or element.startswith("complex"):
            return node
        return self._local(node, element, nbytes // np.dtype(element).itemsize)

    def _local(self, node: ast.Assign, element: str, count: int) -> ast.Assign:
        nbytes = count * np.dtype(element).itemsize
        if nbytes > self.room:
            return node
        self.room -= nbytes
        self.elements.add(element)
        call = ast.Call(ast.Name(f"{element}_local"), [ast.Constant(count)], [])
        return ast.Assign(node.targets, call)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        fold, a, b = _FOLDED.get(type(node.op)), _int(node.left), _int(node.right)
        if b == 1 and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            return node.left if isinstance(node.op, ast.FloorDiv) else ast.Constant(0)
        if fold is None or a is None or b is None:
            return node
        by_zero = b == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod))
        return node if by_zero else ast.Constant(fold(a, b))

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        decided = decided_by(node.test)
        if decided is None:
            node.body = node.body or [ast.Pass()]
            return node
        return node.body if decided else node.orelse

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return _split(node)


def _split(node: ast.For) -> ast.For:
    """Return a loop over rows as a loop in a loop, where it divides its number for two of them."""
    if len(node.body) < 3 or not isinstance(node.target, ast.Name):
        return node
    number, (inner, outer, *rest) = node.target.id, node.body
    if not isinstance(inner, ast.Assign) or not isinstance(outer, ast.Assign):
        return node
    most, steps = _int(node.iter.args[-1]), None  # type: ignore[attr-defined]
    if isinstance(inner.value, ast.BinOp):
        steps = _int(inner.value.right)
    texts = ast.unparse(inner.value), ast.unparse(outer.value)
    used = any(isinstance(n, ast.Name) and n.id == number for s in rest for n in ast.walk(s))
    if not most or not steps or most % steps or used or ast.unparse(node.iter) not in (
        f"range({most})", f"range(0, {most})") or texts != (
        f"{number} % {steps}", f"{number} // {steps}"):  # fmt: skip
        return node
    loop = ast.For(inner.targets[0], _range(steps), rest, [])
    return ast.For(outer.targets[0], _range(most // steps), [loop], [])


def _range(count: int) -> ast.Call:
    return ast.Call(ast.Name("range"), [ast.Constant(count)], [])


def _tiles(tree: ast.Module) -> dict[str, tuple[str, int]]:
    """Return the names of scratch memory that holds one number for each column of a tile, with its
    elements' type and their number."""
    found: dict[str, tuple[str, int]] = {}
    indices: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if called.endswith("_scratch"):
                found[ast.unparse(node.targets[0])] = called.removesuffix("_scratch"), TILE
        elif isinstance(node, ast.Subscript):
            indices.setdefault(ast.unparse(node.value), set()).add(ast.unparse(node.slice))
    return {name: kind for name, kind in found.items() if indices.get(name) == {"c - first"}}


def _int(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
