"""Help for modules in several processes; PyTorch's `torch.distributed.utils`.

In: a module. Out: the state of one process in all of them. Called by packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.distributed.collectives import broadcast
from tracejit.distributed.groups import ProcessGroup

__all__: list[str] = []


def _sync_module_states(
    module: Any, process_group: ProcessGroup, broadcast_bucket_size: int, src: int,
    params_and_buffers_to_ignore: Iterable[str] = (), broadcast_buffers: bool = True,
) -> None:  # fmt: skip
    """Give the parameters and buffers of rank `src` of the group to all processes."""
    named = list(module.named_parameters())
    if broadcast_buffers:
        named += module.named_buffers()
    ignored = set(params_and_buffers_to_ignore)
    _sync_params_and_buffers(
        process_group, [one for name, one in named if name not in ignored], broadcast_bucket_size,
        src,
    )  # fmt: skip


@no_grad()
def _sync_params_and_buffers(
    process_group: ProcessGroup, module_states: Iterable[Any], broadcast_bucket_size: int, src: int
) -> None:
    for one in module_states:
        broadcast(one.detach(), group=process_group, group_src=src)
