"""Functions over Python objects that change within calls and between them:
`python -m tests.random_programs.worlds --seed 0 --count 1000 [--trace]`.

In: a seed. Out: a program's text, and changes made between its calls; whether captured calls
return what plain ones do and leave the same objects, attributes, containers, globals and closures.
The statements are few, so that they meet.
"""

from __future__ import annotations

import collections
import linecache
import random
import sys
import types
from typing import Any

import numpy as np

import tracejit as tj
from tests.random_programs.differences import options_of, show
from tests.random_programs.objects_world import OBJECTS
from tests.random_programs.observe import leaf
from tests.random_programs.protocols_world import PROTOCOLS
from tests.random_programs.training_world import TRAINING
from tests.random_programs.world import World
from tracejit import config

WORLDS = {"objects": OBJECTS, "training": TRAINING, "protocols": PROTOCOLS}
HELD = ("Box", "Sub", "Point", "Loose", "L")  # classes of objects that are looked into
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, UnboundLocalError, AttributeError,
            KeyError, ZeroDivisionError, OverflowError)  # fmt: skip


class Text:
    """The lines of a program, and the changes between its calls."""

    def __init__(self, seed: int, world: World):
        self.world, self.pick = world, random.Random(seed)
        self.loops = 0  # around the line
        self.lines: list[str] = []
        self._block(2, self.pick.choice((3, 4, 6)))
        self.returned = self.pick.choice(self.world.returns)
        counts = [self.pick.choice((0, 1, 1, 2)) for _ in range(6)]
        self.changes = [[self.pick.choice(world.changes) for _ in range(n)] for n in counts]

    def _add(self, depth: int, line: str) -> None:
        first, *more = line.split("\n")  # of which the others stand further to the right
        self.lines.append("    " * depth + first)
        self.lines += ["    " * depth + part for part in more]

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
                self._add(depth, f"if {self.pick.choice(self.world.tests)}: {jump}")
            elif share < 0.35:
                self._add(depth, f"if {self.pick.choice(self.world.tests)}: return y")
            else:
                self._add(depth, self.pick.choice(self.world.statements))

    def _branch(self, depth: int) -> None:
        self._add(depth, f"if {self.pick.choice(self.world.tests)}:")
        self._block(depth + 1, self.pick.choice((1, 1, 2)))
        if self.pick.random() < 0.4:
            self._add(depth, "else:")
            self._block(depth + 1, self.pick.choice((1, 2)))

    def _loop(self, depth: int) -> None:
        head = self.pick.choice(self.world.loops)
        self._add(depth, head)
        self.loops += 1
        if head.startswith("while"):
            self._add(depth + 1, "turns += 1")
        self._block(depth + 1, self.pick.choice((1, 2)))
        self.loops -= 1

    def _attempt(self, depth: int) -> None:
        self._add(depth, "try:")
        self._block(depth + 1, self.pick.choice((1, 2)))
        self._add(depth + 1, self.pick.choice(self.world.raising))
        self._add(depth, "except (KeyError, IndexError, AttributeError, AssertionError):")
        self._block(depth + 1, 1)
        if self.pick.random() < 0.3:
            self._add(depth, "finally:")
            self._add(depth + 1, self.pick.choice(self.world.statements))

    def text(self) -> str:
        return self.world.source % ("\n".join(self.lines), self.returned)


class Picture:
    """What can be seen of values, by the path to each: content, and which objects are one."""

    def __init__(self) -> None:
        self.names: dict[int, int] = {}
        self.found: dict[str, Any] = {}
        self.held: list[Any] = []

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
        self.held.append(value)  # whose id is nobody else's meanwhile
        if met:
            return
        if isinstance(value, tj.Tensor):
            place = self._name(value.untyped_storage().data_ptr())
            content = value.detach().numpy().round(3).tolist()
            self.found[path] = (kind, place, value.storage_offset(), value.shape, value.dtype,
                                value.requires_grad, leaf(value), content)  # fmt: skip
            if leaf(value) is True and value.grad is not None:
                self.add(path + ".grad", value.grad)
        elif isinstance(value, dict):
            self.found[path + ".keys"] = [*value]
            for key, part in value.items():
                self.add(f"{path}[{key!r}]", part)
        elif isinstance(value, (list, tuple)):
            for number, part in enumerate(value):
                self.add(f"{path}[{number}]", part)
        elif isinstance(value, tj.nn.Module):
            self.found[path + ".modes"] = [m.training for m in value.modules()]
            parts = dict([*value.named_parameters(), *value.named_buffers()])
            for key, part in [*parts.items(), ("rate", getattr(value, "rate", None))]:
                self.add(f"{path}.{key}", part)
        elif isinstance(value, tj.optim.Optimizer):
            for number, group in enumerate(value.param_groups):
                self.found[f"{path}.group {number}"] = [group["lr"], group["weight_decay"]]
                for k, p in enumerate(group["params"]):
                    self.add(f"{path}.state {number} {k}", dict(value.state.get(p, {})))
        elif isinstance(value, tj.optim.lr_scheduler.LRScheduler):
            self.found[path + ".epoch"] = value.last_epoch
        elif isinstance(value, np.ndarray):
            self.found[path] = kind, value.tolist()
        elif isinstance(value, (set, collections.deque)):
            self.add(path + ".elements", [*value])
        elif kind == "Vector":
            self.add(path + ".parts", [value.v, value.n])
        elif isinstance(getattr(value, "__dict__", None), dict) and kind in HELD:
            for key, part in vars(value).items():
                if not callable(part) or type(part).__name__ in HELD:
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
    tj.manual_seed(0)
    w, a, x = s["start"]()
    found: list[dict[str, Any]] = []
    for made in [[], [], *changes]:
        for line in made:
            try:
                exec(line, {"w": w, "s": s, "a": a, "x": x, "change": change, "tj": tj, "np": np})
            except (KeyError, AttributeError, RuntimeError):
                pass  # taken away before
        try:
            result = program(x[-1], **w, **a)
        except REFUSALS as error:
            result = type(error).__name__
        picture = Picture()
        for path, value in {"result": result, **w, "x": x, "cell": cell, **s["also"]()}.items():
            picture.add(path, value)
        found.append(picture.found)
    return found


def plain(function: Any) -> Any:
    """As it is."""
    return function


def difference(seed: int, trace: bool = False, world: World = OBJECTS) -> str | None:
    """What differs between plain and captured calls of a seed's program, and its text."""
    made = Text(seed, world)
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
    parser = options_of("worlds", __doc__)
    parser.add_argument("--trace", action="store_true", help="under trace, not script")
    parser.add_argument("--world", choices=WORLDS, default="objects")
    options = parser.parse_args()
    world = WORLDS[options.world]
    return show(lambda seed: difference(seed, options.trace, world), options.seed, options.count)


if __name__ == "__main__":
    sys.exit(main())
