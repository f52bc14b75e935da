"""`python -m tests.random_programs.carried --count 1000`: random loops and what they carry.

In: a seed. Out: a program, as text: a function with a loop over numbers, tensors, lists and dicts
of the caller's, and lists that grow. It runs plainly and captured for several lengths. Both must
give the same results and gradients, as close as capture tests ask, and leave the same in the
caller's lists, object for object. Called by `test_carried.py`.
"""

from __future__ import annotations

import argparse
import random
import sys
import textwrap
from typing import Any

import tracejit as tj
from tests.capture.rewrite_runtime import typed
from tests.capture.shown import assert_same, seen
from tracejit import config

LENGTHS = (20, 0, 1, 17, 3, 20)
VECTORS = ("h", "g", "s[0]", "s[-1]", "d['a']", "q[0][1]", "q[1]['z']", "row", "y")
TARGETS = ("h", "g", "s[0]", "s[1]", "d['a']", "q[0][1]", "q[1]['z']", "s[-1]")
HEADS = ("for row in x:", "for row in x:", "for k, row in enumerate(x):",
         "for k in range(x.shape[0]):\n    row = x[k]", "for row, k in zip(x, range(len(x))):")


class Writer:
    """Writer of one program."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.elements = self.chance(70)
        self.conditions = self.chance(40)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def vector(self) -> str:
        return self.pick(*VECTORS, "h", "row")

    def new(self) -> str:
        """An expression that makes a tensor of three elements."""
        a, b = self.vector(), self.vector()
        return self.pick(f"{a} * 0.5 + {b}", f"{a} - {b} * 0.3", f"({a} + {b}).sin()",
                         f"{a} * {b} * 0.2", f"times({a})", f"step({a}, {b})",
                         f"{a} * 0.25 + t * 0.01", f"tj.stack([{a}, {b}]).mean(0)")

    def scalar(self) -> str:
        a = self.vector()
        return self.pick(f"{a}.sum() * 0.1", f"{a}[1]", f"({a} * {a}).sum() * 0.01", "1", "0.5")

    def statement(self, inner: bool = False) -> str:
        kind = self.random.randrange(15)
        target = self.pick(*TARGETS)
        if kind < 3 or inner and kind > 6:
            return f"{target} = {self.new()}"
        if kind == 3:
            return f"{target} {self.pick('+=', '-=')} {self.new()}"
        if kind == 4:
            return self.pick(f"t = t + {self.scalar()}", f"t += {self.scalar()}",
                             f"d['n'] = d['n'] + {self.scalar()}", "s[2] = s[2] * 0.5",
                             "c = c + 1", "c += 1.5")
        if kind == 5:
            return self.pick("h, g = g, " + self.new(), "g, h = h, " + self.new(),
                             "s[0], s[1] = s[1], " + self.new(), f"y = {self.new()}",
                             f"last = {self.vector()} * 2", f"h = g = {self.new()}")
        if kind == 6:
            return self.pick("s = [v * 0.5 for v in s]", f"h[1] = {self.scalar()}",
                             "h.mul_(0.5)", f"d['new'] = {self.new()}", "y = h[:2].sum() + y",
                             "q[0] = [v * 0.9 for v in q[0]]", "h = h.detach()", "last = h")
        if kind < 10 and self.elements:
            a = self.vector()
            element = self.pick(a, f"{a}[1]", f"{a}[:2]", self.new(), self.new(), "h", "h[0]",
                                "g[1:]", "t")
            return f"{self.pick('o', 'p')}.append({element})"
        if kind == 10 and self.conditions:
            yes, no = self.statement(True), self.statement(True)
            return f"if {self.vector()}.sum() > 0.1:\n    {yes}\nelse:\n    {no}"
        if kind == 11 and self.conditions:
            return f"if {self.vector()}.sum() > {self.pick('1.5', '0.9')}:\n    " + self.pick(
                "break", "break", "continue", f"h = {self.new()}")
        if kind == 12 and not inner:
            return f"for v in {self.pick('row', 'h', 's[0]', 'range(3)')}:\n    " + self.pick(
                "t = t + v * 0.1", "h = h * 0.9 + v", "s[0] = s[0] * 0.9 + v * 0.1", "y = y + v")
        return f"{self.pick('h', 'g', target)} = {self.new()}"

    def program(self) -> str:
        head = self.pick(*HEADS)
        if self.chance(10):
            head = ("w = tj.zeros(())\nwhile w < len(x):\n    w = w + 1\n"
                    "    row = x.sum(0) * w * 0.1")
        body = ["y = row * 0.5"] if self.chance(80) else []
        body += [self.statement() for _ in range(self.random.randrange(1, 6))]
        if self.chance(50):
            self.random.shuffle(body)
        after = [self.pick("h[0] = 7.0", "g += 1", "s[0] = s[0] + 1", "c = c + 1", "t = t * 2",
                           "if len(o):\n    o[0].mul_(2)", "if len(o):\n    o[-1].fill_(3.0)",
                           "d['a'].mul_(0.5)", "stacked = tj.stack(o) if len(o) else None",
                           "first = s[0]", "h = h * last")
                 for _ in range(self.random.randrange(3))]  # fmt: skip
        lines = ["t = " + self.pick("0.0", "0", "1.5", "tj.zeros(())"), "c, o, p = 0, [], []",
                 "last = y = " + self.pick("h", "h * 1", "g"), "stacked = first = None",
                 "times = lambda v: v * 0.5", "def step(a, b):\n    return a * 0.5 + b * c * 0.1",
                 self.pick("pass", "pass", "h = h * 1", "g = h", "q[0] = s[:2]")]
        indented = textwrap.indent("\n".join(body), "    ")
        whole = [*lines, f"{head}\n{indented}", *after,
                 "return h, g, t, c, last, s, o, p, stacked, first"]
        return "def f(x, h, g, s, d, q):\n" + textwrap.indent("\n".join(whole), "    ") + "\n"


def _data(length: int, grad: bool) -> tj.Tensor:
    x = ((tj.arange(float(length * 3)) * 12.9898 + 0.7 * length).sin()).view(length, 3)
    return x.requires_grad_() if grad else x


def _call(function: Any, length: int, variant: int) -> list[Any]:
    """Call with fresh objects; return all that a caller can look at."""
    x = _data(length, variant % 2 == 1)
    vectors = [(tj.arange(3.0) * (k + 1)).cos() for k in range(8)]
    h, g, a, b, c, z, r, w = vectors
    s = [h if variant % 3 == 2 else a, b, 4.0, c]
    d = {"a": z, "n": 0.5}
    q = [[r, r if variant % 4 == 3 else w], {"z": h * 2}]
    if variant % 5 == 4:
        q[0] = s
    before = [*s, *q[0], d["a"]]
    try:
        found = function(x, h, g, s, d, q)
    except Exception as error:
        return [type(error).__name__]
    tensors = [v for part in (*found, *s, *d.values()) for v in _flat(part)]
    loss = sum((v * 1.0).sum() for v in tensors if v.requires_grad)
    grad = None
    if isinstance(loss, tj.Tensor):
        try:
            loss.backward()
            grad = x.grad
        except Exception as error:
            grad = type(error).__name__
    found = [*found]
    same = [[x is y for y in before if isinstance(y, tj.Tensor)] for x in (*s, *q[0], d["a"])]
    return [found, s, d, q, s is q[0], same, grad]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tj.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [v for p in parts for v in _flat(p)] if isinstance(value, (list, tuple, dict)) else []


def outcomes(function: Any) -> list[Any]:
    """What all calls show. The function is captured once for all of them."""
    return [seen(_call(function, length, k)) for k, length in enumerate((*LENGTHS, *LENGTHS[:3]))]


def check(seed: int, mode: str = "graph") -> tuple[str, Any]:
    """Run one program plainly and captured, which must show the same; return it and its report."""
    text = Writer(seed).program()
    expected = outcomes(typed("import tracejit as tj\n" + text)["f"])
    with config.override(mode=mode):
        function = tj.script(typed("import tracejit as tj\n" + text)["f"])
        found = outcomes(function)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
    return text, function.report()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.carried")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", default="graph")
    options = parser.parse_args()
    failed, unrolled, broken = [], 0, 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            _, report = check(seed, options.mode)
            unrolled += bool(report.unrolled)
            broken += bool(report.breaks)
        except Exception as error:  # a program that is wrong, or a bug: both are shown
            failed.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:400]}")
            print(Writer(seed).program(), flush=True)
    print(f"{options.count} programs, {unrolled} with an unrolled loop, {broken} with a break, "
          f"{len(failed)} failures: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
