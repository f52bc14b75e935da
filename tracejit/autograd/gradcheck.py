"""gradcheck in both modes: gradients of the tape, and tangents, against finite differences.

In: a function of tensors and its inputs (float64). Out: True, or a GradcheckError that shows both
Jacobians.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.eager.state import TensorState
from tracejit.core.ops.types import FLOATING


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, check_forward_ad: bool = False,
              check_backward_ad: bool = True, **options: Any) -> bool:
    """Return True if the derivatives of `func` at `inputs` agree with central differences.

    `func` returns one tensor or a tuple. Inputs that require grad are checked, and should be
    float64. With raise_exception=False the answer is False instead of a GradcheckError.

    check_forward_ad   look at the tangents of dual tensors too
    check_backward_ad  False: look at nothing else
    options            nondet_tol, check_undefined_grad and check_grad_dtypes as in PyTorch, for
                       gradients

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], dtype=tracejit.float64, requires_grad=True)
    >>> tracejit.autograd.gradcheck(lambda x: x * x, (x,), check_forward_ad=True)
    True
    """
    from tracejit.core.eager import gradcheck as backward_mode

    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be "
                             "True")
    if check_backward_ad and not backward_mode.gradcheck(
            func, inputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
            **options):
        return False
    if check_forward_ad:
        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        try:
            _check_tangents(func, given, eps, atol, rtol)
        except backward_mode.GradcheckError:
            if raise_exception:
                raise
            return False
    return True


def _check_tangents(func: Callable[..., Any], inputs: tuple, eps: float, atol: float,
                    rtol: float) -> None:
    from tracejit.core.eager import gradcheck as backward_mode

    for i, x in enumerate(backward_mode.checked_inputs(inputs)):
        pairs = zip(_jacobians(func, inputs, x), backward_mode.numerical(func, inputs, x, eps))
        for j, (analytical, numerical) in enumerate(pairs):
            if not np.allclose(analytical, numerical, rtol, atol, equal_nan=True):
                raise backward_mode.GradcheckError(
                    f"Jacobian computed with forward mode mismatch for output {j} with respect to "
                    f"input {i},\nnumerical:{numerical}\nanalytical:{analytical}\n")


def _jacobians(func: Callable[..., Any], inputs: tuple, x: Any) -> list[np.ndarray]:
    """Return one Jacobian (parts of x, parts of the output) for each output."""
    from tracejit.core.eager import gradcheck as backward_mode

    rows = [_moved(func, inputs, x, k) for k in range(len(backward_mode.parts(x)))]
    return [np.array(of_output) for of_output in zip(*rows)]


def _moved(func: Callable[..., Any], inputs: tuple, x: Any, k: int) -> list[np.ndarray]:
    """Return how the outputs change as part `k` of an input does."""
    from tracejit.autograd.forward_ad import dual_level, make_dual, unpack_dual
    from tracejit.core.eager import gradcheck as backward_mode

    with dual_level():
        dual = make_dual(x, backward_mode.unit(x, k))
        found = func(*(dual if y is x else y for y in inputs))
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        tangents = [(y, unpack_dual(y).tangent) for y in outputs
                    if isinstance(y, TensorState) and y._dtype.category >= FLOATING]
    # No tangent means that the output does not depend on this input.
    return [backward_mode.parts(y) * 0 if t is None else backward_mode.parts(t)
            for y, t in tangents]
