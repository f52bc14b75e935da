"""A kernel of NPBench: its NumPy form, which numba compiles as it is, and its tensor form.

In: functions of arrays and numbers. Out: what a worker times. The suite is Ziogas et al., "NPBench:
A Benchmarking Suite for High-Performance NumPy", ICS 2021; the texts here are written anew.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Sizes = dict[str, int]


@dataclass(frozen=True)
class Kernel:
    """`tensors` None: the NumPy text serves tensors too, with `np` naming tracejit.

    `loops`: another text for numba where it does not take NumPy's.
    """

    name: str
    full: Sizes
    tiny: Sizes
    arrays: Callable[[Sizes], list[Any]]
    plain: Callable[..., Any]
    tensors: Callable[..., Any] | None = None
    loops: Callable[..., Any] | None = None
    tolerance: float = 1e-6

    def for_tensors(self) -> Callable[..., Any]:
        """Return the function of tensors."""
        return self.tensors if self.tensors is not None else renamed(self.plain)


def renamed(function: Any) -> Any:
    """Return the function with the global name `np` meaning tracejit."""
    import tracejit

    names = {**function.__globals__, "np": tracejit}
    for name, value in function.__globals__.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__:
            names[name] = types.FunctionType(value.__code__, names, name, value.__defaults__)
    return types.FunctionType(function.__code__, names, function.__name__)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    """Return numbers between 0 and 1."""
    return np.random.default_rng(seed).random(shape)


def positive(n: int) -> np.ndarray:
    """Return a symmetric matrix whose eigenvalues are well above 0."""
    a = random(n, n)
    return a @ a.T / n + np.eye(n)
