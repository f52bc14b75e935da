"""Loops as text: a `Nest` becomes the body of one Python function in the one ABI.

In: a Nest, and which buffer each value reads or writes. Out: `Text`: lines, operands, sizes. Called
by `schedule.py`. Scalars are written in the outermost loop that knows their variables. Reductions
that run over the same variables at the same place share a loop. Names are canonical (order of
appearance), so equal computations give equal texts. The user's lines are comments, which
`kernel_of` keeps out of a kernel's identity.

Before you add a rule here: `prepare` writes the reductions of a block before its stores, and a
scalar never moves out of a branch, where its loads may not exist. A stash needs its early loop
before the late one; a value that only a branch computes is not kept. `_row` runs twice if sums may
be short: `_body` restores what the first run changed. `grid.py` recognises loops by their heads,
and `kernel_emitter.py` takes a subset of Python. `tests/golden/test_kernels.py` shows each changed
text, `tests/cuda/test_ptx.py` texts that no longer fit a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.jit.ir.graph import Location
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering import long_sums
from tracejit.jit.lowering.columns import INDENT, Block, ColumnPrinting
from tracejit.jit.lowering.index import (
    Condition,
    Index,
    Quotient,
    Read,
    Variable,
    product,
    same_size,
)
from tracejit.jit.lowering.long_sums import BLOCK, BLOCK_NAME, Short, Wide, in_blocks, rounds
from tracejit.jit.lowering.loops import Nest, Store, same_loops
from tracejit.jit.lowering.names import Names
from tracejit.jit.lowering.printing_by_index import ByIndexPrinting
from tracejit.jit.lowering.scalars import Scalar, variables_of, walk
from tracejit.jit.lowering.stash import Stash, find_stashes


@dataclass
class Pointer:
    """Operand: a buffer under a name. `shared`: every segment of a kernel reads the same one."""

    name: str
    buffer: Any
    dtype: str
    written: bool = False
    shared: bool = False


@dataclass
class Text:
    """Parts of a nest's text; `single` and `segmented` in `kernels.py` put the function
    together."""

    names: Names
    pointers: list[Pointer]
    before: list[str]  # statements before the loop over the range
    body: list[str]  # statements in that loop, or after `before` where there is none
    loop: str  # the loop's variable; "" without one
    loops: int
    scratch: int
    messages: tuple[str, ...]
    locations: tuple[Location, ...] = ()
    short: Short | None = None
    sized_by: list[SizeLike] = field(default_factory=list)


class Printer(ColumnPrinting, ByIndexPrinting):
    """Writer of one nest. It reads from the buffer `buffer_of(leaf)` and writes to the (buffer,
    strides) of `targets(leaf)`."""

    def __init__(self, nest: Nest, buffer_of: Any, targets: Any):
        self.nest, self.emission = nest, nest.emission
        self.buffer_of, self.targets = buffer_of, targets
        self.names = Names()
        self.pointers: dict[Any, Pointer] = {}
        self.variables: dict[str, str] = {}
        self.stack: list[Block] = [Block(frozenset())]
        self.temporaries = self.loops = self.scratch = 0
        self.location: Location | None = None
        self.locations: dict[Location, None] = {}
        self.stashes = find_stashes(nest, buffer_of, targets)
        self.kept: set[int] = set()  # the values of stashes that were kept
        self.written = {b for leaf in nest.leaves() for b, _ in targets(leaf)}
        self.cut: dict[str, None] = {}  # names of sizes that blocks were cut of
        self.uncut = False  # True while a text without blocks is written
        self.short: Short | None = None

    def run(self) -> Text:
        for name in (v.name for v in self.nest.outer if not self.nest.flat):
            self.variables[name] = f"i{len(self.variables)}"
        body = ["pass"]
        if self.nest.filled():
            body = self._columns() if self.nest.column is not None else self._body()
        loop = "" if not self.nest.outer and self.nest.column is None else self._loop_name()
        pointers = sorted(self.pointers.values(), key=lambda p: p.written)
        loops = 1 if loop else max(self.loops, 1)
        messages, locations = tuple(self.emission.messages), tuple(self.locations)
        return Text(self.names, pointers, self.stack[0].lines, body, loop, loops, self.scratch,
                    messages, locations, self.short)  # fmt: skip

    def _loop_name(self) -> str:
        return "i" if self.nest.flat else "tile" if self.nest.column is not None else "row"

    # -- outer loop ----------------------------------------------------------------------------
    def _body(self) -> list[str]:
        nest = self.nest
        if nest.flat:
            for v in nest.outer:
                self.variables[v.name] = "i"
        self.prepare(nest.roots())
        if not nest.outer:
            return self._stores(nest.filled())
        if len(nest.outer) == 1:
            self.variables[nest.outer[0].name] = self._loop_name()
        self.cut.clear()
        kept, location = set(self.kept), self.location
        lines = self._row()
        if self.cut and long_sums.are_light(nest.scalars):
            self.uncut, self.kept, self.location = True, kept, location
            condition = " and ".join(f"{size} <= {BLOCK}" for size in self.cut)
            self.short = Short(condition, self._row())
        return lines

    def _row(self) -> list[str]:
        """Write one step of the outer loop."""
        outer = self.nest.outer
        block = Block(frozenset(v.name for v in outer))
        if len(outer) > 1:
            block.lines += self._decoded("row", outer)
        self.stack.append(block)
        self.prepare(self.nest.roots())
        block.lines += self._stores(self.nest.filled())
        self.stack.pop()
        return block.lines

    def _decoded(self, flat: str, outer: Sequence[Variable]) -> list[str]:
        """Return lines that compute several outer variables from the one that is shared out."""
        lines, rest = [], flat
        for k, v in reversed(list(enumerate(outer))):
            name = self.variables[v.name]
            if k == 0:
                lines.append(f"{name} = {rest}")
            else:
                lines.append(f"{name} = {rest} % {self.names.size(v.extent)}")
                after = product([x.extent for x in outer[k:]])
                rest = f"{flat} // {self.names.size(after)}"
                if k > 1:
                    rest = f"({rest})"
        return lines

    # -- stores --------------------------------------------------------------------------------
    def _stores(self, stores: Sequence[Store]) -> list[str]:
        """Return the lines of one row's stores: equal loops are joined, and stores without inner
        loops are together."""
        block = self.stack[-1]
        groups: list[list[Store]] = []
        for store in stores:
            for known in groups:
                if same_loops(known[0].inner, store.inner):
                    known.append(store)
                    break
            else:
                groups.append([store])
        start = len(block.lines)
        for known in groups:
            if known[0].frequent is not None:
                self._sums_by_index(known[0])
            elif known[0].inner:
                self._loop(known[0].inner, lambda known=known: self._store_all(known))
            else:
                self._store_all(known)
        lines = block.lines[start:]
        del block.lines[start:]
        return lines

    def _store_all(self, stores: Sequence[Store]) -> None:
        values = [self.place(s.scalar) for s in stores]
        for store, value in zip(stores, values):
            stored = self._encoded(value, store.leaf.dtype.name)
            for pointer, where in self._places(store.leaf, store.place):
                before = f"{pointer}[{where}] + " if store.added else ""
                self.stack[-1].lines.append(f"{pointer}[{where}] = {before}{stored}")

    def _places(self, leaf: Any, place: Sequence[Index]) -> list[tuple[str, str]]:
        """Return (pointer, address) of an element, wherever it is stored."""
        return [
            (self.pointer(buffer, leaf.dtype.name),
             self.index(self.emission.address(strides or leaf, place)))
            for buffer, strides in self.targets(leaf)
        ]

    def _encoded(self, value: str, dtype: str) -> str:
        if dtype in ("float16", "bfloat16"):
            return f"{self.names.function(f'{dtype}_from_float32', 'float32')}({value})"
        return f"{self.names.imported('numpy', 'uint8')}({value})" if dtype == "bool" else value

    def pointer(self, buffer: Any, dtype: str) -> str:
        known = self.pointers.get(buffer)
        if known is None:
            written = buffer in self.written
            number = sum(p.written == written for p in self.pointers.values())
            name = f"{'y' if written else 'x'}{number}"
            known = self.pointers[buffer] = Pointer(name, buffer, dtype, written)
        return known.name

    # -- loops ---------------------------------------------------------------------------------
    def _loop(self, variables: Sequence[Variable], body: Any, counted: bool = True) -> None:
        """Append nested loops over `variables`, `body()` innermost, to the block on top. `counted`:
        as a nest of its own."""
        depth = len(self.stack)
        heads = []
        for v in variables:
            self.variables[v.name] = self._fresh(v)
            known = self.stack[-1].variables | {v.name}
            heads.append(self._head(v))
            self.stack.append(Block(known))
        body()
        for v, head in zip(reversed(variables), reversed(heads)):
            lines = self.stack.pop().lines
            del self.variables[v.name]
            self.stack[-1].lines += [f"for {head}:", *(INDENT + line for line in lines)]
        assert len(self.stack) == depth
        self.loops += counted

    def _fresh(self, variable: Variable) -> str:
        used = set(self.variables.values())
        if variable.name.endswith("_blocks") and BLOCK_NAME not in used:
            return BLOCK_NAME
        return next(n for n in ("j", "k", "l", "m", *(f"j{k}" for k in range(99))) if n not in used)

    def _head(self, v: Variable) -> str:
        name = self.variables[v.name]
        if v.stop is None:
            return f"{name} in range({self.names.size(v.extent)})"
        assert v.start is not None
        start = self.index(v.start)
        return f"{name} in range({start}, min({start} + {BLOCK}, {self.names.size(v.stop)}))"

    # -- reductions ----------------------------------------------------------------------------
    def prepare(self, roots: Sequence[Scalar]) -> None:
        """Write the reductions that belong to the block on top, in as few loops as their order
        allows."""
        block = self.stack[-1]
        order = walk(roots)
        level: dict[int, int] = {}
        waiting: dict[int, list[Scalar]] = {}
        for scalar in order:
            depth = max((level.get(a.number, 0) for a in scalar.reads()), default=0)
            if scalar.kind == "fold" and scalar.variables <= block.variables:
                if not self.is_known(scalar):
                    waiting.setdefault(depth, []).append(scalar)
                depth += 1
            level[scalar.number] = depth
        for depth in sorted(waiting):
            rest = waiting[depth]
            while rest:
                together = [f for f in rest if same_loops(f.data.loops, rest[0].data.loops)]
                rest = [f for f in rest if f not in together]
                self.folds(together)

    def folds(self, folds: Sequence[Scalar]) -> None:
        """Write one loop nest for reductions over the same variables."""
        block, loops = self.stack[-1], folds[0].data.loops
        totals = self._folded(folds, self._cut(loops) if any(map(rounds, folds)) else loops)
        for fold, total in zip(folds, totals):
            block.known[fold.number] = total

    def _cut(self, loops: Sequence[Variable]) -> Sequence[Variable]:
        """Return the loops in blocks, unless the text is for sizes that need none."""
        blocks = in_blocks(loops)
        if len(blocks) > len(loops) and type(loops[-1].extent) is not int:
            if self.uncut:
                return loops
            self.cut[self.names.size(loops[-1].extent)] = None
        return blocks

    def _folded(self, folds: Sequence[Scalar], loops: Sequence[Variable]) -> list[str]:
        """Write reductions over these loops, and return the names of their results."""
        sums = {f.number: self._wide(f) for f in folds if rounds(f) and len(loops) > 1}
        known = {f.number: self._accumulator(f) for f in folds if f.number not in sums}
        if sums:
            self._loop(loops[:-1], lambda: self._one_block(folds, known, sums, loops[-1:]), False)
        else:
            self._loop(loops, lambda: self._steps(folds, known))
        found = []
        for fold in folds:
            if fold.number in sums:
                found.append(self._assign(sums[fold.number].end(), None))
            else:
                total, place = known[fold.number]
                found.append(place or total)
        return found

    def _wide(self, fold: Scalar) -> Wide:
        wide = Wide(self.names, fold.args[0].dtype, self._temporary(), self._temporary())
        self.stack[-1].lines += wide.begin()
        return wide

    def _one_block(
        self,
        folds: Sequence[Scalar],
        known: dict[int, tuple[str, str]],
        sums: dict[int, Wide],
        loops: Sequence[Variable],
    ) -> None:
        """Write the innermost loop, with accumulators of its own for sums of floats."""
        own = {f.number: self._accumulator(f) for f in folds if f.number in sums}
        self._loop(loops, lambda: self._steps(folds, {**known, **own}))
        for number, wide in sums.items():
            self.stack[-1].lines += wide.add(own[number][0])

    def _steps(self, folds: Sequence[Scalar], known: dict[int, tuple[str, str]]) -> None:
        for fold in folds:
            total, place = known[fold.number]
            self._step(fold, total, place, self.place(fold.args[0]))
        self._keep()

    def _accumulator(self, fold: Scalar) -> tuple[str, str]:
        """Begin a reduction: return the names of its value so far and of the position where it was
        found."""
        lines, kind = self.stack[-1].lines, fold.args[0].dtype
        total = self._temporary()
        first = self.names.number(fold.data.identity, kind)
        # In plain Python, an int would not wrap.
        if first == "0" or kind == "int64":
            first = f"{self.names.imported('numpy', 'int64')}({first})"
        lines.append(f"{total} = {first}")
        place = ""
        if fold.data.place is not None:
            place = self._temporary()
            lines.append(f"{place} = 0")
        return total, place

    def _keep(self) -> None:
        """Leave expensive values of this loop where a later loop over the same row finds them.
        Those that only a branch computes are computed again."""
        block = self.stack[-1]
        for stash in self.stashes:
            value = block.known.get(stash.early.number)
            if value is not None:
                where = self._kept_at(stash, stash.early_address)
                block.lines.append(f"{where} = {value}")
                self.kept.add(stash.late.number)

    def _kept_at(self, stash: Stash, address: Index) -> str:
        buffer, _ = self.targets(stash.store.leaf)[0]
        return f"{self.pointer(buffer, stash.store.leaf.dtype.name)}[{self.index(address)}]"

    def _step(self, fold: Scalar, total: str, place: str, value: str) -> None:
        lines, kind = self.stack[-1].lines, fold.args[0].dtype
        step = self.names.combine(fold.data.combine, total, value, kind)
        if not place:
            lines.append(f"{total} = {step}")
            return
        lines += [
            f"if {step}:",
            f"{INDENT}{total} = {value}",
            f"{INDENT}{place} = {self.index(fold.data.place)}",
        ]

    # -- scalars -------------------------------------------------------------------------------
    def is_known(self, scalar: Scalar) -> str | None:
        for block in self.stack:
            if scalar.number in block.known:
                return block.known[scalar.number]
        return None

    def place(self, scalar: Scalar) -> str:
        """Return the scalar as an expression. The lines that compute it go to the outermost block
        possible."""
        if scalar.kind == "number":
            return self.names.number(scalar.data, scalar.dtype)
        known = self.is_known(scalar)
        if known is not None:
            return known
        if scalar.number in self.kept:
            stash = next(s for s in self.stashes if s.late is scalar)
            kept = self._assign(self._kept_at(stash, stash.late_address), None)
            self.stack[-1].known[scalar.number] = kept
            return kept
        depth = self._depth(scalar)
        inner = self.stack[depth + 1 :]
        del self.stack[depth + 1 :]
        block = self.stack[-1]
        if scalar.kind == "fold":
            self.folds([scalar])
        else:
            block.known[scalar.number] = getattr(self, "_write_" + scalar.kind)(scalar)
        self.stack += inner
        return block.known[scalar.number]

    def _depth(self, scalar: Scalar) -> int:
        first = max((k for k, b in enumerate(self.stack) if b.branch), default=0)
        for depth in range(first, len(self.stack)):
            if scalar.variables <= self.stack[depth].variables:
                return depth
        raise AssertionError(f"{scalar.variables} are not in scope: {self.stack[-1].variables}")

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"v{self.temporaries - 1}"

    def _assign(self, text: str, location: Location | None) -> str:
        lines, name = self.stack[-1].lines, self._temporary()
        if location is not None:
            self.locations.setdefault(location)
            if location != self.location:
                lines.append(f"# {location}  {location.text.strip()}".rstrip())
                self.location = location
        lines.append(f"{name} = {text}")
        return name

    def _write_load(self, scalar: Scalar) -> str:
        leaf, index = scalar.data
        pointer = self.pointer(self.buffer_of(leaf), leaf.dtype.name)
        text = f"{pointer}[{self.index(index)}]"
        if leaf.dtype.name == "bool":
            text = f"{text} != 0"
        elif leaf.dtype.name in ("float16", "bfloat16"):
            text = f"{self.names.function(f'float32_from_{leaf.dtype.name}', 'float32')}({text})"
        return self._assign(text, None)

    def _write_call(self, scalar: Scalar) -> str:
        arguments = [self.place(a) for a in scalar.args]
        text = self.names.template(
            scalar.data, arguments, [a.dtype for a in scalar.args], scalar.dtype
        )
        return self._assign(text, scalar.location)

    def _write_index(self, scalar: Scalar) -> str:
        text = self.index(scalar.data)
        if text.isidentifier():
            return text
        if text.lstrip("-").isdigit():
            text = f"{self.names.imported('numpy', 'int64')}({text})"
        return self._assign(text, None)

    def _write_condition(self, scalar: Scalar) -> str:
        return self._assign(self.condition(scalar.data), None)

    def condition(self, condition: Condition) -> str:
        if condition.sign in ("<", "=="):
            return f"{self.index(condition.parts[0])} {condition.sign} 0"
        parts = [f"({self.condition(p)})" for p in condition.parts]
        return f"not {parts[0]}" if condition.sign == "not" else f" {condition.sign} ".join(parts)

    def _write_choice(self, scalar: Scalar) -> str:
        test = self.place(scalar.args[0])
        name = self._temporary()
        lines = self.stack[-1].lines
        for head, branch in (("if " + test, scalar.args[1]), ("else", scalar.args[2])):
            self.stack.append(Block(self.stack[-1].variables, branch=True))
            value = self.place(branch)
            inside = [*self.stack.pop().lines, f"{name} = {value}"]
            lines += [f"{head}:", *(INDENT + line for line in inside)]
        return name

    def _write_checked(self, scalar: Scalar) -> str:
        size, message, wrap = scalar.data
        name = self._assign(self.place(scalar.args[0]), None)
        bound = self.names.size(size)
        number = self.emission.messages.index(message) + 1
        lines = self.stack[-1].lines
        if wrap:
            lines += [f"if {name} < 0:", f"{INDENT}{name} = {name} + {bound}"]
        lines += [
            f"if {name} < 0 or {name} >= {bound}:",
            f"{INDENT}status[1] = {name}",
            f"{INDENT}status[0] = {number}",
            f"{INDENT}{name} = 0",
        ]
        return name

    def _write_after(self, scalar: Scalar) -> str:
        for check in scalar.args[1:]:
            self.place(check)
        return self.place(scalar.args[0])

    # -- indices -------------------------------------------------------------------------------
    def index(self, index: Index) -> str:
        """Return an index as an integer expression."""
        parts = []
        for atom, coefficient in sorted(index.terms.values(), key=self._rank):
            text = self._atom(atom)
            if type(coefficient) is int and coefficient == 1:
                parts.append(text)
            else:
                parts.append(f"{text} * {self.names.size(coefficient)}")
        if not parts or not same_size(index.constant, 0):
            parts.append(self.names.size(index.constant))
        return " + ".join(parts)

    def _rank(self, term: tuple[Any, SizeLike]) -> tuple:
        atom = term[0]
        within = variables_of(Index({atom.key: (atom, 1)}))
        names = list(self.variables)
        return (min((names.index(n) for n in within if n in names), default=-1), str(type(atom)))

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, Variable):
            return self.variables[atom.name]
        if isinstance(atom, Read):
            return self.place(atom.scalar)
        assert isinstance(atom, Quotient)
        return f"(({self.index(atom.whole)}) {atom.sign} {self.names.size(atom.divisor)})"
