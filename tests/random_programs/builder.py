"""A program while it is being made: every step is run eagerly at every size as soon as it is
proposed.

In: drafts from `operations.py`. Out: steps that run, the cells they cover, and the drafts eager
mode refused (an op is asked for more than it supports now and then; the refusals are counted, so
that a broken op cannot hide there).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tracejit as tj
import tracejit.nn.functional as F
from tests.random_programs.choices import Choices
from tests.random_programs.program import Argument, Call, Memory, Shape, Step, values

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
SIZES = (3, 4, 2, 5, 8, 17, 37)


@dataclass
class Draft:
    """A proposed step. `text` is an expression, or a statement where something is written or
    several are defined.
    """

    op: str
    text: str
    operands: tuple[str, ...]
    writes: str = ""
    results: int = 1


class Builder:
    """Memory, arguments and steps so far, with the values of all names at every size assignment."""

    def __init__(self, choices: Choices):
        self.choices = choices
        count = choices.between(1, 3)
        self.sizes = {d: tuple(self._size(k) for k in range(count)) for d in "nmk"}
        self.count = count
        self.memories: list[Memory] = []
        self.arguments: list[Argument] = []
        self.steps: list[Step] = []
        self.rejected: list[tuple[str, str]] = []
        self.spaces: list[dict[str, Any]] = [{"tj": tj, "F": F} for _ in range(count)]
        self.live: list[str] = []
        self.roots: list[list[Any]] = [[] for _ in range(count)]  # tensors that own memory
        self.frozen: set[str] = set()  # indices, which no step may write
        self.numbers: list[str] = []
        self.failed = False

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
        return self.spaces[k][name]

    def shapes(self, name: str) -> Shapes:
        return tuple(tuple(map(int, space[name].shape)) for space in self.spaces)

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
            and all(low <= space[n].ndim <= high for space in self.spaces)
            and len({space[n].ndim for space in self.spaces}) == 1
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

    # -- adding ----------------------------------------------------------------------------------
    def add(self, draft: Draft) -> bool:
        """Run a draft at every size; keep it as a step if eager mode accepts it."""
        names = (
            ()
            if draft.writes
            else tuple(
                f"v{len(self.steps)}{'ab'[k] if draft.results > 1 else ''}"
                for k in range(draft.results)
            )
        )
        line = f"{', '.join(names)} = {draft.text}" if names else draft.text
        lines = tuple(line.split("\n"))
        cells = self._cells(draft)
        code = compile(line, "<step>", "exec")
        for space in self.spaces:
            try:
                exec(code, space)
            except (
                RuntimeError,
                ValueError,
                IndexError,
                TypeError,
                NotImplementedError,
                ArithmeticError,
            ) as e:
                self.rejected.append((draft.op, f"{type(e).__name__}: {e}"))
                self.failed = self.choices.chance(
                    20
                )  # the program ends here: exceptions must agree, too
                if self.failed:
                    self.steps.append(Step(lines, (), frozenset(draft.operands), cells=frozenset()))
                return False
        if any(
            isinstance(space[n], tj.Tensor) and space[n].numel() > 4096
            for n in names
            for space in self.spaces
        ):
            return False
        self.steps.append(Step(lines, names, frozenset(draft.operands), cells))
        self.live += [n for n in names if isinstance(self.value(n), tj.Tensor)]
        return True

    def _cells(self, draft: Draft) -> frozenset[tuple[str, str, str, str]]:
        if not draft.operands:
            return frozenset([(draft.op, "-", "-", "-")])
        first = draft.writes or draft.operands[0]
        alias = ("write " if draft.writes else "") + self._alias(first)
        return frozenset(
            (draft.op, self.dtype(first), self._shape_class(draft, first, k), alias)
            for k in range(self.count)
        )

    def _shape_class(self, draft: Draft, first: str, k: int) -> str:
        shape = tuple(self.value(first, k).shape)
        others = [self.value(n, k) for n in draft.operands]
        if 0 in shape:
            return "0"
        if any(
            isinstance(o, tj.Tensor) and o.dtype.name != "int64" and tuple(o.shape) != shape
            for o in others
        ):
            return "broadcast"
        return "0-dim" if not shape else "1" if 1 in shape else "many"

    def _alias(self, name: str) -> str:
        x = self.value(name)
        if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            return "expanded"
        looking = [
            a for a in self.arguments if a.memory and self.value(a.name)._storage is x._storage
        ]
        if len(looking) > 1:
            return "shared"
        if not x.is_contiguous():
            return "strided"
        if any(x is self.value(a.name) for a in looking):
            return "input"
        return "view" if looking or x._is_view() else "fresh"


def tensor_of(memory: Memory, call: Call) -> Any:
    """The tensor a piece of memory is, before a call."""
    made = tj.Tensor.of_array(np.array(values(memory, call), copy=True))
    if memory.history:
        made.requires_grad_()
    return made * 1 if memory.history == "computed" else made
