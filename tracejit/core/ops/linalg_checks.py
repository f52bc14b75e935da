"""Checks of the arguments of linear algebra, and the error of problems without a solution.

In: names of functions, tensors. Out: nothing, or the error that PyTorch raises. Called by the
families `linalg_*.py` before they apply a record, and by the records where values decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.ops import shapes
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES


class LinAlgError(RuntimeError):
    """Error: a matrix without the asked-for inverse, factor or values. It is a RuntimeError.

    >>> import tracejit
    >>> try:
    ...     tracejit.linalg.inv(tracejit.zeros(2, 2))
    ... except tracejit.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


def title(x: Any) -> str:
    """Return PyTorch's name of a tensor's dtype in messages."""
    return SCALAR_NAMES[x.dtype.name]


def by(rows: Any, columns: Any, between: str = " by ") -> str:
    """Return two sizes as messages print them."""
    return f"{shapes.hint(rows)}{between}{shapes.hint(columns)}"


def must_be_matrix(name: str, x: Any, what: str = "A") -> None:
    """Raise RuntimeError unless `x` has two dimensions or more."""
    if len(x.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def must_be_square(name: str, x: Any) -> None:
    """Raise RuntimeError unless `x` is a square matrix or a stack of these."""
    must_be_matrix(name, x)
    if not shapes.equal(x.shape[-2], x.shape[-1]):
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are "
            f"{by(*x.shape[-2:])} matrices"
        )


def must_be_float(name: str, x: Any, half: str | None = None, analytic: bool = False) -> None:
    """Raise an error for dtypes other than float32 and float64; `half` names PyTorch's CPU kernel.

    analytic  complex numbers are taken, too
    """
    if x.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {title(x)}"
        )
    _must_be_wide(name, x, half, analytic)


def must_have_kernel(name: str, x: Any, kernel: str, analytic: bool = False) -> None:
    """Do `must_be_float` where PyTorch's CPU kernel refuses integers, too."""
    if x.dtype.category < FLOATING:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{title(x)}'")
    _must_be_wide(name, x, kernel, analytic)


def _must_be_wide(name: str, x: Any, half: str | None, analytic: bool) -> None:
    if x.dtype.category > FLOATING and not analytic:
        raise NotImplementedError(f"{name}: complex tensors are not supported")
    if x.dtype.itemsize == 2:
        if half is not None:
            raise NotImplementedError(f"\"{half}\" not implemented for '{title(x)}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {title(x)}")


def must_agree(name: str, a: Any, b: Any, names: tuple[str, str] = ("A", "B")) -> None:
    """Raise RuntimeError where two tensors differ in dtype."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected {names[0]} and {names[1]} to have the same dtype, but found "
            f"{names[0]} of type {title(a)} and {names[1]} of type {title(b)} instead"
        )


def raise_first(name: str, info: Any, text: str) -> None:
    """Raise LinAlgError for the first matrix whose `info` is not 0; `text` has a place for it."""
    numbers = np.asarray(info.get() if hasattr(info, "get") else info)
    if not numbers.any():
        return
    place = int(np.flatnonzero(numbers)[0])
    element = f"(Batch element {place}): " if numbers.ndim else ""
    raise LinAlgError(f"{name}: {element}{text.format(numbers.ravel()[place])}")
