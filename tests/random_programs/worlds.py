"""Functions over Python objects that change within calls and between them:
`python -m tests.random_programs.worlds --seed 0 --count 1000 [--trace]`.

In: a seed. Out: a program's text, and changes made between its calls; whether captured calls
return what plain ones do and leave the same objects, attributes, containers, globals and closures.
The statements are few, so that they meet.
"""

from __future__ import annotations

import argparse
import linecache
import random
import sys
import types
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import config

SOURCE = '''
import dataclasses
import tracejit as tj

SCALE = 2.0
NAMES = ["a", "b"]
TOTAL = tj.zeros(3)

def act(y):
    return y.relu()

def other(y):
    return y * 0.5 + SCALE

@dataclasses.dataclass
class Point:
    u: float = 1.0
    v: object = None

class Box:
    kind = "relu"
    made = 0

    def __init__(self, depth=1):
        self.scale = 1.5
        self.count = 0
        self.x = tj.arange(3.0)
        self.child = Box(depth - 1) if depth else None
        self.log = []

    @property
    def double(self):
        return self.scale * 2

    def step(self, y):
        self.count += 1
        return y * self.scale

    def keep(self, y):
        self.x = y
        return self

    def __call__(self, y, times=1):
        for _ in range(times):
            y = y + self.count
        return y

    def __len__(self):
        return len(self.log)

    @staticmethod
    def fixed(y):
        return y - 1

    @classmethod
    def make(cls, y):
        cls.made += 1
        return y + cls.made

class Net(tj.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = tj.nn.Parameter(tj.full((3,), 0.5))
        self.register_buffer("seen", tj.zeros(3))
        self.rate = 0.5

    def forward(self, y):
        if self.training:
            self.seen += 1
            y = y * self.rate
        return y * self.w.detach() + self.seen

def world():
    return dict(box=Box(), table={"a": 1.0, "b": 2, "t": tj.ones(3)}, items=[1, 2.5, 3],
                net=Net(), point=Point(), losses=[])

def build():
    cell = 1.0
    seen = []
    def program(x, box, table, items, net, point, losses, flag=True, name="a", *rest, **options):
        nonlocal cell
        global SCALE
        y = x * 1
        n, turns = 1, 0
%s
        return %s
    def change(value):
        nonlocal cell
        cell = value
    return program, change, seen
'''

STATEMENTS = (
    "y = y * box.scale", "y = y + table['a']", "y = y + table.get('b', 0.25)", "y = y * len(items)",
    "y = y + sum(v for v in items if isinstance(v, (int, float)))", "y = act(y)", "y = y * SCALE",
    "y = y + cell", "y = box.step(y)", "y = getattr(box, 'step')(y)", "y = y + box.double",
    "y = y + box.x", "y = box(y, times=n)", "y = box.fixed(y)", "y = Box.make(y)", "y = net(y)",
    "y = y + point.u", "y = y + TOTAL", "y = y * (1 if flag else 2)", "y = y + len(NAMES)",
    "y = y + table.get(name, 3)", "y = y + len(rest)", "y = y + options.get('k', 0)",
    "y = y + max([v for v in items if not isinstance(v, tj.Tensor)], default=0)",
    "y = y + len(box)", "y = y + n", "y = y + (box.child.count if box.child else 7)",
    "first, *others = [*items, 0]; y = y + first * len(others)", "y = y + table['t']",
    "y = tj.stack([y + v for v in items] or [y]).sum(0)", "y = y.to(table['t'].dtype)",
    "y = y + len(f'{name}{n}{box.kind}')", "y = y + sum(map(len, NAMES))", "y = y + net.rate",
    "y = y + getattr(box, 'extra', 0)", "y = y + vars(box).get('extra', 1)", "y = y + len(seen)",
    "y = y + sum(1 for _ in zip(items, NAMES))", "y = y + [*table].index('a')",
    "y = y * net.seen.sum()", "box.count += 1", "box.scale = box.scale * 1.5", "box.scale = n",
    "table['n'] = table.get('n', 0) + 1", "items.append(box.count)", "items.append(y)",
    "items and items.pop()", "items.insert(0, n)", "table.pop('b', None)", "table.update(c=n)",
    "table['b'] = y", "table['t'] = y.detach()", "table['t'] += 1", "box.x = y", "box.x += 1",
    "box.x = box.x + 1", "setattr(box, 'extra', n)", "box.__dict__.pop('extra', None)",
    "SCALE = SCALE + 1", "cell = cell * 2", "cell = y.sum()", "box.child = None",
    "box.child = Box(0)", "box.kind = 'tanh'", "Box.kind = name", "items[:] = items[1:]",
    "items.reverse()", "table.setdefault('s', y)", "seen.append(n)", "box.log.append(y.sum())",
    "losses.append(y.sum().item())", "losses.append(float(y.mean()))", "net.rate = net.rate + 0.5",
    "net.train(not net.training)", "net.w.data.mul_(2)", "n = n + 1", "point.u = point.u + 1",
    "point.v = y", "TOTAL.add_(y)", "NAMES.append(name)", "n = len(items)", "n = int(y.shape[0])",
    "n = box.count", "flag = not flag", "name = 'b' if name == 'a' else 'a'", "x.add_(1)",
    "x[0] = n", "y.mul_(2)", "y = box.keep(y).x", "items += [n]", "items = list(items)",
    "table = dict(table)", "table = {**table, 'a': n}", "box = box.child or box",
    "point = Point(n, y)", "n = int(y.sum()) % 3", "net.seen = net.seen * 2", "net.seen.zero_()",
    "box.log.clear()", "items.extend(v for v in (n, 0.5))", "y = items[-1] * y if items else y",
    "del items[:1]", "box.step = box.fixed", "vars(box).pop('step', None)", "Box.made = n",
    "print(end='')",
)  # fmt: skip
TESTS = (
    "flag", "box.count > 1", "'b' in table", "'n' not in table", "items", "len(items) > 3",
    "box.child is None", "box.kind == 'relu'", "hasattr(box, 'extra')", "net.training", "n > 1",
    "isinstance(table.get('b'), tj.Tensor)", "y.sum() > 3", "(y > 0).all()", "cell > 1.5",
    "table['t'] is box.x", "point.v is None", "y.shape[0] > 3", "y.dtype == tj.float32", "rest",
    "SCALE > 2", "name in table", "box.x.shape == y.shape", "losses and losses[-1] > 1",
    "tj.is_grad_enabled()", "callable(getattr(box, name, None))", "type(box.scale) is float",
)  # fmt: skip
LOOPS = ("for v in items[:4]:", "for n in range(3):", "for key in sorted(table, key=str):",
         "for key, v in list(table.items()):", "while n < 4 and turns < 5:",
         "for i, v in enumerate(NAMES[:4]):",
         "for _ in range(box.count % 4):", "for row in y:")  # fmt: skip
RETURNS = ("y", "y, n", "y, box.x, table", "(y, items)", "{'y': y, 'b': table.get('b')}", "box, y",
           "y, cell, SCALE", "y, point, net.seen")  # fmt: skip
CHANGES = (
    "w['box'].scale = 3", "w['box'].scale = 0.5", "w['box'].scale = True", "w['box'].count = 5",
    "w['box'].scale = tj.tensor(2.0)", "w['box'].scale = np.float32(1.5)",
    "w['table'].pop('b', None)", "w['table']['b'] = 4", "w['table']['b'] = tj.ones(3)",
    "w['table']['t'] = w['box'].x", "w['table']['t'] = tj.ones(3, dtype=tj.float64)",
    "w['items'].append(4)", "w['items'].clear()", "w['items'][:] = [1.0, 2]",
    "w['items'][:] = [True, 2.5, 3]", "s['SCALE'] = 5.0", "s['SCALE'] = 3", "s['act'] = s['other']",
    "s['act'] = tj.sigmoid", "s['act'] = s['Net']()", "change(4.0)", "change(2)",
    "change(tj.tensor(1.0))", "w['box'].extra = 2", "w['box'].child = s['Box'](0)",
    "w['net'].eval()", "w['net'].train()", "w['net'].rate = 1",
    "w['net'].w = tj.nn.Parameter(tj.ones(3))", "w['net'].seen = tj.ones(3)", "w['point'].u = 3",
    "w['point'].v = w['box'].x", "s['TOTAL'] = tj.ones(3)", "s['NAMES'].append('c')",
    "s['NAMES'] = ['a']", "s['Box'].kind = 'gelu'", "del s['Box'].made",
    "s['Box'].step = lambda self, y: y + 10", "w['box'] = s['Box']()",
    "w['box'].step = lambda y: y - 10", "s['Net'].forward = lambda self, y: y + self.rate",
    "a.update(flag=False)", "a.update(name='b')", "a.update(k=2)", "a.update(k=tj.ones(3))",
    "a.pop('k', None)", "w['box'].x = w['table']['t']", "w['box'].x.add_(1)",
    "w['box'].log = [1, 2]", "w['net'].register_forward_hook(lambda m, i, o: o * 2)",
    "w['items'].append(w['box'].x)",
    "w['box'].__class__ = type('Sub', (s['Box'],), {'double': 9.0})", "w['net'].w.data.fill_(2)",
    "w['table'] = dict(reversed(w['table'].items()))", "w['losses'].clear()", "w['box'].kind = 'a'",
    "s['Box'].double = property(lambda self: 7.0)", "x.append(tj.arange(5.0))",
    "x.append(x[-1].double())", "x.append(w['box'].x)", "x.append(w['table']['t'])",
    "x.append(tj.arange(3))", "x.append(x[-1].clone())", "s['Point'].u = 5.0",
    "w['point'] = s['Point'](2.0)", "s['len'] = lambda v: 3", "a.update(x_k=[1])",
)  # fmt: skip
RAISING = ("y = y + table['q']", "y = y + items[2]", "y = y + box.extra", "assert flag")
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, UnboundLocalError, AttributeError,
            KeyError, ZeroDivisionError, OverflowError)  # fmt: skip


class Text:
    """The lines of a program, and the changes between its calls."""

    def __init__(self, seed: int):
        self.pick = random.Random(seed)
        self.loops = 0  # around the line
        self.lines: list[str] = []
        self._block(2, self.pick.choice((3, 4, 6)))
        self.returned = self.pick.choice(RETURNS)
        self.changes = [[self.pick.choice(CHANGES) for _ in range(self.pick.choice((0, 1, 1, 2)))]
                        for _ in range(6)]  # fmt: skip

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _block(self, depth: int, length: int) -> None:
        for _ in range(length):
            share = self.pick.random()
            if depth < 5 and share < 0.16:
                self._branch(depth)
            elif depth < 5 and share < 0.24:
                self._loop(depth)
            elif depth < 5 and share < 0.28:
                self._attempt(depth)
            elif self.loops and share < 0.33:
                jump = self.pick.choice(("break", "continue"))
                self._add(depth, f"if {self.pick.choice(TESTS)}: {jump}")
            elif share < 0.35:
                self._add(depth, f"if {self.pick.choice(TESTS)}: return y")
            else:
                self._add(depth, self.pick.choice(STATEMENTS))

    def _branch(self, depth: int) -> None:
        self._add(depth, f"if {self.pick.choice(TESTS)}:")
        self._block(depth + 1, self.pick.choice((1, 1, 2)))
        if self.pick.random() < 0.4:
            self._add(depth, "else:")
            self._block(depth + 1, self.pick.choice((1, 2)))

    def _loop(self, depth: int) -> None:
        head = self.pick.choice(LOOPS)
        self._add(depth, head)
        self.loops += 1
        if head.startswith("while"):
            self._add(depth + 1, "turns += 1")
        self._block(depth + 1, self.pick.choice((1, 2)))
        self.loops -= 1

    def _attempt(self, depth: int) -> None:
        self._add(depth, "try:")
        self._block(depth + 1, self.pick.choice((1, 2)))
        self._add(depth + 1, self.pick.choice(RAISING))
        self._add(depth, "except (KeyError, IndexError, AttributeError, AssertionError):")
        self._block(depth + 1, 1)
        if self.pick.random() < 0.3:
            self._add(depth, "finally:")
            self._add(depth + 1, self.pick.choice(STATEMENTS))

    def text(self) -> str:
        return SOURCE % ("\n".join(self.lines), self.returned)


class Picture:
    """What can be seen of values, by the path to each: content, and which objects are one."""

    def __init__(self) -> None:
        self.names: dict[int, int] = {}
        self.found: dict[str, Any] = {}

    def _name(self, key: int) -> int:
        return self.names.setdefault(key, len(self.names))

    def add(self, path: str, value: Any) -> None:
        """And all that can be reached from it."""
        kind = type(value).__name__
        if isinstance(value, (int, float, str, bool, type(None), np.generic)):
            self.found[path] = kind, repr(value)
            return
        met = id(value) in self.names
        self.found[path] = kind, self._name(id(value))
        if met:
            return
        if isinstance(value, tj.Tensor):
            place = self._name(value.untyped_storage().data_ptr())
            content = value.detach().numpy().round(3).tolist()
            self.found[path] = (kind, place, value.storage_offset(), value.shape, value.dtype,
                                value.requires_grad, content)  # fmt: skip
        elif isinstance(value, dict):
            self.found[path + ".keys"] = [*value]
            for key, part in value.items():
                self.add(f"{path}[{key!r}]", part)
        elif isinstance(value, (list, tuple)):
            for number, part in enumerate(value):
                self.add(f"{path}[{number}]", part)
        elif isinstance(value, tj.nn.Module):
            for key in ("training", "rate", "w", "seen"):
                self.add(f"{path}.{key}", getattr(value, key))
        elif hasattr(value, "child") or hasattr(value, "u"):
            for key, part in vars(value).items():
                if not callable(part) or hasattr(part, "child"):
                    self.add(f"{path}.{key}", part)


def seen(text: str, label: str, changes: list[list[str]], wrap: Any) -> list[dict[str, Any]]:
    """What the caller sees of several calls."""
    linecache.cache[label] = (len(text), None, text.splitlines(True), label)
    module = types.ModuleType("random_world")
    sys.modules["random_world"] = module  # dataclasses ask for it
    s = vars(module)
    if len(text) % 4 == 0:
        del s["__name__"]  # as where code is run by `exec` with a dict of its own
    exec(compile(text, label, "exec"), s)
    program, change, cell = s["build"]()
    program = wrap(program)
    w, a, x = s["world"](), {"flag": True, "name": "a"}, [tj.arange(3.0)]
    found: list[dict[str, Any]] = []
    for made in [[], [], *changes]:
        for line in made:
            try:
                exec(line, {"w": w, "s": s, "a": a, "x": x, "change": change, "tj": tj, "np": np})
            except (KeyError, AttributeError):
                pass  # taken away before
        try:
            result = program(x[-1], **w, **a)
        except REFUSALS as error:
            result = type(error).__name__
        picture = Picture()
        for path, value in {"result": result, **w, "x": x, "cell": cell}.items():
            picture.add(path, value)
        for name in ("SCALE", "TOTAL", "NAMES"):
            picture.add(name, s[name])
        for name in ("kind", "made"):
            picture.add(name, getattr(s["Box"], name, None))
        found.append(picture.found)
    return found


def plain(function: Any) -> Any:
    """As it is."""
    return function


def difference(seed: int, trace: bool = False) -> str | None:
    """What differs between plain and captured calls of a seed's program, and its text."""
    made = Text(seed)
    text = made.text()
    body = "\n".join(made.lines) + f"\n        return {made.returned}\nchanges: {made.changes}"

    def captured(function: Any) -> Any:
        take = tj.trace if trace else tj.script
        return take(function, mode="graph", numerics="eager")

    with np.errstate(all="ignore"):
        expected = seen(text, f"<worlds {seed} plain>", made.changes, plain)
        try:
            with config.override(verify_passes=True):
                got = seen(text, f"<worlds {seed}>", made.changes, captured)
        except Exception as error:
            return f"{type(error).__name__}: {error}\n{body}"
    for call, (these, those) in enumerate(zip(got, expected)):
        if repr(these) != repr(those):
            pairs = [(path, these.get(path), those.get(path)) for path in {**those, **these}]
            differ = [f"{path}: got {got}, expected {expected}"
                      for path, got, expected in pairs if repr(got) != repr(expected)]  # fmt: skip
            return f"call {call}\n" + "\n".join(differ[:4]) + f"\n{body}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.worlds",
                                     description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--trace", action="store_true", help="under trace, not script")
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.count):
        found = difference(seed, options.trace)
        if found is not None:
            failures += 1
            print(f"=== seed {seed}: {found}", flush=True)
    print(f"{options.count} programs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
