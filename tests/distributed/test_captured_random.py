"""Random programs of collectives, pointwise ops, writes, views and sums: captured calls give the
bits of plain ones in each process.

A program is a text of some lines over matrices, rows and numbers, made from a seed. All numbers are
small integers, so that no order of additions matters.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import pytest

import tracejit
import tracejit.distributed as dist
from tests.distributed.ranks import Ranks

SLICE, ALL, AT_ONCE = 8, 308, 10
OPTIONS: list[dict[str, Any]] = [{}, {}, {}, {}, {"numerics": "eager"}, {"mode": "python"}]
SHAPES = [(4, 3), (2, 5), (4, 3), (2, 1), (2, 5), (4, 3)]


class Writer:
    """Writes one program.

    kind   name of the dtype
    names  of the variables that are set: m for matrices, v for rows, s for numbers
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kind = self.random.choice(["float32", "float32", "float64", "int64", "int32"])
        self.names: dict[str, list[str]] = {"m": ["x", "y"], "v": [], "s": []}
        self.lines: list[str] = []

    def text(self) -> str:
        """Return the function's text."""
        for _ in range(self.random.randint(5, 14)):
            self._line()
        names = [name for kind in "mvs" for name in self.names[kind]]
        given = self.random.sample(names, min(len(names), self.random.randint(1, 4)))
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return {', '.join(given)},"])
        return f"def program(x, y):\n{body}\n"

    def _add(self, line: str) -> None:
        self.lines.append(line)

    def _one(self, kinds: str = "m") -> str:
        return self.random.choice([n for k in kinds for n in self.names[k]] or self.names["m"])

    def _set(self, kind: str, value: str) -> None:
        """Give a value a name, often one that there is; keep it small."""
        name = f"{kind}{self.random.randrange(4)}"
        small = self.random.random() < 0.6 or "sum" in value
        self._add(f"{name} = ({value}).clamp(-32, 32)" if small else f"{name} = {value}")
        if name not in self.names[kind]:
            self.names[kind].append(name)

    def _operation(self) -> str:
        names = ["SUM", "SUM", "MAX", "MIN"]
        return f"dist.ReduceOp.{self.random.choice(names)}"

    def _line(self) -> None:
        made = self.random.choices(
            [self._pointwise, self._view, self._write, self._collective, self._gather,
             self._scatter, self._later, self._sum], [4, 2, 3, 5, 2, 2, 1, 2])[0]  # fmt: skip
        made()

    def _pointwise(self) -> None:
        a, b = self._one(), self._one("mmvs")
        self._set("m", self.random.choice([
            f"{a} + {b}", f"{a} - {b}", f"{a} * 2", f"tracejit.relu({a})", f"-{a}",
            f"tracejit.maximum({a}, {b})", f"tracejit.where({a} > {b}, {a}, {b} + 1)",
            f"{a}.clone()", f"{a}.t().contiguous().t()", f"{a}.flip(0)", "x + 0"]))  # fmt: skip

    def _view(self) -> None:
        a = self._one()
        name = f"v{self.random.randrange(4)}"
        self._add(f"{name} = {a}[{self.random.choice([0, -1, 1])}]")
        if name not in self.names["v"]:
            self.names["v"].append(name)

    def _sum(self) -> None:
        a = self._one()
        if self.random.random() < 0.6:
            self._set("v", self.random.choice([f"{a}.sum(0)", f"{a}.amax(0)"]))
        else:
            self._set("s", self.random.choice([f"{a}.sum()", f"{a}.max()"]))

    def _write(self) -> None:
        a, b, c = self._one(), self._one(), self._one("vs")
        self._add(self.random.choice([
            f"{a}.add_({b})", f"{a}.mul_(-1)", f"{a}.t().sub_(1)", f"{a}.copy_({b})",
            f"{a}[0] = {b}[-1]", f"{a}[:, 0].add_(1)", f"{c}.add_(1)", f"{c}.mul_(-1)",
            f"{a}.clamp_(-32, 32)", f"{a}[1:] += 1"]))  # fmt: skip
        self._add(f"{a}.clamp_(-64, 64)")

    def _collective(self) -> None:
        a, root = self._one("mmmvs"), self.random.randrange(2)
        part = self.random.choice([a, a, a, f"{a}.t()", f"{a}[1:]", f"{a}[:, 0]"])
        if a[0] in "vs":
            part = a
        self._add(self.random.choice([
            f"dist.all_reduce({part}, {self._operation()})", f"dist.all_reduce({part})",
            f"dist.broadcast({part}, {root})", f"dist.reduce({part}, {root}, {self._operation()})",
            "dist.barrier()"]))  # fmt: skip
        self._add(f"{a}.clamp_(-32, 32)")
        if self.kind.startswith("float") and self.random.random() < 0.2:
            self._add(f"dist.all_reduce({part}, dist.ReduceOp.AVG)")
            self._add(f"{a}.floor_()")

    def _gather(self) -> None:
        a = self._one()
        if self.random.random() < 0.5:
            self._add(f"whole = {a}.new_empty((2 * {a}.shape[0], {a}.shape[1]))")
            self._add(f"dist.all_gather_into_tensor(whole, {a})")
            self._set("m", f"whole[:{a}.shape[0]] - whole[{a}.shape[0]:]")
        else:
            self._add(f"parts = [tracejit.empty_like({a}), tracejit.empty_like({a})]")
            self._add(f"dist.all_gather(parts, {a})")
            self._set("m", "parts[0] - parts[1]")

    def _scatter(self) -> None:
        a, b = self._one(), self._one()
        self._add(f"part = tracejit.empty_like({a})")
        self._add(self.random.choice([
            f"dist.reduce_scatter_tensor(part, tracejit.cat([{a}, {b}]), {self._operation()})",
            f"dist.reduce_scatter(part, [{a}, {b}], {self._operation()})"]))  # fmt: skip
        self._set("m", "part")

    def _later(self) -> None:
        """Write a collective that goes on while other lines run."""
        at = len(self.lines)
        self._add(f"moved{at} = {self._one('mv')}.clone()")
        self._add(f"work{at} = dist.all_reduce(moved{at}, async_op=True)")
        for _ in range(self.random.randint(0, 3)):
            self._line()
        self._add(f"work{at}.wait()")
        self._set("m", f"{self._one()} + moved{at}")


def _function(seed: int) -> tuple[Callable[..., Any], str, Any]:
    writer = Writer(seed)
    text = writer.text()
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"tracejit": tracejit, "dist": dist}
    exec(compile(text, name, "exec"), names)
    return names["program"], text, getattr(tracejit, writer.kind)


def _seen(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """Return what a call gives and leaves, also after a write to its first result."""
    found = function(x, y)
    seen = [[str(one.dtype), one.tolist()] for one in (*found, x, y)]
    found[0].add_(1)
    return seen, [one.tolist() for one in (*found, x, y)]


def _differences(seeds: list[int]) -> tuple[list[Any], int]:
    """Return programs whose captured calls differ from plain ones, and how many were replayed."""
    wrong, hits = [], 0
    for seed in seeds:
        function, text, kind = _function(seed)
        captured = tracejit.script(function, **OPTIONS[seed % len(OPTIONS)])
        for call, (rows, columns) in enumerate(SHAPES):
            values = tracejit.arange(rows * columns).reshape(rows, columns).to(kind)
            x, y = values % 5 - 2 + dist.get_rank() + call, values - 3 * dist.get_rank()
            expected, found = _seen(function, x.clone(), y.clone()), _seen(captured, x, y)
            if expected != found:
                wrong.append((seed, call, text, expected, found))
                break
        hits += captured.report().cache_hits > 0
    return wrong, hits


def _check(two: Ranks, seeds: range) -> None:
    for wrong, hits in two(_differences, list(seeds)):
        assert wrong == []
        assert 2 * hits > len(seeds)


def test_random_programs(two: Ranks) -> None:
    _check(two, range(SLICE))


@pytest.mark.full
@pytest.mark.parametrize("first", range(SLICE, ALL, AT_ONCE))
def test_more_random_programs(two: Ranks, first: int) -> None:
    _check(two, range(first, first + AT_ONCE))
