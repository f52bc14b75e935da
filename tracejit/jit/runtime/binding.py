"""Program for one set of sizes: every size expression evaluated, memory planned, tables built.

In: a Program and a value for each symbol. Out: a Binding, which `executable` or `cuda_executable`
runs. A program has one Binding for each input shape. Any number of threads use it, since a call
writes only to its own frame.

The buffer table holds inputs, then outputs, then temporaries, so that a call writes one stretch of
addresses; `place` gives each buffer's position in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.lowering import extern, vector_products
from tracejit.jit.lowering.library import libraries
from tracejit.jit.lowering.library_collectives import WAITS
from tracejit.jit.lowering.loop_kernel import LARGE, LOOP
from tracejit.jit.lowering.program import Buffer, Instruction, Kernel, Program
from tracejit.jit.lowering.small_sizes import kernel_for
from tracejit.jit.runtime import memory_plan
from tracejit.jit.runtime.runner import SHARED_PROGRAM, SHARED_STEP, WAKING_PROGRAM

LONG = 1 << 14  # iterations of a loop that runs without a look at signals
BRIEF = 16  # iterations that are too short to release the interpreter's lock
_MULTIPLY_ADDS_PER_BYTE = 4  # as many take as long as moving a byte


@dataclass
class Step:
    """Instruction with its sizes evaluated."""

    instruction: Instruction
    operands: tuple[int, ...]  # places in the buffer table; those of a vector kernel follow
    sizes: tuple[int, ...]
    total: int
    chunk: int
    shared: bool = False
    scratch: int = 0  # bytes for each worker
    work: int = 0  # bytes moved and additions made
    paused: bool = False  # a loop that Python conducts: it is long, or its regions are programs
    apart: Step | None = None  # the same step with programs as its regions
    kernel: Kernel | None = None  # the instruction's, or that for these sizes


@dataclass
class Binding:
    """Facts that are fixed once the sizes are known.

    buffer_bytes  bytes of each of the program's buffers
    output_bytes  bytes of each output buffer, in the order of their places
    arena_bytes   bytes of the temporaries; `peak_bytes`: with the outputs
    stretches     the program in runs: (first step, number of steps), or (step, 0) for a host call
    """

    values: Mapping[str, int]
    place: list[int]
    steps: list[Step]
    buffer_bytes: list[int]
    output_bytes: list[int]
    temporary_offsets: list[int]
    arena_bytes: int
    scratch_bytes: int
    stretches: list[tuple[int, int]]
    shared: bool  # workers that are awake may help
    wakes: bool  # sleeping ones are worth waking
    peak_bytes: int
    native: Any = None  # what the executable adds: tables, and how to call
    frames: list[Any] = field(default_factory=list)


def bind(program: Program, values: Mapping[str, int]) -> Binding:
    """Evaluate every size of `program` for these symbols. Raises KeyError where one has no
    value."""
    inputs, outputs, temporaries = _roles(program)
    place = [0] * len(program.buffers)
    for position, number in enumerate([*inputs, *outputs, *temporaries]):
        place[number] = position
    nbytes = [_bytes_of(program, buffer, values) for buffer in program.buffers]
    layout = memory_plan.plan(_lives(program, temporaries, nbytes))
    steps = [_step(instruction, place, nbytes, values) for instruction in program.instructions]
    output_bytes = [nbytes[number] for number in outputs]
    work = sum(step.work for step in steps if step.shared)
    return Binding(
        values=dict(values), place=place, steps=steps, buffer_bytes=nbytes,
        output_bytes=output_bytes, temporary_offsets=layout.offsets, arena_bytes=layout.nbytes,
        scratch_bytes=max((step.scratch for step in steps), default=0),
        stretches=_stretches(steps),
        shared=work >= SHARED_PROGRAM, wakes=work >= WAKING_PROGRAM,
        peak_bytes=layout.nbytes + sum(output_bytes),
    )  # fmt: skip


def _roles(program: Program) -> tuple[list[int], list[int], list[int]]:
    """Return the numbers of the input buffers in calling order, of the outputs, and of the
    others."""
    inputs = list(program.inputs)
    known = set(inputs)
    outputs = [i for i, b in enumerate(program.buffers) if b.role == "output" and i not in known]
    known.update(outputs)
    return inputs, outputs, [i for i in range(len(program.buffers)) if i not in known]


def _bytes_of(program: Program, buffer: Buffer, values: Mapping[str, int]) -> int:
    numel = evaluate(buffer.numel, values)
    if buffer.role == "input" and program.graph.strides:
        value = program.graph.inputs[buffer.index]
        strides = program.graph.strides.get(value)
        if strides is not None:  # all memory from the first to the last element, gaps included
            shape = [evaluate(s, values) for s in value.shape]
            steps = [evaluate(s, values) for s in strides]
            reach = 1 + sum((n - 1) * step for n, step in zip(shape, steps))
            numel = reach if all(shape) else 0
    return numel * buffer.dtype.itemsize


def _lives(
    program: Program, temporaries: Sequence[int], nbytes: Sequence[int]
) -> list[memory_plan.Life]:
    """Return the life of each temporary: all instructions that use it, and those that lowering
    noted.

    A first use of 0 that lowering noted counts as not noted.
    """
    uses: dict[int, list[int]] = {}
    for k, instruction in enumerate(program.instructions):
        for number in instruction.operands:
            uses.setdefault(number, []).append(k)
    lives = []
    for number in temporaries:
        used = uses.get(number, [0])
        buffer = program.buffers[number]
        first, last = min(used[0], buffer.first_use), max(used[-1], buffer.last_use)
        lives.append(memory_plan.Life(nbytes[number], first if first else used[0], last))
    return lives


def _step(
    instruction: Instruction, place: Sequence[int], nbytes: Sequence[int],
    values: Mapping[str, int],
) -> Step:  # fmt: skip
    sizes = tuple(evaluate(size, values) for size in instruction.sizes)
    total, chunk = evaluate(instruction.total, values), evaluate(instruction.chunk, values)
    kernel = instruction.kernel
    scratch, work = kernel.scratch_bytes if kernel is not None else 0, None
    if instruction.extern == "matmul":
        sizes, total, chunk = _bind_matmul(sizes)
        scratch = extern.scratch_of(*sizes[2:5])
        work = sizes[2] * sizes[3] * sizes[4] * sizes[8] // _MULTIPLY_ADDS_PER_BYTE
    elif instruction.extern not in ("", LOOP):
        sizes, total, chunk, scratch, work = libraries()[instruction.extern].bound(sizes)
    if work is None:
        work = sum(nbytes[number] for number in instruction.operands)
        work += evaluate(instruction.arithmetic, values)  # an addition takes as long as a byte
    operands = tuple(place[number] for number in instruction.operands)
    if instruction.extern == "matmul":
        found = vector_products.vectors(extern.dtype_of(kernel), sizes)
        if found is not None:
            kernel, sizes = found.kernel, (*sizes, *found.sizes)
            total, chunk, scratch, work = found.total, found.chunk, found.scratch, found.work
            operands += operands[1::-1] if found.first else operands[:2]
    step = Step(instruction, operands, sizes, total, max(1, chunk), scratch=scratch, work=work)
    # Handing chunks over pays only if an instruction has several and enough work.
    enough = total > step.chunk and work >= SHARED_STEP
    step.shared = instruction.kernel is not None and enough
    step.kernel = kernel
    if instruction.extern == LOOP:
        _part(step, place, nbytes, values)
    return step


def _part(step: Step, place: Sequence[int], nbytes: Sequence[int], values: Mapping[str, int]
          ) -> None:  # fmt: skip
    """Decide how a loop runs: at once, with stops, or with programs that threads share."""
    instruction = step.instruction
    if instruction.apart is not None and evaluate(instruction.each, values) > LARGE:
        step.apart = _step(instruction.apart(), place, nbytes, values)
    step.paused = step.total > LONG or step.apart is not None
    if step.apart is None:
        step.kernel = kernel_for(instruction, values, [nbytes[b] for b in instruction.operands])


def _bind_matmul(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
    m, n, k, batch = sizes[2], sizes[3], sizes[4], sizes[8]
    split, total, chunk = extern.partition(m, n, k, batch)
    return (*sizes[:12], split), total, chunk


def _stretches(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Return the runs of native instructions. A wait begins one: it may be called again."""
    found: list[tuple[int, int]] = []
    for k, step in enumerate(steps):
        instruction = step.instruction
        if instruction.kernel is None or step.paused:
            found.append((k, 0))
        elif found and found[-1][1] and instruction.extern != WAITS:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((k, 1))
    return found
