"""Linear algebra of small matrices, written into the kernel of a loop: no call of LAPACK.

In: a node such as `linalg_solve_ex`, and the homes of its operands and results. Out: lines of text.
Called by `loop_kernel.py`. Matrices have at most 16 rows, a number that a call may decide.

Elimination exchanges rows by the largest element of a column, as LAPACK's `getrf` does, so results
differ from LAPACK's by rounding alone. A matrix that the op refuses sets the kernel's status: then
the call runs op by op, and the op raises its own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tracejit.core.ops.types import int32
from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.index import is_one, product, resolved, same_size
from tracejit.jit.lowering.inlining import INDENT, Home, Module

MOST_ROWS = 16  # from there on LAPACK's blocks are worth its call
_TOO_MANY = 1 << 40  # multiplications: more than any kernel may have


def operations(node: Node) -> SizeLike | None:
    """Return about how many multiplications the lines of a node make; None if it has no lines.

    Of more rows than `MOST_ROWS` that number is larger than any kernel may have.
    """
    if node.op.name not in _WRITERS or any(
        x.dtype.name not in ("float32", "float64") for x in node.operand_values()
    ):
        return None
    batch, operands = _batch(node), list(node.operand_values())
    if not all(_is_one_batch(x, batch) for x in operands):
        return None
    if node.op.name == "linalg_cholesky_ex" and not node.attributes["check"]:
        return None  # what potrf leaves of a factor that it gave up is LAPACK's
    sides = [resolved(x.shape[-1]) for x in operands]
    n, across = sides[::-1] if node.op.name == "cholesky_solve" else (sides[0], sides[-1])
    many = (n - 1) // MOST_ROWS * _TOO_MANY
    if type(many) is int and many > 0:
        return None
    return batch * n * n * (n // 3 + 1 + across) + many


def _batch(node: Node) -> SizeLike:
    """Return the number of matrices of the result."""
    shape = [resolved(s) for s in node.outputs[0].shape]
    return product(shape if node.op.name in ("linalg_det", "linalg_slogdet") else shape[:-2])


def _is_one_batch(value: Value, batch: SizeLike) -> bool:
    """Return True if an operand has one matrix, or as many as the result."""
    own = product([resolved(s) for s in value.shape[:-2]])
    return is_one(own) or same_size(own, batch)


def lines(
    module: Module, node: Node, homes: Sequence[Home], size: Callable[[SizeLike], str]
) -> list[str]:
    """Return the lines of a node for which `operations` gave a number.

    size  gives the text of a size
    """
    values: list[Value] = [*node.operand_values(), *node.outputs]
    text, batch, write = _Text(module, homes[0].element), _batch(node), _WRITERS[node.op.name]
    if is_one(batch):
        write(text, node, [_Matrix.of(h, v, size) for h, v in zip(homes, values)])
        return text.lines
    with text.count(size(batch)) as number:
        parts = []
        for home, value in zip(homes, values):
            shape = [resolved(s) for s in value.shape]
            numbers = value.dtype is int32 or node.op.name in ("linalg_det", "linalg_slogdet")
            area = product(shape[-2:]) if value.node is not node or not numbers else 1
            if not same_size(product(shape), area):
                home = home.item(home.within(f"{number} * {size(area)}"))
            parts.append(_Matrix.of(home, value, size))
        write(text, node, parts)
    return text.lines


@dataclass
class _Matrix:
    """Matrix, or number, in memory; its sizes are texts."""

    home: Home
    rows: str
    columns: str
    room: int  # elements, at most

    @classmethod
    def of(cls, home: Home, value: Value, size: Callable[[SizeLike], str]) -> _Matrix:
        shape: list[SizeLike] = [1, 1, *(resolved(s) for s in value.shape)]
        area = shape[-2] * shape[-1]
        room = area if type(area) is int else MOST_ROWS * MOST_ROWS
        return cls(home, size(shape[-2]), size(shape[-1]), room)

    def __call__(self, row: str, column: str) -> str:
        """Return the text of an element."""
        return self.home.at(f"{row} * {self.columns} + {column}")


@dataclass
class _Text:
    """Lines that are being written."""

    module: Module
    element: str
    lines: list[str] = field(default_factory=list)
    depth: int = 0

    def add(self, line: str) -> None:
        self.lines.append(INDENT * self.depth + line)

    def set(self, target: _Matrix, row: str, column: str, value: str) -> None:
        self.add(target.home.stored(f"{row} * {target.columns} + {column}", value))

    def set_number(self, target: _Matrix, value: str) -> None:
        """Store what is one number, not a matrix."""
        self.add(target.home.stored("0", value))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def count(self, *bounds: str) -> Iterator[str]:
        """Write a loop, and give the name of its variable."""
        name = self.module.fresh()
        with self.block(f"for {name} in range({', '.join(bounds)}):"):
            yield name

    def cast(self, kind: str) -> str:
        return self.module.imported("numpy", kind)

    def number(self, value: int) -> str:
        return f"{self.cast(self.element)}({value})"

    def local(self, text: str) -> str:
        name = self.module.fresh()
        self.add(f"{name} = {text}")
        return name

    def function(self, name: str, module: str) -> str:
        return self.module.imported(f"tracejit.jit.lowering.{module}", f"{name}_{self.element}")

    def copy_of(self, matrix: _Matrix) -> _Matrix:
        """Return a copy in memory of the kernel's own."""
        make = self.module.imported("tracejit.jit.lowering.abi", f"{self.element}_local")
        name = self.local(f"{make}({matrix.room})")
        found = replace(matrix, home=Home(name, self.element, True))
        self.copy(matrix, found)
        return found

    def copy(self, source: _Matrix, target: _Matrix) -> None:
        with self.count(f"{target.rows} * {target.columns}") as k:
            self.add(target.home.stored(k, source.home.at(k)))

    def swap(self, matrix: _Matrix, one: str, other: str) -> None:
        with self.count(matrix.columns) as j:
            kept = self.local(matrix(one, j))
            self.set(matrix, one, j, matrix(other, j))
            self.set(matrix, other, j, kept)

    def refuse(self, function: str, info: str) -> None:
        """Set the status where `info` is not 0; its message names the user's function."""
        if function not in self.module.messages:
            self.module.messages.append(function)
        with self.block(f"if {info} != 0:"):
            self.add(f"status[1] = {info}")
            self.add(f"status[0] = {self.module.messages.index(function) + 1}")


def _eliminate(text: _Text, a: _Matrix, right: _Matrix | None) -> tuple[str, str]:
    """Make `a` its factors L and U, and `right` the solution by L. Return the names of the number
    of the first zero pivot, or 0, and of the sign of the exchange of rows."""
    n = a.rows
    info = text.local(f"{text.cast('int64')}(0)")
    sign = text.local(text.number(1))
    with text.count(n) as k:
        best, place = text.local(f"abs({a(k, k)})"), text.local(f"{text.cast('int64')}({k})")
        with text.count(f"{k} + 1", n) as i:
            size = text.local(f"abs({a(i, k)})")
            with text.block(f"if {size} > {best}:"):
                text.add(f"{best} = {size}")
                text.add(f"{place} = {text.cast('int64')}({i})")
        with text.block(f"if {place} != {k}:"):
            text.swap(a, k, place)
            if right is not None:
                text.swap(right, k, place)
            text.add(f"{sign} = -{sign}")
        pivot = text.local(a(k, k))
        with text.block(f"if {pivot} == {text.number(0)}:"):
            with text.block(f"if {info} == 0:"):
                text.add(f"{info} = {text.cast('int64')}({k} + 1)")
        with text.block("else:"), text.count(f"{k} + 1", n) as i:
            factor = text.local(f"{a(i, k)} / {pivot}")
            text.set(a, i, k, factor)
            with text.count(f"{k} + 1", n) as j:
                text.set(a, i, j, f"{a(i, j)} - {factor} * {a(k, j)}")
            if right is not None:
                with text.count(right.columns) as j:
                    text.set(right, i, j, f"{right(i, j)} - {factor} * {right(k, j)}")
    return info, sign


def _substitute(text: _Text, a: _Matrix, x: _Matrix, upper: bool, unit: bool = False,
                turned: bool = False) -> None:  # fmt: skip
    """Make `x` the solution by a triangle of `a`; `turned`: by that of the transposed matrix."""
    n = a.rows
    at: Callable[[str, str], str] = (lambda i, j: a(j, i)) if turned else a
    with text.count(n) as step:
        k = text.local(f"{n} - 1 - {step}") if upper else step
        others = ("0", k) if upper else (f"{k} + 1", n)
        with text.count(x.columns) as j:
            found = text.local(x(k, j) if unit else f"{x(k, j)} / {at(k, k)}")
            text.set(x, k, j, found)
            with text.count(*others) as i:
                text.set(x, i, j, f"{x(i, j)} - {found} * {at(i, k)}")


def _informed(text: _Text, node: Node, info: str, place: _Matrix) -> None:
    """Store the number of the first zero pivot, and set the status if the op refuses it."""
    text.set_number(place, f"{text.cast('int32')}({info})")
    if node.attributes["check"]:
        text.refuse(node.attributes["check"], info)


def _solve(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    a, b, x, info = given
    a = text.copy_of(a)
    text.copy(b, x)
    first, _ = _eliminate(text, a, x)
    _substitute(text, a, x, upper=True)
    _informed(text, node, first, info)


def _invert(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    a, x, info = given
    a = text.copy_of(a)
    with text.count(a.rows) as i:
        with text.count(a.rows) as j:
            text.set(x, i, j, text.number(0))
        text.set(x, i, i, text.number(1))
    first, _ = _eliminate(text, a, x)
    _substitute(text, a, x, upper=True)
    _informed(text, node, first, info)


def _slogdet(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    a, sign, logarithm = given
    a = text.copy_of(a)
    first, turn = _eliminate(text, a, None)
    log, total = text.function("log", "vector_math_logarithm"), text.local(text.number(0))
    with text.count(a.rows) as k:
        pivot = text.local(a(k, k))
        with text.block(f"if {pivot} < {text.number(0)}:"):
            text.add(f"{turn} = -{turn}")
        text.add(f"{total} = {total} + {log}(abs({pivot}))")
    # the determinant of a singular matrix is 0, and so is the sign of one that is no number
    with text.block(f"if ({first} != 0) | ({total} != {total}):"):
        text.add(f"{turn} = {text.number(0)}")
    text.set_number(sign, turn)
    text.set_number(logarithm, total)


def _det(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    a, made = given
    a = text.copy_of(a)
    _, total = _eliminate(text, a, None)
    with text.count(a.rows) as k:
        text.add(f"{total} = {total} * {a(k, k)}")
    text.set_number(made, total)


def _cholesky(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    a, factor, info = given
    n, upper = a.rows, node.attributes["upper"]
    root = text.module.imported("numpy", "sqrt")
    # of the lower triangle, row by row: element (i, j) is (j, i) of the upper one
    source: Callable[[str, str], str] = (lambda i, j: a(j, i)) if upper else a
    first = text.local(f"{text.cast('int64')}(0)")

    def store(i: str, j: str, value: str) -> None:
        text.set(factor, *((j, i) if upper else (i, j)), value)

    def made(i: str, j: str) -> str:
        return factor(j, i) if upper else factor(i, j)

    with text.count(n) as j:
        total = text.local(source(j, j))
        with text.count(j) as k:
            store(k, j, text.number(0))
            text.add(f"{total} = {total} - {made(j, k)} * {made(j, k)}")
        with text.block(f"if ({first} == 0) & (not {total} > {text.number(0)}):"):
            text.add(f"{first} = {text.cast('int64')}({j} + 1)")
        pivot = text.local(f"{root}(max({total}, {text.number(0)}))")
        store(j, j, pivot)
        with text.count(f"{j} + 1", n) as i:
            rest = text.local(source(i, j))
            with text.count(j) as k:
                text.add(f"{rest} = {rest} - {made(i, k)} * {made(j, k)}")
            store(i, j, f"{rest} / {pivot}")
    _informed(text, node, first, info)


def _solve_triangular(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    a, b, x = given
    text.copy(b, x)
    how = node.attributes
    _substitute(text, a, x, how["upper"], how["unitriangular"])


def _cholesky_solve(text: _Text, node: Node, given: Sequence[_Matrix]) -> None:
    b, factor, x = given
    upper = node.attributes["upper"]
    text.copy(b, x)
    _substitute(text, factor, x, upper=False, turned=upper)
    _substitute(text, factor, x, upper=True, turned=not upper)


_WRITERS: dict[str, Callable[[_Text, Node, Sequence[_Matrix]], None]] = {
    "linalg_solve_ex": _solve, "linalg_inv_ex": _invert, "linalg_slogdet": _slogdet,
    "linalg_det": _det, "linalg_cholesky_ex": _cholesky,
    "linalg_solve_triangular": _solve_triangular, "cholesky_solve": _cholesky_solve,
}  # fmt: skip
