"""Names that optimizers written like PyTorch's own import from `optim.optimizer`.

In: parameters, numbers and tensors of their options. Out: decisions and conversions that PyTorch's
files share. There are no fused kernels to choose here: compiled steps are fused anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tracejit.core.eager.modes import set_grad_enabled
from tracejit.core.eager.recording import as_captured
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.pointwise_complex import view_as_real
from tracejit.core.ops.types import float32, float64, get_default_dtype

ParamsT: TypeAlias = Iterable[Any]
_foreach_doc = "foreach: whether lists of tensors are updated at once; steps are the same."
_fused_doc = "fused: whether one kernel makes the step; compiled steps are fused anyway."
_capturable_doc = "capturable: whether the step may be captured; every step may be."
_differentiable_doc = "differentiable: whether the step is recorded for backward."
_maximize_doc = "maximize: whether the objective is maximised."
_params_doc = "params: an iterable of tensors, of (name, tensor), or of dicts with options."


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a `step`: it records gradients only where the option `differentiable` says so."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return as_captured(func)(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """Return a tensor's only element as a number, and numbers as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Return the list as it is: only PyTorch's compiler stacks tensors."""
    return x


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[..., Any]:
    """Return a decorator that leaves the function as it is: any step may be captured."""
    return lambda func: func


def _default_to_fused_or_foreach(
    params: Any, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return (fused, foreach) for a user who chose none: neither."""
    return False, False


def _view_as_real(params: list, *state_and_grads: list) -> None:
    """Replace complex tensors in the lists by the pairs of numbers that they hold."""
    for k, p in enumerate(params):
        if p.is_complex():
            params[k] = view_as_real(p)
            for tensors in state_and_grads:
                tensors[k] = view_as_real(tensors[k])


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype of step counters."""
    # PyTorch's rule: fused steps count in float32 always
    return float64 if get_default_dtype() is float64 and not is_fused else float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the devices whose steps may be captured."""
    return ["cpu", "cuda"]


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one element without dimensions, and numbers as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x
