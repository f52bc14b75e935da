"""A program run plainly and captured, and what its caller can see of each run.

In: a Program and a way to run it (mode, numerics, script or trace). Out: the first difference of
what `observe.py` sees, if there is one. Called by the tests and by `processes.py`.

What must agree. Exceptions, structure, types, dtypes, shapes, strides, identity, which memory a
tensor looks at, versions, presence of gradients: always, as far as rounding does not decide them.
Elements with numerics="eager": bit for bit (any NaN equals any other); but for gradients, whose
terms a captured call may add in another order. These, and elements with numerics="fast", agree as
`tolerance.py` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tracejit as tj
from tests.random_programs.observe import Function, Observed, observe
from tests.random_programs.program import Program
from tests.random_programs.tolerance import Noise, Tolerance, exact
from tracejit import config
from tracejit.jit.capture.breaks import InternalError


@dataclass(frozen=True)
class Way:
    """A way to run a program other than plainly."""

    mode: str
    numerics: str = "fast"
    capture: str = "script"

    @property
    def exact(self) -> bool:
        return self.numerics == "eager"

    def captured(self, function: Function) -> Any:
        capture = tj.trace if self.capture == "trace" else tj.script
        return capture(function, mode=self.mode, numerics=self.numerics)

    def __str__(self) -> str:
        mode = self.mode if self.capture == "script" else f"{self.capture}, {self.mode}"
        return mode if self.numerics == "fast" else f"{mode} ({self.numerics})"


@dataclass
class Mismatch:
    """What differed, where, and how much could be compared."""

    way: Way
    where: str
    detail: str
    program: Program

    @property
    def kind(self) -> tuple[str, str, str]:
        """What stays the same while a program is made smaller."""
        words = (self.where.partition(": ")[2] or self.where).split(" ")
        raised = self.detail.partition("exception: ")[2] if self.where == "structure" else ""
        aspect = words[-1] if words[-1] in ("version", "gradient", "type") else ""
        return words[0], aspect, raised.lstrip("\"'").partition(":")[0]

    def __str__(self) -> str:
        return f"{self.way}: {self.where}: {self.detail}\n{self.program.text()}"


# -- comparing -----------------------------------------------------------------------------------


def check(
    program: Program,
    way: Way,
    expected: Observed | None = None,
    tolerance: Tolerance | None = None,
    told: list[Any] | None = None,
) -> Mismatch | None:
    """Run a program plainly and captured; the first difference. The captured function is added to
    `told`.
    """
    made: list[Any] = [] if told is None else told

    def captured(function: Function) -> Function:
        made.append(way.captured(function))
        return made[-1]

    with np.errstate(all="ignore"):
        if expected is None:
            expected = observe(program)
        try:
            with config.override(verify_passes=True):  # what cannot be compiled raises
                got = observe(program, captured)
        except (Exception, InternalError) as e:  # outside the call: a result nobody can look at
            return Mismatch(way, "looking at the results", f"{type(e).__name__}: {e}", program)
        exactly = way.exact and not program.reads_gradients
        found = difference(
            got, expected, exact if exactly else tolerance or tolerance_of(program, expected)
        )
        for runs in (3, 24):
            if found is None:
                break
            noisy = tolerance_of(program, expected, runs)
            compare = Exact(noisy) if exactly else noisy
            found = difference(_but_versions(got), _but_versions(expected), compare)
            found = found or difference(got, expected, compare)
    return found and Mismatch(way, found[0], found[1], program)


def tolerance_of(program: Program, expected: Observed, runs: int = 3) -> Tolerance:
    """How far rounding may move each observed element: measured by runs with rounding noise."""
    with np.errstate(all="ignore"):
        return Tolerance(
            expected, [observe(program, noise=Noise(seed)) for seed in range(runs)]
        )


def _but_versions(seen: Observed) -> Observed:
    return [(path, value) for path, value in seen if not path.endswith("version")]


Compare = Callable[[str, np.ndarray, np.ndarray], str | None]


@dataclass
class Exact:
    """Bit for bit, but for gradients."""

    tolerance: Tolerance

    def __call__(self, path: str, got: np.ndarray, want: np.ndarray) -> str | None:
        return (self.tolerance if path.endswith("gradient") else exact)(path, got, want)


def difference(got: Observed, expected: Observed, compare: Compare) -> tuple[str, str] | None:
    """Where two observations first differ, and how; nothing is said behind the place from which
    rounding decides what there is to see.
    """
    until = getattr(compare, "until", None)
    for (path, g), (wanted, e) in zip(got[:until], expected[:until]):
        if path != wanted:
            return "structure", f"{path}: {g!r}; plainly {wanted}: {e!r}"
        if isinstance(e, np.ndarray):
            detail = _unlike_arrays(path, g, e, compare)
        else:
            detail = None if repr(g) == repr(e) else _undecided(path, g, e, compare)
        if detail is not None:
            return path, detail
    if until is None and len(got) != len(expected):
        return "structure", f"{len(got)} things seen, plainly {len(expected)}"
    return None


def _undecided(path: str, got: Any, expected: Any, compare: Compare) -> str | None:
    if path in getattr(compare, "others", ()):
        return None
    return f"{got!r}, plainly {expected!r}"


def _unlike_arrays(path: str, got: Any, expected: np.ndarray, compare: Compare) -> str | None:
    if (
        not isinstance(got, np.ndarray)
        or got.dtype != expected.dtype
        or got.shape != expected.shape
    ):
        return _undecided(path, got, expected, compare)
    return compare(path, got, expected)


def demonstrate(
    program: Program, mode: str, numerics: str = "fast", capture: str = "script"
) -> None:
    """Print the first difference of a reported program; used by the scripts that reports
    contain.
    """
    print(check(program, Way(mode, numerics, capture)) or "no difference")
