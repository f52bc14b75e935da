"""Gradients of many at once: `autograd.grad(..., is_grads_batched=True)`.

In: the gradients to start from, one more dimension each. Out: as many gradients of the inputs, by
`vmap` over one backward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.backward import install_batched
from tracejit.core.eager.nodes import GradientEdge
from tracejit.core.ops.creation import zeros_like


def _batched(grad: Callable[..., tuple], outputs: tuple, inputs: tuple, starts: Any,
             allow_unused: bool | None, materialize_grads: bool, options: dict) -> tuple:
    """`grad(outputs, inputs, ...)` for each slice of `starts`."""
    from tracejit.func.vmap import vmap

    given = (None,) * len(outputs) if starts is None else tuple(starts)
    for k, (output, start) in enumerate(zip(outputs, given)):
        if start is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if type(output) is not GradientEdge and start.shape[1:] != output.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{k}] has a shape of {start.shape[1:]} and output[{k}] has a shape of "
                f"{output.shape}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
    # `vmap` maps tensors only: absent gradients are dropped in `row`, and put back below.
    used: list[bool] = []

    def row(*one: Any) -> tuple:
        found = grad(outputs, inputs, one, allow_unused=True, **options)
        used[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    rows = iter(vmap(row)(*given))
    if not (all(used) or allow_unused or materialize_grads):
        raise RuntimeError(f"The differentiated Tensor at index {used.index(False)} appears to not "
                           "have been used in the graph. Set allow_unused=True if this is the "
                           "desired behavior.")
    return tuple(next(rows) if yes else zeros_like(x) if materialize_grads else None
                 for x, yes in zip(inputs, used))


install_batched(_batched)
