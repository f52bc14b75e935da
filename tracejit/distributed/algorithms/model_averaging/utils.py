"""The mean of parameters over processes.

In: parameters, or an optimizer's groups. Out: the same tensors with the means. Called by averagers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.distributed.collectives import all_reduce
from tracejit.distributed.groups import member
from tracejit.distributed.reduce_op import ReduceOp
from tracejit.nn.parameter import Parameter

__all__ = [
    "average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average",
]  # fmt: skip


@no_grad()
def average_parameters(params: Iterator[Any], process_group: Any) -> None:
    """Replace parameters by their means over the processes of a group."""
    group = member(process_group, "average_parameters")
    if group is None:
        return
    works = [all_reduce(one.detach(), ReduceOp.AVG, group, async_op=True) for one in params]
    for work in works:
        if work is not None:
            work.wait()


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Return the parameters that have a gradient, of parameters or of an optimizer's groups.

    Raises NotImplementedError for what is neither.
    """
    found = []
    for one in params:
        if not isinstance(one, (Parameter, dict)):
            raise NotImplementedError(f"Parameter input of type {type(one)} is not supported")
        found += one["params"] if isinstance(one, dict) else [one]
    return [one for one in found if one.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Replace parameters that have a gradient by their means over the processes of a group."""
    average_parameters(iter(get_params_to_average(params)), process_group)
