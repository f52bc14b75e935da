"""Program: the result of lowering for the runtime. Kernels, buffers, and a table of instructions.

In: filled by `jit/lowering/schedule.py` and its neighbours. Out: read by `runtime/` (bind, run),
`report()`, golden tests. Everything that depends on extents is a size expression, evaluated once
per binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tracejit.core.ops.types import dtype
from tracejit.jit.ir.graph import Graph, Location
from tracejit.jit.ir.sizes import SizeLike


@dataclass(frozen=True)
class Kernel:
    """Generated function, in the one ABI:
    `kernel(buffers, operands, sizes, scratch, status, lo, hi)`.

    - `buffers`: table of addresses (python mode: list of 1-D NumPy arrays)
    - `operands`: numbers of this instruction's buffers in that table
    - `sizes`: this instruction's integers: extents, strides, constants the text refers to as
      sizes[k]
    - `scratch`: per-worker memory of `scratch_bytes`
    - `status`: status[0] != 0 reports a failed check: 1 + number of the message in `messages`;
      status[1] the value
    - `lo`, `hi`: the part of the outermost range this call works on
    """

    name: str
    # text of a module that defines the function `name`; `digest` is its identity
    source: str
    digest: str
    loops: int  # loop nests
    scratch_bytes: int = 0
    messages: tuple[str, ...] = ()


@dataclass
class Buffer:
    """Piece of memory: `role` input (of graph input `index`), output (of graph output `index`) or
    temporary."""

    dtype: dtype
    numel: SizeLike
    role: str
    index: int = 0
    arena_offset: SizeLike = 0  # temporaries, bytes; set by the memory plan at bind time
    first_use: int = 0  # instruction numbers between which a temporary must keep its place
    last_use: int = 0


@dataclass
class Instruction:
    """Kernel launch, library call or host call over [0, total) in chunks of `chunk`, both fixed by
    shape."""

    kernel: Kernel | None  # None: a host call of `op.eager`
    operands: tuple[int, ...]  # buffer numbers; outputs last
    outputs: int  # how many of them are written
    sizes: tuple[SizeLike, ...]
    total: SizeLike
    chunk: SizeLike
    ops: tuple[str, ...] = ()  # names of the ops computed here, for reports
    locations: tuple[Location, ...] = ()
    bytes_read: SizeLike = 0
    bytes_written: SizeLike = 0
    arithmetic: SizeLike = 0  # additions, about, that a kernel of loops makes
    extern: str = ""  # library routine, e.g. "matmul"
    host: Any = None  # the ir Node a host call, or a library kernel, evaluates
    regions: tuple[Program, ...] = ()  # what a host call of structured control flow calls
    each: SizeLike = 0  # elements that an iteration of a loop computes, if it is one kernel
    apart: Callable[[], Instruction] | None = None  # the same with programs as its regions


@dataclass
class Program:
    """Lowered graph. `outputs[i]` is the buffer of graph output i (an input's buffer where it is
    returned)."""

    graph: Graph
    kernels: dict[str, Kernel] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def all_instructions(self) -> Iterator[Instruction]:
        """Yield instructions in order, those of regions after the instruction that runs them."""
        for instruction in self.instructions:
            yield instruction
            for region in instruction.regions:
                yield from region.all_instructions()
