"""A program while it is being made: every step is run eagerly at every size as soon as it is
proposed.

In: drafts from `operations.py`, statements from `flow.py`. Out: steps that run, the cells they
cover, and the drafts eager mode refused (an op is asked for more than it supports now and then; the
refusals are counted, so that a broken op cannot hide there).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import tracejit as tj
from tests.random_programs.cells import cells
from tests.random_programs.choices import Choices
from tests.random_programs.program import Block, Mark, Step
from tests.random_programs.spaces import Spaces


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


class Builder(Spaces):
    """The steps so far, over the values of all names."""

    def __init__(self, choices: Choices):
        super().__init__(choices)
        self.steps: list[Step | Block] = []
        self.lists: list[str] = []  # names of lists of tensors
        self.places: list[str] = []  # the blocks around: branch, for, while, function
        self.regions = 0  # how many of them a tensor decides
        self.tame = False  # whether these hold only what can be captured as regions
        self.methods: list[Block] = []  # of the caller's object
        self.functions: list[Block] = []  # of the module
        self.marks: list[Mark] = []  # of these
        self.failed = False

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
        same = self.tensor(fits=lambda n: n.isidentifier() and self.type(n) == kind)
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
        known = {n: self.type(n) for n in self.live}
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
            self.live = [n for n in kept[0] if n in self.live and self.type(n) == known[n]] + late
            self.numbers, self.lists, self.steps = kept[1] + numbers, kept[2], kept[3]
