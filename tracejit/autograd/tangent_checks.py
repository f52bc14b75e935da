"""Tangents of dual tensors against finite differences.

In: a function of tensors and its inputs (float64). Out: nothing, or a GradcheckError that shows
both Jacobians. Called by `gradcheck`, which imports this file only where tangents are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.autograd.forward_ad import dual_level, make_dual, unpack_dual
from tracejit.core.eager import gradcheck as backward_mode
from tracejit.core.eager.state import TensorState
from tracejit.core.ops.types import FLOATING


def check_tangents(func: Callable[..., Any], inputs: tuple, eps: float, atol: float,
                   rtol: float) -> None:
    """Raise GradcheckError where tangents of dual tensors differ from finite differences."""
    for i, x in enumerate(backward_mode.checked_inputs(inputs)):
        pairs = zip(_jacobians(func, inputs, x), backward_mode.numerical(func, inputs, x, eps))
        for j, (analytical, numerical) in enumerate(pairs):
            if not np.allclose(analytical, numerical, rtol, atol, equal_nan=True):
                raise backward_mode.GradcheckError(
                    f"Jacobian computed with forward mode mismatch for output {j} with respect to "
                    f"input {i},\nnumerical:{numerical}\nanalytical:{analytical}\n")


def _jacobians(func: Callable[..., Any], inputs: tuple, x: Any) -> list[np.ndarray]:
    """Return one Jacobian (parts of x, parts of the output) for each output."""
    rows = [_moved(func, inputs, x, k) for k in range(len(backward_mode.parts(x)))]
    return [np.array(of_output) for of_output in zip(*rows)]


def _moved(func: Callable[..., Any], inputs: tuple, x: Any, k: int) -> list[np.ndarray]:
    """Return how the outputs change as part `k` of an input does."""
    with dual_level():
        dual = make_dual(x, backward_mode.unit(x, k))
        found = func(*(dual if y is x else y for y in inputs))
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        tangents = [(y, unpack_dual(y).tangent) for y in outputs
                    if isinstance(y, TensorState) and y._dtype.category >= FLOATING]
    # No tangent means that the output does not depend on this input.
    return [backward_mode.parts(y) * 0 if t is None else backward_mode.parts(t)
            for y, t in tangents]
