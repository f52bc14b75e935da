"""One row per op: how to call it, on what, and how exact its results must be.

In: rows from `tests/ops/rows_<family>.py`, each a list `ROWS`. Out: `rows()`, which
`tests/ops/test_opinfo.py` runs through every oracle. Samples hold NumPy arrays in place of
tensors and tracejit dtypes in place of dtypes; the oracle decides what they become, so that a
row is written once for eager, PyTorch and every compiled mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tracejit.core.ops import types
from tracejit.core.ops.types import dtype

FLOATS = (types.float32, types.float64)
HALVES = (types.float16, types.bfloat16)
INTEGERS = (types.int64, types.int32, types.uint8)
COMPLEX = (types.complex64, types.complex128)
BOOL = (types.bool_,)
NUMERIC = (*FLOATS, *HALVES, types.int64, types.uint8)
ANY = (*NUMERIC, *BOOL)


@dataclass
class Sample:
    """One call: `function(*args, **kwargs)`; arrays, also those in lists, become tensors."""

    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = [brief(a) for a in self.args] + [f"{k}={brief(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(shown)})"


@dataclass
class OpInfo:
    """A row.

    name            unique; `sum.dim` is a variant of `sum`
    samples         (rng, dtype) -> calls; small (a few dozen elements), shapes that matter
    function        what to call on tracejit's tensors; None: `tracejit.<name before the dot>`
    torch           what to call on PyTorch's; None: `function` itself where given (method
                    spelling), else `torch.<name>`; a string names a function of torch
    dtypes          dtypes whose results must agree with PyTorch
    differentiable  gradients with respect to floating point arrays are checked (float64)
    second_order    so are gradients of gradients
    constant        positions and keywords of arguments that get no gradient
    ulp             allowed difference from PyTorch, in units in the last place of each element
    cancel          further allowance in eps of the largest element of the result
    specials        also run on NaN, infinities and -0.0, expecting PyTorch's answer
    strides         also run on transposed, strided, expanded and overlapping inputs
    compiled        also run under `tracejit.script` in every mode
    exact           compiled result must equal eager bit for bit
    """

    name: str
    samples: Callable[[np.random.Generator, dtype], Iterable[Sample]]
    function: Callable[..., Any] | None = None
    torch: Callable[..., Any] | str | None = None
    dtypes: tuple[dtype, ...] = FLOATS
    differentiable: bool = True
    second_order: bool = True
    constant: tuple[int | str, ...] = ()
    ulp: float = 2
    cancel: float = 0
    specials: bool = True
    strides: bool = True
    compiled: bool = True
    exact: bool = False

    def __repr__(self) -> str:
        return self.name


def rows() -> list[OpInfo]:
    """All rows, family by family; names must be unique."""
    found: list[OpInfo] = []
    for path in sorted((Path(__file__).parent / "ops").glob("rows_*.py")):
        found += import_module(f"tests.ops.{path.stem}").ROWS
    names = [row.name for row in found]
    double = sorted({n for n in names if names.count(n) > 1})
    if double:
        raise ValueError(f"op rows defined twice: {double}")
    return found


def array(rng: np.random.Generator, d: dtype, *shape: int, low: float = -2, high: float = 2,
          distinct: bool = False) -> np.ndarray:
    """Random values of dtype `d` in the range; `distinct` ones do not repeat."""
    if d is types.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if distinct:
        count = int(np.prod(shape, dtype=np.int64))
        values = low + (high - low) * (rng.permutation(count) + 0.5) / max(count, 1)
        values = values.reshape(shape)
    else:
        values = rng.uniform(low, high, shape)
    if d.category == types.INTEGER:
        count = int(values.size)
        whole = rng.permutation(count).reshape(shape) if distinct else np.round(values * 3)
        return np.asarray(np.abs(whole) if d is types.uint8 else whole).astype(d.numpy)
    if d.is_complex:
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(d.numpy)


def indices(rng: np.random.Generator, size: int, *shape: int) -> np.ndarray:
    """Random positions in a dimension of `size`."""
    return rng.integers(0, size, shape)


def brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(brief, value))}]"
    return repr(value)


def convert(value: Any, tensor: Callable[[np.ndarray], Any],
            dtype_of: Callable[[dtype], Any] = lambda d: d) -> Any:
    """`value` with every array made a tensor and every dtype translated."""
    if isinstance(value, np.ndarray):
        return tensor(value)
    if isinstance(value, dtype):
        return dtype_of(value)
    if type(value) in (list, tuple):
        return type(value)(convert(v, tensor, dtype_of) for v in value)
    if isinstance(value, dict):
        return {k: convert(v, tensor, dtype_of) for k, v in value.items()}
    return value
