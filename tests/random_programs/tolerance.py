"""How far compiled numbers may be from eager ones, measured instead of guessed.

numerics="fast" may contract, reorder and use its own functions, so every op has a rounding error of
a few units in the last place, which the rest of the program magnifies as it likes. `Noise` runs the
program plainly with the operands and results of every inexact op, those of gradient rules included,
moved by up to `NOISE` eps at random: terms that cancel show what is left of their rounding. An
element may differ from eager's by `FACTOR` times what such runs moved it, and by `ULP` eps of its
size. What is added up one by one rounds with every term: a sum of n terms moves by sqrt(n) eps,
where that is more. Where noise changes an integer, a boolean, a NaN, an infinity or a text, it is
undecided, and not compared; nor is what follows where noise changes what there is to compare.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from tracejit.core.eager import dispatch
from tracejit.core.ops.direct_calls import declines
from tracejit.core.ops.record import REGISTRY

NOISE = 4  # eps; the documented bound of most functions is 2 ulp, gradients add a few operations
FACTOR = 4
ULP = 8


def eps(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


# Ops that round nothing: what they are given is what they give.
EXACT_KINDS = frozenset({"movement", "creation", "random"})
EXACT = frozenset(
    """abs neg relu sign ceil floor round trunc clamp clamp_max clamp_min hardtanh maximum minimum
    where clone convert materialize stop_gradient masked_fill nan_to_num max_along min_along amax
    amin max min argmax argmin any all sort unique nonzero to_device scatter index_put eq ne lt le
    gt ge isfinite isinf isnan truth logical_and logical_or logical_xor logical_not bincount within
    repeat_positions""".split()
)


class Noise:
    """A context in which every inexact op is computed of, and gives, elements moved a little. One
    seed, one run.
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng([seed, 0x6E])
        self.extreme = seed % 3 == 0  # the largest moves, in random directions

    def __enter__(self) -> None:
        self.plain, self.library = dispatch._compute, list(dispatch._library)
        dispatch._compute = self._compute
        # native functions of small ops would compute past `_compute`
        self.direct = {op: op.direct for op in REGISTRY.values() if op.direct is not None}
        for op in self.direct:
            op.direct = declines
        dispatch._library[:] = [self._kernel]

    def __exit__(self, *error: object) -> None:
        dispatch._compute = self.plain
        for op, direct in self.direct.items():
            op.direct = direct
        dispatch._library[:] = self.library

    def _kernel(self, op: Any, operands: tuple, attributes: dict) -> Any:
        """Leave fused ops to their bodies: each op of these rounds."""
        return None if op.fused else self.library[0](op, operands, attributes)

    def _compute(self, xp: Any, op: Any, arrays: list, attributes: dict) -> Any:
        if op.kind in EXACT_KINDS or op.name in EXACT:
            return self.plain(xp, op, arrays, attributes)
        found = self.plain(xp, op, [self._moved(a) for a in arrays], attributes)
        if op.name in ("sum", "prod"):
            terms = np.size(arrays[0]) / max(np.size(found), 1)
            return self._moved(found, max(NOISE, terms**0.5))
        return tuple(map(self._moved, found)) if type(found) is tuple else self._moved(found)

    def _moved(self, x: Any, most: float = NOISE) -> Any:
        if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind in "biu":
            return x
        moves = self.rng.uniform(-1, 1, x.shape)
        moves = np.sign(moves) if self.extreme else moves
        return x * np.asarray(1 + most * eps(x.dtype) * moves).astype(x.dtype)


def exact(path: str, got: np.ndarray, want: np.ndarray) -> str | None:
    """The same bits, but for the bits of a NaN."""
    if got.dtype.kind in "biu":
        return None if np.array_equal(got, want) else _shown(got, want, got != want)
    g, w = got.astype(np.float64), want.astype(np.float64)
    same = (g == w) & (np.signbit(g) == np.signbit(w)) | np.isnan(g) & np.isnan(w)
    return None if same.all() else _shown(got, want, ~same)


def _shown(got: np.ndarray, want: np.ndarray, where: np.ndarray) -> str:
    place = tuple(int(i) for i in np.argwhere(where)[0])
    return (
        f"{int(where.sum())} of {want.size} elements; "
        f"at {place}: {got[place]!r}, plainly {want[place]!r}"
    )


def _agreed(
    expected: list[tuple[str, Any]], noisy: list[list[tuple[str, Any]]]
) -> int | None:
    """How much of what is seen all runs have; None for all: noise may decide a branch."""
    paths = [path for path, _ in expected]
    ends = []
    for run in noisy:
        others = [path for path, _ in run]
        if others != paths:
            same = [a == b for a, b in zip(paths, others)]
            ends.append(same.index(False) if False in same else len(same))
    return min(ends, default=None)


class Tolerance:
    """Compares what a captured run showed with eager's, given what noisy runs showed."""

    def __init__(self, expected: list[tuple[str, Any]], noisy: list[list[tuple[str, Any]]]):
        self.spread: dict[str, np.ndarray] = {}
        self.undecided: dict[str, np.ndarray | None] = {}
        self.others: set[str] = set()  # what noise changes, but for the elements of arrays
        self.compared = self.skipped = 0
        self.until = _agreed(expected, noisy)
        runs = [dict(run) for run in noisy]
        for path, want in expected[: self.until]:
            if isinstance(want, np.ndarray):
                self._measure(path, want, [run.get(path) for run in runs])
            elif any(repr(run[path]) != repr(want) for run in runs):
                self.others.add(path)
        if self.until is not None:
            unseen = [want for _, want in expected[self.until :]]
            self.skipped += sum(w.size for w in unseen if isinstance(w, np.ndarray))

    def _measure(self, path: str, want: np.ndarray, moved: list[Any]) -> None:
        fit = [
            m
            for m in moved
            if isinstance(m, np.ndarray) and m.shape == want.shape and m.dtype == want.dtype
        ]
        if len(fit) < len(moved):  # another branch, another size: nothing can be said
            self.undecided[path] = None
            self.others.add(path)
            return
        if want.dtype.kind in "biu":
            self.undecided[path] = reduce(np.logical_or, [m != want for m in fit])
            return
        w = want.astype(np.float64)
        runs = [m.astype(np.float64) for m in fit]
        odd = ~np.isfinite(w)
        self.undecided[path] = reduce(  # no stack: arrays may have as many dimensions as can be
            np.logical_or,
            [
                (np.isnan(m) != np.isnan(w)) | (~np.isfinite(m) | odd) & (m != w) & ~np.isnan(m)
                for m in runs
            ],
        )
        self.spread[path] = reduce(
            np.maximum, [np.abs(np.where(np.isfinite(m) & ~odd, m - w, 0)) for m in runs]
        )

    def __call__(self, path: str, got: np.ndarray, want: np.ndarray) -> str | None:
        undecided = self.undecided.get(path)  # None: behind what rounding decides, too
        if undecided is None:
            self.skipped += want.size
            return None
        self.skipped += int(np.sum(undecided))
        self.compared += want.size
        wrong = self._wrong(path, got, want) & ~undecided
        return _shown(got, want, wrong) + self._allowed(path, wrong) if wrong.any() else None

    def _wrong(self, path: str, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        if got.dtype.kind in "biu":
            return np.asarray(got != want)
        g, w = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(w)
        tiny = float(ml_dtypes.finfo(want.dtype).smallest_normal)
        allowed = FACTOR * self.spread[path] + ULP * eps(want.dtype) * np.maximum(
            np.where(finite, np.abs(w), 0), tiny
        )
        apart = np.abs(np.where(finite & np.isfinite(g), g - w, 0)) > allowed
        return np.where(finite, apart | ~np.isfinite(g), ~((g == w) | np.isnan(g) & np.isnan(w)))

    def _allowed(self, path: str, wrong: np.ndarray) -> str:
        if path not in self.spread:
            return ""
        return f"; noise moves it by {self.spread[path][tuple(np.argwhere(wrong)[0])]:.3g}"
