"""Updates of optimizers as one op: all that Adam or SGD does with the elements of a parameter.

In: a parameter, its gradient and state, and numbers. Out: the parameter and its state anew. Called
by `optim/adam.py` and `optim/sgd.py` in eager mode, which runs the op as one program. Its
arithmetic is exact (`Op.exact`), so it has the bits of the ops that captured steps record.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.composite import composite
from tracejit.core.ops.pointwise_math import sqrt
from tracejit.core.ops.types import TensorType


def _adam_body(p: Any, grad: Any, mean: Any, square: Any, kept: Any, decay: Any, share: Any,
               beta: Any, other: Any, correction: Any, eps: Any, step_size: Any, decayed: bool,
               added: bool) -> tuple[Any, Any, Any]:
    if added:
        grad = grad + p * decay
    mean = mean + (grad - mean) * share
    square = square * beta + grad * grad * other
    denominator = sqrt(square) / correction + eps
    p = p * kept if decayed else p
    return p - mean / denominator * step_size, mean, square


def _adam_types(p: Any, *others: Any, **attributes: Any) -> tuple[TensorType, ...]:
    return (TensorType(p.dtype, tuple(p.shape), p.device),) * 3


# p * kept is the parameter after decoupled decay, p * decay is added to the gradient. share and
# other are 1 - beta of both moments, beta is that of the squares.
adam_step = composite(
    "adam_step",
    ("p", "grad", "mean", "square", "kept", "decay", "share", "beta", "other", "correction", "eps",
     "step_size"),
    _adam_body, infer=_adam_types, outputs=("new_p", "new_mean", "new_square"), fused="exact")


def _sgd_body(p: Any, grad: Any, decay: Any, rate: Any, decayed: bool) -> Any:
    if decayed:
        grad = grad + p * decay
    return p - grad * rate


def _momentum_body(p: Any, grad: Any, buffer: Any, decay: Any, momentum: Any, rate: Any,
                   decayed: bool, nesterov: bool) -> tuple[Any, Any]:
    if decayed:
        grad = grad + p * decay
    buffer = buffer * momentum + grad
    return p - (grad + buffer * momentum if nesterov else buffer) * rate, buffer


sgd_step = composite(
    "sgd_step", ("p", "grad", "decay", "rate"), _sgd_body,
    infer=lambda p, *others, **attributes: _adam_types(p)[0], fused="exact")

sgd_momentum_step = composite(
    "sgd_momentum_step", ("p", "grad", "buffer", "decay", "momentum", "rate"), _momentum_body,
    infer=lambda p, *others, **attributes: _adam_types(p)[:2],
    outputs=("new_p", "new_buffer"), fused="exact")
