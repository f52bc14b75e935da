"""Loops, branches, `try`, `with` and functions within each other, left by `break`, `continue`,
`return` and errors: `python -m tests.random_programs.jumps --seed 0 --count 1000`.

In: a seed. Out: a program's text; whether captured calls end as plain ones do: what is returned or
raised, arguments, what was noted on the way. What decides is the value of a tensor, or a number;
the statements are few, so that the jumps meet.
"""

from __future__ import annotations

import linecache
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import tracejit as tj
from tests.random_programs.differences import options_of, show
from tracejit import config

STATEMENTS = (
    "x = x + 1", "x = x * 0.5", "x = x - 2", "y = x * k", "y = x", "x.add_(1)",
    "log.append(k)", "log.append('here')", "log.append(x.sum() > 2)",
)  # fmt: skip
TESTS = (
    "x.sum() < {}", "x.sum() > {}", "not x.sum() > {}", "x.sum() < {} and k < 3", "k < {}",
    "k % 2 == 1", "(x > {}).any()",
)  # fmt: skip
HANDLERS = ("except ValueError:", "except (ValueError, KeyError) as e:", "except Exception:",
            "except KeyError:")  # fmt: skip
MANAGERS = ("suppress(ValueError)", "nullcontext()", "tj.no_grad()", "noted(log)")
BLOCKS = ("branch", "branch", "attempt", "attempt", "attempt", "counted", "rows", "lasting",
          "managed", "function")  # fmt: skip
REFUSALS = (ValueError, TypeError, UnboundLocalError, AttributeError)
VALUES = (-1.0, 0.5, 1.0, 2.0, 4.0, 0.5, -1.0)
DEEPEST, LONGEST = 5, 40


@contextmanager
def noted(log: list[Any]) -> Iterator[None]:
    """Notes how its block ends."""
    log.append("in")
    try:
        yield
    except Exception as error:
        log.append(type(error).__name__)
        raise
    finally:
        log.append("out")


class Text:
    """The lines of a program."""

    def __init__(self, seed: int):
        self.pick = random.Random(seed)
        self.names = 0
        self.lines = ["def program(x, log):", "    k = 0", "    y = x"]
        self._block(1, False)
        self._add(1, "return x, y, k")

    def _chance(self, share: float) -> bool:
        return self.pick.random() < share

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def _test(self) -> str:
        return self.pick.choice(TESTS).format(self.pick.randint(-2, 9))

    def _block(self, depth: int, in_loop: bool) -> None:
        for _ in range(self.pick.choice((1, 1, 2, 2, 3))):
            if depth < DEEPEST and len(self.lines) < LONGEST and self._chance(0.7):
                getattr(self, "_" + self.pick.choice(BLOCKS))(depth, in_loop)
            elif self._chance(0.45):
                self._add(depth, self.pick.choice(STATEMENTS))
            else:
                self._leave(depth, in_loop)

    def _leave(self, depth: int, in_loop: bool) -> None:
        """A jump under a condition."""
        self._add(depth, f"if {self._test()}:")
        if self._chance(0.4):
            self._add(depth + 1, self.pick.choice(STATEMENTS))
        self._jump(depth + 1, in_loop)
        if self._chance(0.2):
            self._add(depth, "else:")
            self._jump(depth + 1, in_loop)

    def _jump(self, depth: int, in_loop: bool) -> None:
        jumps = ("return x * 3", "return", "raise ValueError('a')", "return log")
        self._add(depth, self.pick.choice(jumps + ("break", "continue") * 3 * in_loop))

    def _followed(self, depth: int, in_loop: bool, head: str, share: float) -> None:
        """A further part of a statement, sometimes."""
        if self._chance(share):
            self._add(depth, head)
            self._block(depth + 1, in_loop)

    def _branch(self, depth: int, in_loop: bool) -> None:
        self._followed(depth, in_loop, f"if {self._test()}:", 1)
        self._followed(depth, in_loop, f"elif {self._test()}:", 0.3)
        self._followed(depth, in_loop, "else:", 0.5)

    def _attempt(self, depth: int, in_loop: bool) -> None:
        self._followed(depth, in_loop, "try:", 1)
        caught = self._chance(0.5)
        if caught:
            self._followed(depth, in_loop, self.pick.choice(HANDLERS), 1)
            self._followed(depth, in_loop, "else:", 0.4)
        self._followed(depth, in_loop, "finally:", 0.5 if caught else 1)

    def _counted(self, depth: int, in_loop: bool) -> None:
        self._followed(depth, True, f"for k in range({self.pick.choice(('2', '3', 'len(x)'))}):", 1)
        self._followed(depth, in_loop, "else:", 0.4)

    def _rows(self, depth: int, in_loop: bool) -> None:
        self._add(depth, "for row in x:")
        self._add(depth + 1, "x = x + row * 0.25")
        self._block(depth + 1, True)
        self._followed(depth, in_loop, "else:", 0.3)

    def _lasting(self, depth: int, in_loop: bool) -> None:
        count = self._name("w")
        also = self.pick.choice(("", " and x.sum() < 9"))
        self._add(depth, f"{count} = 0")
        self._add(depth, f"while {count} < {self.pick.randint(1, 4)}{also}:")
        self._add(depth + 1, f"{count} += 1")
        self._block(depth + 1, True)
        self._followed(depth, in_loop, "else:", 0.4)

    def _managed(self, depth: int, in_loop: bool) -> None:
        self._followed(depth, in_loop, f"with {self.pick.choice(MANAGERS)}:", 1)

    def _function(self, depth: int, in_loop: bool) -> None:
        name = self._name("f")
        self._add(depth, f"def {name}(x, k, y):")
        self._block(depth + 1, False)
        self._add(depth + 1, "return x")
        self._add(depth, f"x = {name}(x, k, y) if {self._test()} else x")
        self._add(depth, "x = x if isinstance(x, tj.Tensor) else y")


def function_of(seed: int) -> tuple[Callable, str]:
    """The program of a seed, and its text."""
    text = "\n".join(Text(seed).lines) + "\n"
    name = f"<jumps {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {
        "tj": tj, "suppress": suppress, "nullcontext": nullcontext, "noted": noted,
    }  # fmt: skip
    exec(compile(text, name, "exec"), space)
    return space["program"], text


def _plain(x: Any) -> Any:
    """Numbers and lists."""
    if isinstance(x, tj.Tensor):
        return x.tolist()
    return [_plain(part) for part in x] if isinstance(x, (list, tuple)) else x


def seen(function: Callable) -> list[Any]:
    """What the caller sees of several calls."""
    found: list[Any] = []
    for value in VALUES:
        x, log = tj.full((2,), value), []
        try:
            result = _plain(function(x, log))
        except REFUSALS as error:
            result = f"{type(error).__name__}: {error}"
        found.append((result, x.tolist(), _plain(log)))
    return found


def difference(seed: int) -> str | None:
    """What differs between plain and captured calls of a seed's program, and its text."""
    function, text = function_of(seed)
    expected = seen(function)
    try:
        with config.override(verify_passes=True):
            got = seen(tj.script(function, mode="graph", numerics="eager"))
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{text}"
    if repr(got) == repr(expected):
        return None
    first = next(pair for pair in zip(got, expected) if repr(pair[0]) != repr(pair[1]))
    return f"got, expected: {first}\n{text}"


def main() -> int:
    options = options_of("jumps", __doc__).parse_args()
    return show(difference, options.seed, options.count)


if __name__ == "__main__":
    sys.exit(main())
