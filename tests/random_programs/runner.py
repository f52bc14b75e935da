"""A program run plainly and captured, and what its caller can see of each run.

In: a Program and a way to run it (mode, numerics). Out: per call, the result or the exception,
every piece of memory, versions, gradients and the generator's state; and the first difference, if
there is one. Called by the tests and by `__main__.py`.

What must agree. Exceptions, structure, dtypes, shapes, strides, which memory an output looks at,
versions, presence of gradients: always. Elements with numerics="eager": bit for bit (any NaN equals
any other); but for gradients, whose terms a captured call may add in another order. These, and
elements with numerics="fast", agree as `tolerance.py` says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import tracejit as tj
import tracejit.nn.functional as F
from tests.random_programs.builder import tensor_of
from tests.random_programs.program import Call, Program
from tests.random_programs.tolerance import Noise, Tolerance, exact
from tracejit import config
from tracejit.ops.random import default_generator


@dataclass(frozen=True)
class Way:
    """A way to run a program other than plainly."""

    mode: str
    numerics: str = "fast"

    @property
    def exact(self) -> bool:
        return self.numerics == "eager"

    def __str__(self) -> str:
        return self.mode if self.numerics == "fast" else f"{self.mode} ({self.numerics})"


@dataclass
class Mismatch:
    """What differed, where, and how much could be compared."""

    way: Way
    where: str
    detail: str
    program: Program

    @property
    def kind(self) -> tuple[str, str]:
        """What stays the same while a program is made smaller."""
        what = self.where.partition(": ")[2] or self.where
        raised = self.detail.partition("exception: ")[2] if self.where == "structure" else ""
        return what.split(" ")[0], raised.lstrip("\"'").partition(":")[0]

    def __str__(self) -> str:
        return f"{self.way}: {self.where}: {self.detail}\n{self.program.text()}"


Observed = list[tuple[str, Any]]  # path -> array or plain value


def function_of(program: Program) -> Callable[..., Any]:
    """The program as a Python function."""
    space: dict[str, Any] = {"tj": tj, "F": F}
    exec(compile(program.text(), "<random program>", "exec"), space)
    return space["program"]


def observe(
    program: Program, function: Callable[..., Any], noise: AbstractContextManager = nullcontext()
) -> Observed:
    """Make all calls of a program, under `noise`; what can be seen after each."""
    tj.manual_seed(7)
    seen: Observed = []
    memories: dict[str, Any] = {}
    for number, call in enumerate(program.calls):
        if not (call.again and memories):
            memories = {m.name: tensor_of(m, call) for m in program.memories}
        seen += [
            (f"call {number}: {path}", value)
            for path, value in _call(program, function, call, memories, noise)
        ]
    return seen


def _call(
    program: Program,
    function: Callable[..., Any],
    call: Call,
    memories: dict[str, Any],
    noise: AbstractContextManager,
) -> Observed:
    arguments: dict[str, Any] = {}
    for a in program.arguments:
        arguments[a.name] = eval(a.given[call.sizes], {**memories, "inf": np.inf})
    seen: Observed = []
    try:
        with noise:
            result = function(*arguments.values())
    except Exception as e:
        seen.append(("exception", f"{type(e).__name__}: {e}"))
        result = None
    outputs = _outputs(result)
    for name, x in outputs:
        seen += _described(f"output {name}", x, memories, outputs)
    if program.backward == "outside":
        with noise:
            seen += _backward([x for _, x in outputs])
    for name, x in memories.items():
        seen += [
            (f"memory {name}", np.array(x.detach().array)),
            (f"memory {name} version", x._version),
        ]
        if x.is_leaf and x.dtype.is_floating_point:
            g = x.grad
            seen.append(
                (f"memory {name} gradient", None if g is None else np.array(g.detach().array))
            )
    seen.append(("generator", default_generator.array.copy()))
    return seen


def _outputs(result: Any) -> list[tuple[str, Any]]:
    if isinstance(result, dict):
        return list(result.items())
    if isinstance(result, tuple):
        return [(str(k), x) for k, x in enumerate(result)]
    return [] if result is None else [("", result)]


def _described(
    path: str, x: Any, memories: dict[str, Any], outputs: list[tuple[str, Any]]
) -> Observed:
    if not isinstance(x, tj.Tensor):
        return [(path, x)]
    strides = tuple(s for s, n in zip(x.stride(), x.shape) if n > 1) if x.numel() else ()
    looks_at = [n for n, m in memories.items() if m._storage is x._storage] or [
        n for n, y in outputs if isinstance(y, tj.Tensor) and y._storage is x._storage
    ]
    looks_at = looks_at if x.numel() else [""]  # of no elements none is shared
    kind = (x.dtype.name, tuple(x.shape), strides, x.requires_grad, x.is_leaf, looks_at[0])
    seen: Observed = [(f"{path} type", kind), (path, np.array(x.detach().array))]
    if looks_at[0] in memories:  # of memory the call made only later changes can matter
        seen.append((f"{path} version", x._version))
    return seen


def _backward(outputs: list[Any]) -> Observed:
    tracked = [x for x in outputs if isinstance(x, tj.Tensor) and x.requires_grad]
    if not tracked:
        return []
    try:
        sum([(x * x).sum() * (k + 1) for k, x in enumerate(tracked)], tj.zeros(())).backward()
    except Exception as e:
        return [("backward", f"{type(e).__name__}: {e}")]
    return []


# -- comparing -----------------------------------------------------------------------------------


def check(
    program: Program, way: Way, expected: Observed | None = None, tolerance: Tolerance | None = None
) -> Mismatch | None:
    """Run a program plainly and captured; the first difference."""
    function = function_of(program)
    captured = tj.script(function, mode=way.mode, numerics=way.numerics)
    with np.errstate(all="ignore"):
        if expected is None:
            expected = observe(program, function)
        try:
            with config.override(verify_passes=True):  # what cannot be compiled raises
                got = observe(program, captured)
        except Exception as e:  # outside the call itself: an output that cannot be looked at
            return Mismatch(way, "looking at the results", f"{type(e).__name__}: {e}", program)
        found = difference(
            got, expected, exact if way.exact else tolerance or tolerance_of(program, expected)
        )
        if found is not None and found[0] != "structure":
            many = tolerance_of(program, expected, runs=24)
            found = difference(got, expected, Exact(many) if way.exact else many)
    return found and Mismatch(way, found[0], found[1], program)


def tolerance_of(program: Program, expected: Observed, runs: int = 3) -> Tolerance:
    """How far rounding may move each observed element: measured by runs with rounding noise."""
    with np.errstate(all="ignore"):
        return Tolerance(
            expected, [observe(program, function_of(program), Noise(seed)) for seed in range(runs)]
        )


Compare = Callable[[str, np.ndarray, np.ndarray], str | None]


@dataclass
class Exact:
    """Bit for bit, but for gradients."""

    tolerance: Tolerance

    def __call__(self, path: str, got: np.ndarray, want: np.ndarray) -> str | None:
        return (self.tolerance if path.endswith("gradient") else exact)(path, got, want)


def difference(got: Observed, expected: Observed, compare: Compare) -> tuple[str, str] | None:
    """Where two observations first differ, and how."""
    if [path for path, _ in got] != [path for path, _ in expected]:
        return "structure", _unlike(got, expected)
    for (path, g), (_, e) in zip(got, expected):
        if isinstance(e, np.ndarray):
            detail = _unlike_arrays(path, g, e, compare)
        else:
            detail = None if repr(g) == repr(e) else f"{g!r}, plainly {e!r}"
        if detail is not None:
            return path, detail
    return None


def _unlike_arrays(path: str, got: Any, expected: np.ndarray, compare: Compare) -> str | None:
    if (
        not isinstance(got, np.ndarray)
        or got.dtype != expected.dtype
        or got.shape != expected.shape
    ):
        return f"{got!r}, plainly {expected!r}"
    return compare(path, got, expected)


def _unlike(got: Observed, expected: Observed) -> str:
    for g, e in zip(got, expected):
        if g[0] != e[0]:
            return f"{g[0]}: {g[1]!r}; plainly {e[0]}: {e[1]!r}"
    return f"{len(got)} things seen, plainly {len(expected)}"


def demonstrate(program: Program, mode: str, numerics: str = "fast") -> None:
    """Print the first difference of a reported program; used by the scripts that reports
    contain.
    """
    print(check(program, Way(mode, numerics)) or "no difference")
