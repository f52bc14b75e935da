"""A random program as data: memory, arguments, steps and calls, and how it reads as Python.

In: parts chosen by `generator.py` (or fewer of them, by `minimise.py`). Out: the text of a function
over tracejit tensors, and a script that anyone can run. Used by `runner.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from zlib import crc32

import numpy as np

from tracejit.core.ops.types import dtype_named

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Memory:
    """A tensor the caller owns; arguments are it or look at it. One shape per size assignment.

    values    plain, special (NaN, infinities, -0.0 among them), ties (few different ones), index
    high      for index: values are below this, per size assignment
    history   "" (no gradients), "leaf" (requires grad) or "computed" (a result that requires grad)
    """

    name: str
    dtype: str
    shapes: tuple[Shape, ...]
    values: str = "plain"
    high: tuple[int, ...] = ()
    history: str = ""


@dataclass(frozen=True)
class Argument:
    """What the function is called with: an expression over memory, or a number, per size
    assignment.
    """

    name: str
    given: tuple[str, ...]
    memory: str = ""  # "" for numbers


@dataclass(frozen=True)
class Step:
    """Some lines of the program; `cells`: (op, dtype, shape class, alias class) they cover."""

    lines: tuple[str, ...]
    defines: tuple[str, ...]
    uses: frozenset[str]
    cells: frozenset[tuple[str, str, str, str]] = frozenset()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Clause:
    """A line that ends in a colon, and what is indented under it; `start`: what bounds a loop."""

    head: str
    body: Body
    start: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A compound statement: `if`/`elif`/`else`, a loop and its `else`, `try`, `def`, `class`."""

    clauses: tuple[Clause, ...]
    marks: tuple[Mark, ...] = ()


Mark = tuple[str, str, str]  # a control construct, the block it stands in, what decides it
Body = tuple[Step | Block, ...]


@dataclass(frozen=True)
class Call:
    """One call: a size assignment, and whether the memory of the previous call is used again.

    changes   what the caller does first: statements over memory, arguments by name, `o`, `scope`
              (the globals of the program) and `cell(name, value)`
    """

    sizes: int
    again: bool = False
    values: int = 0
    changes: tuple[str, ...] = ()
    no_grad: bool = False


@dataclass(frozen=True)
class Program:
    """Everything needed to run it; `outputs` are names, `backward` says who calls it: "", inside,
    outside.

    preamble   what stands before the function: globals, a class, functions
    cells      variables of a function around it, as statements
    once       the caller's state before the first call, as statements; `each`: whenever memory is
               made anew
    """

    memories: tuple[Memory, ...]
    arguments: tuple[Argument, ...]
    steps: Body
    outputs: tuple[str, ...]
    calls: tuple[Call, ...]
    backward: str = ""
    container: str = "tuple"
    raises: bool = False
    rejected: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    preamble: Body = ()
    cells: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = field(default=(), compare=False)

    def text(self) -> str:
        """The function, named `program`, and what it needs around it."""
        lines = [f"def program({', '.join(a.name for a in self.arguments)}):"]
        if self.changed_cells:
            lines.append(f"    nonlocal {', '.join(self.changed_cells)}")
        if self.changed_globals:
            lines.append(f"    global {', '.join(self.changed_globals)}")
        lines += indented(printed(self.steps))
        lines.append(f"    return {self._returned()}")
        if self.cells:
            lines = ["def around():", *indented([*self.cells, *lines, "return program"])]
            lines.append("program = around()")
        return "\n".join([*printed(self.preamble), *lines, ""])

    @property
    def is_flow(self) -> bool:
        """Whether it was made with control flow and state."""
        return bool(self.once)

    @property
    def reads_gradients(self) -> bool:
        """Whether what it computes depends on gradients, whose terms may be added in another
        order."""
        return any(".grad" in line for line in printed((*self.preamble, *self.steps)))

    @property
    def changed_globals(self) -> list[str]:
        return self._assigned([line for step in self.preamble if isinstance(step, Step)
                               for line in step.lines])

    @property
    def changed_cells(self) -> list[str]:
        return self._assigned(self.cells)

    def _assigned(self, lines: Iterable[str]) -> list[str]:
        names = [line.split(" ")[0] for line in lines]
        text = printed(self.steps)
        return [n for n in names if any(t.lstrip().startswith((f"{n} =", f"{n} +=")) for t in text)]

    def _returned(self) -> str:
        if self.container == "single" and len(self.outputs) == 1:
            return self.outputs[0]
        if self.container == "dict":
            return "{" + ", ".join(f"{name!r}: {name}" for name in self.outputs) + "}"
        return f"({', '.join(self.outputs)},)" if self.outputs else "None"

    def script(self, mode: str, numerics: str = "fast", capture: str = "script") -> str:
        """A Python script that runs the program plainly and captured and prints both."""
        shown = "".join(f"# {line}\n" for line in self.text().splitlines())
        return f"""{shown}import numpy as np
import tracejit as tj
import tracejit.nn.functional as F
from numpy import array, inf, nan, float16, float32, float64, int8, int16, int32, int64, uint8
from ml_dtypes import bfloat16
from tests.random_programs.runner import demonstrate
from tests.random_programs.program import Argument, Block, Call, Clause, Memory, Program, Step

program = {self._source()}
print(program.text())
demonstrate(program, mode={mode!r}, numerics={numerics!r}, capture={capture!r})
"""

    def _source(self) -> str:
        return repr(replace(self, steps=_bare(self.steps), preamble=_bare(self.preamble),
                            rejected=(), marks=()))


def printed(body: Body) -> list[str]:
    """Statements as lines of Python."""
    lines: list[str] = []
    for step in body:
        if isinstance(step, Step):
            lines += step.lines
            continue
        for clause in step.clauses:
            inside = [*clause.start, *printed(clause.body)]
            lines += [clause.head, *indented(inside or ["pass"])]
    return lines


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def walk(body: Body) -> Iterator[Step | Block]:
    """All statements, those inside others, too."""
    for step in body:
        yield step
        if isinstance(step, Block):
            for clause in step.clauses:
                yield from walk(clause.body)


def _bare(body: Body) -> Body:
    """Without what coverage counts."""
    return tuple(
        replace(step, cells=frozenset(), marks=()) if isinstance(step, Step)
        else Block(tuple(replace(c, body=_bare(c.body)) for c in step.clauses))
        for step in body
    )


def values(memory: Memory, call: Call) -> np.ndarray:
    """The content of a piece of memory before a call; the same for every run of the program."""
    return np.array(_values(memory, call.sizes, call.values), copy=True)


@lru_cache(64)
def _values(memory: Memory, sizes: int, number: int) -> np.ndarray:
    rng = np.random.default_rng([crc32(memory.name.encode()), sizes, number])
    shape, kind = memory.shapes[sizes], dtype_named(memory.dtype).numpy
    if memory.values == "index":
        return rng.integers(0, max(memory.high[sizes], 1), shape).astype(kind)
    if memory.dtype == "bool":
        return rng.random(shape) < 0.5
    if np.issubdtype(kind, np.integer):
        low = 0 if memory.dtype == "uint8" else -7
        return rng.integers(low, 8, shape).astype(kind)
    found = np.asarray(
        rng.integers(-2, 3, shape) / 2 if memory.values == "ties" else rng.normal(0, 1.5, shape)
    )
    if memory.values == "special":
        spoiled = rng.random(shape) < 0.3
        found = np.where(
            spoiled, rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-30], shape), found
        )
    return np.asarray(found).astype(kind)
