"""A program while it is being made: every step is run eagerly at every size as soon as it is
proposed.

In: drafts from `operations.py`. Out: steps that run, the cells they cover, and the drafts eager
mode refused (an op is asked for more than it supports now and then; the refusals are counted, so
that a broken op cannot hide there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

import tracejit as tj
import tracejit.nn.functional as F
from tests.random_programs.cells import cells
from tests.random_programs.choices import Choices
from tests.random_programs.program import Argument, Block, Call, Memory, Shape, Step, values

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
    UnboundLocalError,
    KeyError,
)
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
        self.steps: list[Step | Block] = []
        self.rejected: list[tuple[str, str]] = []
        self.spaces: list[dict[str, Any]] = [
            {"tj": tj, "F": F, "__name__": "program"} for _ in range(count)
        ]
        self.live: list[str] = []
        self.roots: list[list[Any]] = [[] for _ in range(count)]  # tensors that own memory
        self.frozen: set[str] = set()  # indices, which no step may write
        self.numbers: list[str] = []
        self.lists: list[str] = []  # names of lists of tensors
        self.places: list[str] = []  # the blocks around: branch, for, while, function
        self.regions = 0  # how many of them a tensor decides
        self.tame = False  # whether these hold only what can be captured as regions
        self.names = 0
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

    # -- adding ----------------------------------------------------------------------------------
    def add(self, draft: Draft) -> bool:
        """Run a draft at every size; keep it as a step if eager mode accepts it."""
        names = self._defined(draft)
        line = f"{', '.join(names)} = {draft.text}" if names else draft.text
        lines = tuple(line.split("\n"))
        covered = cells(self, draft)
        code = compile(line, "<step>", "exec")
        if not self.run(code, draft.op):
            # the program ends here now and then: exceptions must agree, too
            self.failed = self.choices.chance(1 if self.places else 20)
            if self.failed:
                self.steps.append(Step(lines, (), frozenset(draft.operands)))
            return False
        made = [x for n in names for x in self.values(n) if isinstance(x, tj.Tensor)]
        if any(x.numel() > 4096 for x in made):
            return False
        self.steps.append(Step(lines, names, frozenset(draft.operands), covered))
        self.live += [
            n for n in names if isinstance(self.value(n), tj.Tensor) and n not in self.live
        ]
        return True

    def add_into(self, draft: Draft) -> bool:
        """Let a variable that is there take a draft's value, or its sum: a region's sides and
        iterations bind the same variables.
        """
        found = self.evaluate(draft.text) if draft.results == 1 else None
        if found is None or not all(isinstance(x, tj.Tensor) for x in found):
            return False
        kind = found[0].dtype.name, tuple(tuple(map(int, x.shape)) for x in found)
        same = self.tensor(fits=lambda n: n.isidentifier() and self._type(n) == kind)
        into = same or self.tensor("f", fits=str.isidentifier)
        if into is None:
            return False
        text = draft.text if same else f"{into} + ({draft.text}).sum()"
        made = self.evaluate(text)
        if made is None or [x.dtype.name for x in made] != [self.dtype(into)] * self.count:
            return False
        if tuple(tuple(map(int, x.shape)) for x in made) != self.shapes(into):
            return False
        covered = cells(self, draft)
        for space, x in zip(self.spaces, made):
            space[into] = x
        uses = frozenset((*draft.operands, into))
        self.steps.append(Step((f"{into} = {text}",), (into,), uses, covered))
        return True

    def _defined(self, draft: Draft) -> tuple[str, ...]:
        if draft.writes:
            return ()
        name = self.fresh("v")
        return (name,) if draft.results == 1 else tuple(name + c for c in "ab"[: draft.results])

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

    def statement(self, *lines: str, defines: Sequence[str] = (), uses: Sequence[str] = (),
                  mark: str = "", decided: str = "-") -> bool:
        """Add Python that is no op; False where it is refused."""
        if not self.run(compile("\n".join(lines), "<step>", "exec")):
            return False
        marks = ((mark, self.place, decided),) if mark else ()
        self.steps.append(Step(lines, tuple(defines), frozenset(uses), marks=marks))
        for name in defines:
            self._know(name)
        return True

    def _know(self, name: str) -> None:
        (kind, *others) = {type(x) for x in self.values(name)}
        group = {int: self.numbers, float: self.numbers, tj.Tensor: self.live, list: self.lists}
        if kind in group and not others and name not in group[kind]:
            group[kind].append(name)

    # -- blocks ----------------------------------------------------------------------------------
    @property
    def careful(self) -> bool:
        """Whether what comes next should be fit for a region."""
        return self.tame and self.regions > 0

    @property
    def place(self) -> str:
        return self.places[-1] if self.places else "top"

    @contextmanager
    def inside(self, place: str, decided: str = "-") -> Iterator[list[Step | Block]]:
        """A block: what it defines is unknown behind it, but for arguments; its statements."""
        kept = self.live, self.numbers, self.lists, self.steps
        known = {n: self._type(n) for n in self.live}
        self.live, self.numbers, self.lists = list(kept[0]), list(kept[1]), list(kept[2])
        self.steps = made = []
        self.places.append(place)
        self.regions += decided == "tensor"
        try:
            yield made
        finally:
            self.places.pop()
            self.regions -= decided == "tensor"
            late = [n for n in self.live if n not in kept[0] and n.startswith("x")]
            numbers = [n for n in self.numbers if n not in kept[1] and n.startswith("x")]
            self.live = [n for n in kept[0] if n in self.live and self._type(n) == known[n]] + late
            self.numbers, self.lists, self.steps = kept[1] + numbers, kept[2], kept[3]

    def _type(self, name: str) -> Any:
        return self.dtype(name), self.shapes(name)


def tensor_of(memory: Memory, call: Call) -> Any:
    """The tensor a piece of memory is, before a call."""
    made = tj.Tensor.of_array(values(memory, call))
    if memory.history:
        made.requires_grad_()
    return made * 1 if memory.history == "computed" else made
