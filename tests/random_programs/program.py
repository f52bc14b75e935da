"""A random program as data: memory, arguments, steps and calls, and how it reads as Python.

In: parts chosen by `generator.py` (or fewer of them, by `minimise.py`). Out: the text of a function
over tracejit tensors, and a script that anyone can run. Used by `runner.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from tracejit.ops.types import dtype_named

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


@dataclass(frozen=True)
class Call:
    """One call: a size assignment, and whether the memory of the previous call is used again."""

    sizes: int
    again: bool = False
    values: int = 0


@dataclass(frozen=True)
class Program:
    """Everything needed to run it; `outputs` are names, `backward` says who calls it: "", inside,
    outside.
    """

    memories: tuple[Memory, ...]
    arguments: tuple[Argument, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    calls: tuple[Call, ...]
    backward: str = ""
    container: str = "tuple"
    raises: bool = False
    rejected: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def text(self) -> str:
        """The function, named `program`."""
        lines = [f"def program({', '.join(a.name for a in self.arguments)}):"]
        for step in self.steps:
            lines += [f"    {line}" for line in step.lines]
        return "\n".join([*lines, f"    return {self._returned()}", ""])

    def _returned(self) -> str:
        if self.container == "single" and len(self.outputs) == 1:
            return self.outputs[0]
        if self.container == "dict":
            return "{" + ", ".join(f"{name!r}: {name}" for name in self.outputs) + "}"
        return f"({', '.join(self.outputs)},)" if self.outputs else "None"

    def script(self, mode: str, numerics: str = "fast") -> str:
        """A Python script that runs the program plainly and captured and prints both."""
        return f"""import numpy as np
import tracejit as tj
import tracejit.nn.functional as F
from numpy import array, inf, nan, float16, float32, float64, int8, int16, int32, int64, uint8
from ml_dtypes import bfloat16
from tests.random_programs.runner import demonstrate
from tests.random_programs.program import Argument, Call, Memory, Program, Step

program = {self._source()}
print(program.text())
demonstrate(program, mode={mode!r}, numerics={numerics!r})
"""

    def _source(self) -> str:
        bare = replace(
            self, steps=tuple(replace(s, cells=frozenset()) for s in self.steps), rejected=()
        )
        return repr(bare)


def values(memory: Memory, call: Call) -> np.ndarray:
    """The content of a piece of memory before a call; the same for every run of the program."""
    sizes = call.sizes
    rng = np.random.default_rng([crc32(memory.name.encode()), sizes, call.values])
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
