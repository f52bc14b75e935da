"""gradcheck in both modes: gradients of the tape, and tangents, against finite differences.

In: a function of tensors and its inputs (float64). Out: True, or a GradcheckError that shows both
Jacobians.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
        from tracejit.autograd.tangent_checks import check_tangents

        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        try:
            check_tangents(func, given, eps, atol, rtol)
        except backward_mode.GradcheckError:
            if raise_exception:
                raise
            return False
    return True
