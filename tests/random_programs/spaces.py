"""The values of a program's names while it is being made: memory, arguments, and what can be asked
of them at every size assignment.

In: decisions. Out: a Spaces, which `builder.py` adds steps to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

import tracejit as tj
import tracejit.nn.functional as F
from tests.random_programs.choices import Choices
from tests.random_programs.program import Argument, Call, Memory, Shape, values

Shapes = tuple[Shape, ...]
DTYPES = (
    "float32",
    "float32",
    "float32",
    "float64",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
KIND = {
    "f": ("float32", "float64", "float16", "bfloat16"),
    "b": ("bool",),
    "i": ("int64", "int32", "int16", "int8", "uint8"),
}
REFUSALS = (
    RuntimeError,
    ValueError,
    IndexError,
    TypeError,
    NotImplementedError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    NameError,
    KeyError,
)
SIZES = (3, 4, 2, 5, 8, 17, 37)


class Spaces:
    """Memory and arguments, with the values of all names at every size assignment."""

    def __init__(self, choices: Choices):
        self.choices = choices
        count = choices.between(1, 3)
        self.sizes = {d: tuple(self._size(k) for k in range(count)) for d in "nmk"}
        self.count = count
        self.memories: list[Memory] = []
        self.arguments: list[Argument] = []
        self.rejected: list[tuple[str, str]] = []
        self.spaces: list[dict[str, Any]] = [
            {"tj": tj, "F": F, "__name__": "program"} for _ in range(count)
        ]
        self.live: list[str] = []
        self.roots: list[list[Any]] = [[] for _ in range(count)]  # tensors that own memory
        self.frozen: set[str] = set()  # indices, which no step may write
        self.numbers: list[str] = []
        self.names = 0

    def _size(self, assignment: int) -> int:
        few = self.choices.chance(12 if assignment == 0 else 45)
        return self.choices.pick((1, 0)) if few else self.choices.pick(SIZES)

    # -- memory and arguments --------------------------------------------------------------------
    def shape(self, *dims: str | int) -> Shapes:
        """The shape made of named and fixed sizes, at every assignment."""
        return tuple(
            tuple(d if isinstance(d, int) else self.sizes[d][k] for d in dims)
            for k in range(self.count)
        )

    def memory(
        self,
        dtype: str,
        shapes: Shapes,
        kind: str = "plain",
        high: Sequence[int] = (),
        history: str = "",
    ) -> Memory:
        found = Memory(f"m{len(self.memories)}", dtype, shapes, kind, tuple(high), history)
        self.memories.append(found)
        for k, space in enumerate(self.spaces):
            space[found.name] = tensor_of(found, Call(k))
            self.roots[k].append(space[found.name])
        return found

    def argument(self, memory: Memory, views: Sequence[str] | None = None) -> str:
        """An argument that looks at memory through one expression per assignment."""
        name = f"x{len(self.arguments)}"
        self.arguments.append(
            Argument(name, tuple(views or [memory.name] * self.count), memory.name)
        )
        for k, space in enumerate(self.spaces):
            space[name] = eval(self.arguments[-1].given[k], space)
        self.live.append(name)
        return name

    def number(self, given: Sequence[Any]) -> str:
        """A Python number the function is called with."""
        name = f"x{len(self.arguments)}"
        self.arguments.append(Argument(name, tuple(map(repr, given))))
        for space, value in zip(self.spaces, given):
            space[name] = value
        self.numbers.append(name)
        return name

    def index(self, shapes: Shapes, high: Sequence[int]) -> str:
        """An int64 argument whose elements are valid positions below `high`; empty where there are
        none.
        """
        shapes = tuple(s if h else tuple(0 for _ in s) for s, h in zip(shapes, high))
        name = self.argument(self.memory("int64", shapes, "index", high))
        self.live.remove(name)
        self.frozen.add(name)
        return name

    # -- asking ----------------------------------------------------------------------------------
    def value(self, name: str, k: int = 0) -> Any:
        space = self.spaces[k]
        return space[name] if name in space else eval(name, space)  # `o.t` is a name, too

    def values(self, name: str) -> list[Any]:
        return [self.value(name, k) for k in range(self.count)]

    def shapes(self, name: str) -> Shapes:
        return tuple(tuple(map(int, x.shape)) for x in self.values(name))

    def fresh(self, kind: str) -> str:
        """A new name."""
        self.names += 1
        return f"{kind}{self.names - 1}"

    def dtype(self, name: str) -> str:
        return self.value(name).dtype.name

    def rank(self, name: str) -> int:
        return self.value(name).ndim

    def tensor(
        self,
        kinds: str = "fib",
        low: int = 0,
        high: int = 4,
        fits: Callable[[str], Any] = lambda name: True,
    ) -> str | None:
        """A live tensor of one of these kinds and ranks, a recent one more often than not."""
        found = [
            n
            for n in self.live
            if any(self.dtype(n) in KIND[k] for k in kinds)
            and all(low <= x.ndim <= high for x in self.values(n))
            and len({x.ndim for x in self.values(n)}) == 1
            and fits(n)
        ]
        if not found:
            return None
        return self.choices.pick(found[-3:] if self.choices.chance(70) else found)

    def partner(self, name: str, kinds: str = "fib") -> str:
        """A tensor that broadcasts with another at every size; that one itself if there is none."""
        return self.tensor(kinds, fits=lambda n: self._broadcasts(name, n)) or name

    def _broadcasts(self, a: str, b: str) -> bool:
        try:
            for s, t in zip(self.shapes(a), self.shapes(b)):
                if max(np.broadcast_shapes(s, t), default=0) > 64:
                    return False
        except ValueError:
            return False
        return True

    def type(self, name: str) -> tuple[str, Shapes]:
        return self.dtype(name), self.shapes(name)

    # -- running ---------------------------------------------------------------------------------
    def run(self, code: CodeType, op: str = "") -> bool:
        """Execute something in every space; False where eager mode refuses it."""
        for space in self.spaces:
            try:
                exec(code, space)
            except REFUSALS as e:
                self.rejected.append((op, f"{type(e).__name__}: {e}"))
                return False
        return True

    def evaluate(self, text: str) -> list[Any] | None:
        """The values of an expression; None where one is refused."""
        code = compile(text, "<expression>", "eval")
        try:
            return [eval(code, space) for space in self.spaces]
        except REFUSALS:
            return None


def tensor_of(memory: Memory, call: Call) -> Any:
    """The tensor a piece of memory is, before a call."""
    made = tj.Tensor.of_array(values(memory, call))
    if memory.history:
        made.requires_grad_()
    return made * 1 if memory.history == "computed" else made
