"""Clipping of gradients, between `backward()` and `optimizer.step()`.

In: parameters. Out: their gradients, written in place; the norm they had. No value is read, so that
a captured training step holds the clipping too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.tensor import Tensor
from tracejit.linalg import vector_norm


def _gradients(parameters: Any) -> list[Any]:
    among = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in among if p.grad is not None]


def get_total_norm(
    tensors: Iterable[Any], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """Return the norm of all elements of all tensors, a 0-dim tensor.

    Raises RuntimeError for a norm that is not finite, where `error_if_nonfinite`.

    >>> import tracejit
    >>> tracejit.nn.utils.get_total_norm([tracejit.tensor([3.0]), tracejit.tensor([4.0])])
    tensor(5.)
    """
    order = float(norm_type)
    norms = [vector_norm(t, order) for t in tensors]
    if not norms:
        return tracejit.tensor(0.0)
    total = vector_norm(tracejit.stack([n.to(norms[0].device) for n in norms]), order)
    if error_if_nonfinite and not bool(tracejit.isfinite(total)):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the "
            "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale all gradients by one factor so that their norm is at most `max_norm`. Return the norm
    before.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.zeros(2))
    >>> p.grad = tracejit.tensor([3.0, 4.0])
    >>> tracejit.nn.utils.clip_grad_norm_(p, 1.0)
    tensor(5.)
    """
    with no_grad():
        gradients = _gradients(parameters)
        total = get_total_norm(gradients, norm_type, error_if_nonfinite)
        _scale(gradients, max_norm, total)
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale all gradients by one factor so that their norm, which is `total_norm` (a 0-dim tensor),
    is at most `max_norm`.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.zeros(2))
    >>> p.grad = tracejit.tensor([3.0, 4.0])
    >>> tracejit.nn.utils.clip_grads_with_norm_(p, 10.0, tracejit.tensor(5.0))
    >>> p.grad
    tensor([3., 4.])
    """
    with no_grad():
        _scale(_gradients(parameters), max_norm, total_norm)


def _scale(gradients: list[Any], max_norm: float, total: Any) -> None:
    # clamped and not compared: no step branches on the norm
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.device))


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Call `clip_grad_norm_`, under its older name, and warn.

    >>> import tracejit
    >>> import warnings
    >>> p = tracejit.nn.Parameter(tracejit.ones(1))
    >>> (p * 5).sum().backward()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     tracejit.nn.utils.clip_grad_norm([p], 1.0)
    tensor(5.)
    """
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
                  "`torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients, of any shape, to [-clip_value, clip_value].

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.ones(2))
    >>> (p * 5).sum().backward()
    >>> tracejit.nn.utils.clip_grad_value_([p], 1.0)
    >>> p.grad
    tensor([1., 1.])
    """
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.copy_(gradient.clamp(-float(clip_value), float(clip_value)))
