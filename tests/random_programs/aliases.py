"""Loops and branches in which a few variables come to be views, aliases and copies of each other:
`python -m tests.random_programs.aliases --seed 0 --count 1000 [--history]`.

In: a seed. Out: a program's text; whether captured calls leave the caller what plain ones do:
values, which tensors are one, which share memory, how they lie in it, whether they were written,
with `--history` what requires grad and the gradients. The statements are few, so that they meet.
"""

from __future__ import annotations

import linecache
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tests.random_programs.differences import options_of, show
from tests.random_programs.observe import LOST, leaf
from tracejit import config

STATEMENTS = (
    "y = y * 2", "y = x", "x = y", "x, y = y, x", "z = y", "y = z", "z = y = y * 1", "z = y + x",
    "y = y.detach()", "z = z.detach()", "y = y.data", "y = y.view(-1)", "y = y[:]", "z = x[:1]",
    "y = y.clone()", "y = y.contiguous()", "y = y.to(y.dtype)", "y = x.flip(0)", "x = x.T",
    "z = y.expand(2, *y.shape)[0]", "y = y.reshape(2, -1).reshape(-1)",
    "y.mul_(2)", "x.add_(1)", "z.sub_(1)", "y = y.relu_()", "y += x", "y[0] = 3", "z[-1:] = 1",
    "y = tj.where(c > 0, x, y)", "t = t + 1", "w = w * 0.5 + y.sum()", "y = y * w",
    "out.append(y)", "out.append(x)",
)  # fmt: skip
TESTS = ("c.sum() > 0", "t.sum() < 2", "y.sum() > 3", "n > 1", "w > 0", "(x > y).any()")
LOOPS = ("for _ in range(4):", "for _ in range(9):", "for row in rows:",
         "for k in range(rows.shape[0]):", "while t.sum() <= 3:")  # fmt: skip
RETURNS = ("y", "x, y", "y, z", "x, y, z, out", "y, out", "w, x, z, out")
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, UnboundLocalError, AttributeError)
CALLS = (0, 1, 2, 3, 1, 5)


class Text:
    """The lines of a program."""

    def __init__(self, seed: int):
        self.pick = random.Random(seed)
        self.loops = 0  # around the line
        self.lines = ["def program(x, y, z, c, rows, t, w, n):", "    out = []"]
        self._some((0, 1))
        if self._chance(0.7):
            self._loop(1)
        else:
            self._branch(1)
        self._some((0, 1, 1, 2))
        self._add(1, "return " + self.pick.choice(RETURNS))

    def _chance(self, share: float) -> bool:
        return self.pick.random() < share

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _some(self, counts: tuple[int, ...]) -> None:
        for _ in range(self.pick.choice(counts)):
            self._add(1, self.pick.choice(STATEMENTS))

    def _block(self, depth: int) -> None:
        for _ in range(self.pick.choice((1, 2, 2, 3))):
            share = self.pick.random()
            if depth < 4 and share < 0.3:
                self._branch(depth)
            elif depth < 4 and share < 0.36:
                self._loop(depth)
            elif self.loops and share < 0.42:
                jump = self.pick.choice(("break", "continue", "break"))
                self._add(depth, f"if {self.pick.choice(TESTS)}: {jump}")
            else:
                self._add(depth, self.pick.choice(STATEMENTS))

    def _branch(self, depth: int) -> None:
        self._add(depth, f"if {self.pick.choice(TESTS)}:")
        self._block(depth + 1)
        if self._chance(0.4):
            self._add(depth, "else:")
            self._block(depth + 1)

    def _loop(self, depth: int) -> None:
        head = self.pick.choice(LOOPS)
        self._add(depth, head)
        self.loops += 1
        if head.startswith("while"):
            self._add(depth + 1, "t = t + 1")
        self._block(depth + 1)
        self.loops -= 1
        if self._chance(0.1):
            self._add(depth, "else:")
            self._block(depth + 1)


def function_of(seed: int) -> tuple[Callable, str]:
    """The program of a seed, and its text."""
    text = "\n".join(Text(seed).lines) + "\n"
    name = f"<aliases {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"tj": tj}
    exec(compile(text, name, "exec"), space)
    return space["program"], text


def _arguments(call: int, history: bool) -> tuple[list[Any], list[Any]]:
    """Of which some are one, or views of others; and the leaves behind them."""
    first = [tj.arange(4.0) * (0.5 if call % 2 else -0.5) + call, tj.ones(4) * (call - 1),
             tj.arange(4.0)]
    leaves = [x.requires_grad_() for x in first] if history else []
    x, y, z = [leaf * 1 for leaf in leaves] or first
    if call % 3 == 2:
        y = x
    if call % 4 == 3:
        z = x[:]
    rest = [tj.full((2,), 1.0 - 2 * (call % 2)), tj.arange(12.0).reshape(6, 2) - call,
            tj.full((1,), call - 1.0), tj.tensor(call - 0.5)]
    return [x, y, z, *rest, call], leaves


def _tensors(x: Any) -> list[Any]:
    if isinstance(x, tj.Tensor):
        return [x]
    return [t for part in x for t in _tensors(part)] if isinstance(x, (tuple, list)) else []


def seen(function: Callable, history: bool) -> list[Any]:
    """What the caller sees of several calls."""
    found: list[Any] = []
    for call in CALLS:
        arguments, leaves = _arguments(call, history)
        try:
            results = _tensors(function(*arguments))
        except REFUSALS as error:
            found.append(type(error).__name__)
            results = []
        first: dict[Any, int] = {}
        for number, x in enumerate([*results, *arguments[:-1]]):
            values = x.detach().numpy()
            found.append((
                first.setdefault(id(x), number),
                first.setdefault(x.untyped_storage().data_ptr(), number) if x.numel() else None,
                x.storage_offset(), x.shape, x.stride() if x.numel() > 1 else (), x.requires_grad,
                number >= len(results) and x._version > 0,
                np.round(values, 4).tolist() if history else values.tobytes(),
            ))  # fmt: skip
        tracked = [x.sum() for x in results if x.requires_grad and leaf(x) != LOST]
        try:
            if tracked:
                sum(tracked).backward()  # type: ignore[union-attr]
        except RuntimeError:
            found.append("RuntimeError in backward")
        found.append([None if x.grad is None else x.grad.numpy().round(3).tolist() for x in leaves])
    return found


def difference(seed: int, history: bool = False) -> str | None:
    """What differs between plain and captured calls of a seed's program, and its text."""
    function, text = function_of(seed)
    with np.errstate(all="ignore"):
        expected = seen(function, history)
        try:
            with config.override(verify_passes=True):
                got = seen(tj.script(function, mode="graph", numerics="eager"), history)
        except Exception as error:
            return f"{type(error).__name__}: {error}\n{text}"
    if repr(got) == repr(expected):
        return None
    first = next((pair for pair in zip(got, expected) if repr(pair[0]) != repr(pair[1])), None)
    return f"{len(got)} and {len(expected)} things seen; got, expected: {first}\n{text}"


def main() -> int:
    parser = options_of("aliases", __doc__)
    parser.add_argument("--history", action="store_true", help="arguments require grad")
    options = parser.parse_args()
    return show(lambda seed: difference(seed, options.history), options.seed, options.count)


if __name__ == "__main__":
    sys.exit(main())
