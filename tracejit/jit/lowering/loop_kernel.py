"""Loops and branches as one kernel: what a region computes is written into the loop itself.

In: an instruction with regions, whose node is a `for_loop`, `while_loop` or `cond`. Out: an
instruction with one kernel, or the reason why there is none. Called by `lower.py`; `inlining.py`
puts the kernels of a body into the loop's.

A carried value of one element is a local, one of few elements is local memory, and a larger one
lies in the loop's output, where the body changes it in place. An item is memory at the iteration's
number. So an iteration reads no table of addresses and calls nothing.

The kernel runs iterations `lo` to `hi`. From 0 on it begins with the loop's operands, else with
what its outputs hold: so a long loop can stop and go on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.types import bool_
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Location, Node, Value
from tracejit.jit.ir.sizes import SizeLike, size_max
from tracejit.jit.lowering import small_matrices
from tracejit.jit.lowering.abi import ELEMENTS, VERSION
from tracejit.jit.lowering.index import resolved, size_key
from tracejit.jit.lowering.inlining import INDENT, Home, Module, Unsupported, statements
from tracejit.jit.lowering.partial_writes import Part, partial_writes
from tracejit.jit.lowering.program import Buffer, Instruction, Kernel, Program
from tracejit.jit.lowering.small_sizes import OWN
from tracejit.jit.lowering.steady_flags import bodies

LOOP = "loop"  # `Instruction.extern` of a loop or a branch that is one kernel
LOCAL = 64  # elements, at most, of memory that the kernel has for itself
LARGE = 1 << 14  # elements, at most, of what a body computes: more is worth several threads
PRODUCT = 16  # as many elements as a multiply-add counts: from 12 x 12 on BLAS is faster
IN_PARTS = 8  # times LARGE, where threads would copy all of what is carried to change a part
SPARED = 4  # multiply-adds that count as one element where LAPACK would be called through Python
ENDLESS = 1 << 62
MOST_WITHIN = 1 << 17  # iterations of a `while` in a loop: Ctrl-C waits for the outer one
MOST_LINES = 4000  # of a kernel: LLVM's time grows with them
TAKES_LONG = "while_loop"  # message of a kernel that leaves such a `while` to the function
_SIGNATURE = "(buffers, operands, sizes, scratch, status, lo, hi):"


def one_kernel(
    instruction: Instruction, program: Program, lower: Callable[[Graph], Program], fast: bool = True
) -> Instruction:
    """Return an instruction that runs a node with regions as one kernel.

    fast  results may differ from those of the ops by rounding

    Raises Unsupported, with the reason, where the regions cannot be written into one.
    """
    make = _MAKERS.get(instruction.host.op.name)
    if make is None:
        raise Unsupported("its items lie in memory that grows while it runs")
    return make(instruction, program, lower, fast).run()


class _Writer:
    """Writer of one kernel. Subclasses write what is around the regions."""

    def __init__(
        self, instruction: Instruction, program: Program, lower: Callable[[Graph], Program],
        fast: bool,
    ):  # fmt: skip
        self.instruction, self.program, self.lower, self.fast = instruction, program, lower, fast
        self.node: Node = instruction.host
        count = len(instruction.operands) - instruction.outputs
        self.read = list(instruction.operands[:count])
        self.written = list(instruction.operands[count:])
        self.module = Module()
        self.pointers: dict[int, Home] = {}  # buffer of the program around -> the kernel's operand
        self.sizes: list[SizeLike] = []
        self.size_names: dict[Any, str] = {}
        self.spare: list[int] = []  # temporaries of the program around that only this kernel uses
        self.ops: list[str] = [self.node.op.name]
        self.each: SizeLike = 0  # elements that an iteration computes
        self.spares_calls = False
        self.allowed = 1  # times LARGE
        self.failing: list[Location] = []
        self.locations: list[Location] = []

    def run(self) -> Instruction:
        for number in dict.fromkeys(self.read):
            self.pointers[number] = self._operand("x", number)
        for number in self.written:
            self.pointers[number] = self._operand("y", number)
        body, total = self.write()
        self.each = self.each // self.allowed
        self.check_size(1)
        if len(body) > MOST_LINES:
            raise Unsupported(f"its kernel would have {len(body)} lines")
        return self._made(self._kernel(body), total)

    def write(self) -> tuple[list[str], SizeLike]:
        """Return the kernel's lines after its operands, and the length of its range."""
        raise NotImplementedError

    # -- the function ----------------------------------------------------------------------------
    def _operand(self, letter: str, number: int) -> Home:
        buffer = self.program.buffers[number]
        known = sum(home.name[0] == letter for home in self.pointers.values())
        return Home(f"{letter}{known}", ELEMENTS[buffer.dtype.name], True)

    def _kernel(self, body: Sequence[str]) -> Kernel:
        module, lines = self.module, []
        for k, (number, home) in enumerate(self.pointers.items()):
            dtype = self.program.buffers[number].dtype.name
            fetch = module.imported("tracejit.jit.lowering.abi", f"{dtype}_pointer")
            lines.append(f"{home.name} = {fetch}(buffers, operands[{k}])")
        lines += [f"n{k} = sizes[{k}]" for k in range(len(self.sizes))]
        lines += body
        head = module.head()
        bare = [line for line in (*head, *lines) if not line.lstrip().startswith("#")]
        identity = "\n".join([str(VERSION), *bare, *module.messages])
        digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
        name = f"{self.node.op.name}_{digest[:8]}"
        source = "\n".join([*head, "", f"def {name}{_SIGNATURE}",
                            *(INDENT + line for line in lines), ""])
        return Kernel(name, source, digest, module.loops + 1, module.scratch,
                      tuple(module.messages))

    def _made(self, kernel: Kernel, total: SizeLike) -> Instruction:
        given = self.instruction
        locations = dict.fromkeys([*self.failing, *given.locations, *self.locations])
        operands = tuple(self.pointers)
        outputs = len(operands) - len(dict.fromkeys(self.read))
        return Instruction(
            kernel, operands, outputs, tuple(self.sizes), total, total, tuple(self.ops),
            tuple(locations), given.bytes_read, given.bytes_written, extern=LOOP, host=self.node,
            each=self.each,
        )  # fmt: skip

    # -- sizes and homes -------------------------------------------------------------------------
    def size(self, size: SizeLike) -> str:
        """Return the text of a size: a number, or a name that is bound to sizes[k]."""
        if type(size) is int:
            return str(size)
        key = size_key(size)
        if key not in self.size_names:
            self.size_names[key] = f"n{len(self.sizes)}"
            self.sizes.append(size)
        return self.size_names[key]

    def new_local(self, buffer: Buffer, lines: list[str]) -> Home:
        """Return a new home for a value that the regions compute."""
        element, numel = ELEMENTS[buffer.dtype.name], self.computed(buffer)
        name = self.module.fresh()
        if type(numel) is not int or numel > LOCAL:
            return self.new_memory(buffer)
        if numel == 1:
            self.module.imported("numpy", element)
            return Home(name, element)
        function = self.module.imported("tracejit.jit.lowering.abi", f"{element}_local")
        lines.append(f"{name} = {function}({numel})")
        return Home(name, element, True)

    def computed(self, buffer: Buffer) -> SizeLike:
        """Count the elements of a value that the regions compute, and return how many it has."""
        self.count(buffer.numel)
        return buffer.numel

    def count(self, numel: SizeLike) -> None:
        self.each = self.each + numel
        self.check_size(IN_PARTS)

    def check_size(self, times: int) -> None:
        """Raise Unsupported where an iteration is worth several threads."""
        if type(self.each) is int and self.each > times * LARGE:
            raise Unsupported(f"it computes {self.each} elements at once, enough for threads")

    def new_memory(self, buffer: Buffer, letter: str = OWN) -> Home:
        """Return memory of the program around, for this kernel alone."""
        number = len(self.program.buffers)
        self.program.buffers.append(Buffer(buffer.dtype, buffer.numel, "temporary"))
        self.pointers[number] = home = self._operand(letter, number)
        return home

    def first(self, number: int, lines: list[str]) -> Home:
        """Return an operand as the regions read it: one of one element is read once, before."""
        home, buffer = self.pointers[number], self.program.buffers[number]
        if type(buffer.numel) is not int or buffer.numel != 1:
            return home
        local = Home(self.module.fresh(), home.element)
        lines.append(f"{local.name} = {home.at('0')}")
        return local

    def copy(self, source: Home, target: Home, numel: SizeLike) -> list[str]:
        """Return lines that copy a value."""
        if type(numel) is int and numel == 1:
            # `element(...)` would change nothing.
            return [f"{target.at('0')} = {source.at('0')}"]
        k = self.module.fresh()
        return [f"for {k} in range({self.size(numel)}):",
                f"{INDENT}{target.at(k)} = {source.at(k)}"]

    # -- regions ---------------------------------------------------------------------------------
    def region(self, program: Program, homes: dict[int, Home], before: list[str]) -> list[str]:
        """Return the lines of a region, given the homes of its inputs and outputs."""
        lines: list[str] = []
        if any(self._is_small(instruction) for instruction in program.instructions):
            self.spares_calls = True
        if any(isinstance(target, Part) for target, _ in partial_writes(program.graph)):
            self.allowed = IN_PARTS
        for number, buffer in enumerate(program.buffers):
            if number not in homes:
                homes[number] = self.new_local(buffer, before)
        for instruction in program.instructions:
            lines += self._part(instruction, [homes[b] for b in instruction.operands])
        return lines

    def _part(self, instruction: Instruction, homes: Sequence[Home]) -> list[str]:
        kernel = instruction.kernel
        if instruction.extern == "matmul":
            return self._product(instruction, *homes)
        if self._is_small(instruction):
            return self._matrices(instruction, homes)
        if kernel is None or instruction.extern not in ("", LOOP):
            what = instruction.extern or (instruction.ops or ("a call",))[0]
            raise Unsupported(f"`{what}` is a call of its own")
        endless = instruction.extern == LOOP and instruction.host.op.name == "while_loop"
        if kernel.messages or endless:
            self.failing += instruction.locations
        self.locations += instruction.locations
        self.ops += instruction.ops
        sizes = [self.size(size) for size in instruction.sizes]
        lines = [f"# {place}  {place.text.strip()}".rstrip()
                 for place in instruction.locations[:3]]
        total = str(MOST_WITHIN) if endless else self.size(instruction.total)
        lines += statements(self.module, kernel, homes, sizes, total)
        return lines + self._must_have_ended(instruction, homes) if endless else lines

    def _must_have_ended(self, instruction: Instruction, homes: Sequence[Home]) -> list[str]:
        """Return lines that set the status where an inner `while` goes on: nothing would notice
        Ctrl-C before it ends, so the call runs op by op."""
        going = _decision(instruction)
        messages = self.module.messages
        messages.append(TAKES_LONG)
        return [f"if {homes[going].at('0')} != 0:", f"{INDENT}status[1] = {MOST_WITHIN}",
                f"{INDENT}status[0] = {len(messages)}"]

    def _is_small(self, instruction: Instruction) -> bool:
        """Return True for linear algebra of small matrices; with eager numerics it is LAPACK's."""
        node = instruction.host if self.fast and instruction.kernel is None else None
        return node is not None and small_matrices.operations(node) is not None

    def _matrices(self, instruction: Instruction, homes: Sequence[Home]) -> list[str]:
        """Return the lines of linear algebra of small matrices."""
        work = small_matrices.operations(instruction.host)
        assert work is not None
        self.count(work // SPARED)
        if instruction.host.may_fail:
            self.failing += instruction.locations
        self.ops += instruction.ops
        self.locations += instruction.locations
        return small_matrices.lines(self.module, instruction.host, homes, self.size)

    def _product(self, instruction: Instruction, a: Home, b: Home, out: Home) -> list[str]:
        """Return the loops of a small product. Each element is a sum in the order of the rows."""
        given = instruction.sizes
        across_a, across_b, m, n, k, lda, ldb, ldc, batch, skip_a, skip_b, skip_c = given[:12]
        work = m * n * k * batch
        self.count(work // SPARED if self.spares_calls else work * PRODUCT)
        self.ops += instruction.ops
        self.locations += instruction.locations
        matrix, i, j, p = (self.module.fresh() for _ in range(4))

        def at(home: Home, row: str, column: str, step: SizeLike, skip: SizeLike) -> str:
            first = f"{matrix} * {self.size(skip)} + " if batch != 1 else ""
            return home.at(f"{first}{row} * {self.size(step)} + {column}")

        left = at(a, p, i, lda, skip_a) if across_a else at(a, i, p, lda, skip_a)
        right = at(b, j, p, ldb, skip_b) if across_b else at(b, p, j, ldb, skip_b)
        made = at(out, i, j, ldc, skip_c)
        self.module.imported("numpy", out.element)
        lines = [
            f"for {i} in range({self.size(m)}):",
            f"{INDENT}for {j} in range({self.size(n)}):",
            f"{INDENT * 2}{made} = {out.element}(0)",
            f"{INDENT}for {p} in range({self.size(k)}):",
            f"{INDENT * 2}for {j} in range({self.size(n)}):",
            f"{INDENT * 3}{made} = {made} + {left} * {right}",
        ]  # fmt: skip
        return lines if batch == 1 else [f"for {matrix} in range({self.size(batch)}):",
                                         *indented(lines)]


def _decision(instruction: Instruction) -> int:
    """Return which operand of a `while` says that it goes on: the one behind its outputs."""
    carried = int(instruction.host.attributes["carried"])
    return len(instruction.operands) - instruction.outputs + 1 + carried


def indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines] or [f"{INDENT}pass"]


class _Branch(_Writer):
    """Writer of a `cond`."""

    def write(self) -> tuple[list[str], SizeLike]:
        before: list[str] = []
        sides = [self._side(region, before) for region in self.node.regions]
        test = self.pointers[self.read[0]].at("0")
        return [*before, f"if {test} != 0:", *indented(sides[0]),
                "else:", *indented(sides[1])], 1  # fmt: skip

    def _side(self, region: Graph, before: list[str]) -> list[str]:
        program = self.lower(separated(region))
        homes = {b: self.pointers[n] for b, n in zip(program.inputs, self.read[1:])}
        homes |= {b: self.pointers[n] for b, n in zip(program.outputs, self.written)}
        return self.region(program, homes, before)


class _Loop(_Writer):
    """Writer of a loop: what `for` and `while` share."""

    def carry(self, program: Program, inputs: Sequence[int], starts: Sequence[int],
              ends: Sequence[int]) -> tuple[dict[int, Home], list[str], list[str]]:  # fmt: skip
        """Return the homes of carried values, lines before the loop, and lines after it."""
        homes: dict[int, Home] = {}
        before: list[str] = []
        after: list[str] = []
        for number, start, end in zip(inputs, starts, ends, strict=True):
            buffer, last = program.buffers[number], self.pointers[end]
            numel = self.computed(buffer)
            large = type(numel) is not int or numel > LOCAL
            home = last if large else self.new_local(buffer, before)
            first = self.copy(self.pointers[start], home, numel)
            before += ["if lo == 0:", *indented(first)]
            if home is not last:
                before += ["else:", *indented(self.copy(last, home, numel))]
                after += self.copy(home, last, numel)
            homes[number] = home
        return homes, before, after

    def stop(self) -> list[str]:
        """Return lines that end the loop after a check that failed."""
        return ["if status[0] != 0:", f"{INDENT}break"] if self.module.messages else []


class _For(_Loop):
    """Body: index, carried, items, captured -> carried, stacked."""

    def write(self) -> tuple[list[str], SizeLike]:
        given = self.node.attributes
        carried, scanned, trips = given["carried"], given["scanned"], resolved(given["trip_count"])
        programs = [self.lower(in_place(body, 1, 0, carried)) for body in bodies(self.node)]
        index, number, module = self.module.fresh(), self.module.fresh(), self.module
        module.imported("numpy", "int64")
        first, count = programs[0], carried + scanned
        held, before, after = self.carry(
            first, first.inputs[1 : 1 + carried], self.read[:carried], self.written[:carried])
        given_homes = [held[b] for b in first.inputs[1 : 1 + carried]]
        captured = [self.first(n, before) for n in self.read[count:]]
        last, lines, carrying = self.size(trips), list[str](), self.each
        for k, program in enumerate(programs):
            homes = dict(zip(program.inputs, [Home(index, "int64"), *given_homes]))
            self.each = carrying  # an iteration runs one of the bodies
            for b, n in zip(program.inputs[1 + carried :], self.read[carried:count]):
                homes[b] = self.item(self.pointers[n], program.buffers[b].numel, index)
            for b, n in zip(program.outputs, self.written[carried:]):
                homes[b] = self.item(self.pointers[n], program.buffers[b].numel, index)
            homes |= zip(program.inputs[1 + count :], captured)
            inside = self.region(program, homes, before)
            begin = f"max(lo, {k})" if k else "lo"
            end = f"min(hi, {last})" if k == len(programs) - 1 else f"min(min(hi, {last}), {k + 1})"
            which = f"{last} - 1 - {number}" if given["reverse"] else number
            loop = [f"for {number} in range({begin}, {end}):",
                    f"{INDENT}{index} = int64({which})", *indented([*inside, *self.stop()])]
            unless = ["if status[0] == 0:"] if lines and module.messages else []
            lines += [*unless, *(indented(loop) if unless else loop)]
        total = max(1, trips) if type(trips) is int else size_max(1, trips)
        return [*before, *lines, *after], total

    def item(self, home: Home, numel: SizeLike, index: str) -> Home:
        text = self.size(numel)
        return home.item(index if text == "1" else f"{index} * {text}")


class _While(_Loop):
    """Body: carried, captured -> decision, carried."""

    def write(self) -> tuple[list[str], SizeLike]:
        carried = self.node.attributes["carried"]
        if len(self.node.outputs) > carried + 1:
            raise Unsupported("it leaves items in memory that grows while it runs")
        going = self.new_memory(Buffer(bool_, 1, ""), "y")  # right behind the outputs
        program = self.lower(in_place(self.node.regions[0], 0, 1, carried))
        module, inputs = self.module, program.inputs
        homes, before, after = self.carry(
            program, inputs[:carried], self.read[1 : 1 + carried], self.written[1:])
        for b, n in zip(inputs[carried:], self.read[1 + carried :]):
            homes[b] = self.first(n, before)
        decision = Home(module.fresh(), "uint8")
        module.imported("numpy", "uint8")
        homes[program.outputs[0]] = decision
        count, number = Home(module.fresh(), "int64"), module.fresh()
        done = self.pointers[self.written[0]]
        inside = self.region(program, homes, before)
        module.imported("numpy", "int64")
        lines = [
            *before,
            "if lo == 0:", f"{INDENT}{decision.name} = {self.pointers[self.read[0]].at('0')}",
            "else:", f"{INDENT}{decision.name} = {going.at('0')}",
            f"{count.name} = int64(lo)",
            f"for {number} in range(lo, hi):",
            f"{INDENT}if {decision.name} == 0:", f"{INDENT * 2}break",
            *indented([*inside, f"{count.name} = {count.name} + 1", *self.stop()]),
            f"{done.at('0')} = {count.name}", f"{going.at('0')} = {decision.name}", *after,
        ]  # fmt: skip
        return lines, ENDLESS


_MAKERS: dict[str, Any] = {"cond": _Branch, "for_loop": _For, "while_loop": _While}


# -- bodies ---------------------------------------------------------------------------------------


def separated(region: Graph) -> Graph:
    """Return a region whose outputs have memory of their own, which its caller chooses."""
    if len({*region.inputs, *region.outputs}) == len(region.inputs) + len(region.outputs):
        return region
    copy, _ = copy_graph(region)
    _separate(copy)
    return copy


def _separate(graph: Graph) -> None:
    taken = set(graph.inputs)
    for k, value in enumerate(graph.outputs):
        if value in taken:
            graph.outputs[k] = pointwise.clone(value)
        taken.add(graph.outputs[k])


def in_place(region: Graph, read: int, written: int, carried: int) -> Graph:
    """Return a body that writes what it carries where it read it from; other outputs stay.

    read     the first carried input
    written  the first carried output
    """
    copy, _ = copy_graph(region)
    targets: list[Value] = copy.inputs[read : read + carried]
    values = copy.outputs[written : written + carried]
    copy.writes = [(t, v) for t, v in zip(targets, values, strict=True) if t is not v]
    del copy.outputs[written : written + carried]
    _separate(copy)
    return copy
