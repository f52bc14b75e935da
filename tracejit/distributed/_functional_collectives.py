"""Collectives that leave their tensors as they are; PyTorch's
`torch.distributed._functional_collectives`.

In: tensors, and the processes that take part: a `ProcessGroup`, a mesh, or a mesh and a dimension.
Out: new tensors, complete at once. Gradients go through them as through `nn.functional`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.joining import cat
from tracejit.distributed.device_mesh import DeviceMesh
from tracejit.distributed.groups import ProcessGroup, member, world
from tracejit.distributed.nn import functional
from tracejit.distributed.reduce_op import ReduceOp

__all__ = [
    "AsyncCollectiveTensor", "all_gather_single", "all_gather_single_autograd",
    "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce", "all_to_all_single",
    "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_single",
    "reduce_scatter_single_autograd", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd",
    "wait_tensor",
]  # fmt: skip


class AsyncCollectiveTensor(Tensor):
    """Result that is still on its way: no tensor here is one."""


def _taking_part(group: Any) -> ProcessGroup:
    if isinstance(group, DeviceMesh):
        group = group.get_group()
    elif isinstance(group, tuple):
        mesh, dimension = group
        group = mesh.get_group(dimension)
    found = member(group, "a collective")
    return world() if found is None else found


def _operation(name: str) -> ReduceOp:
    return ReduceOp[name.upper()]


def wait_tensor(tensor: Any) -> Any:
    """Return the tensor: it is complete."""
    return tensor


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """Return the tensor of rank `src`."""
    return functional.broadcast(self, src, _taking_part(group))


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:
    """Return the combination of all tensors; `reduceOp` is e.g. "sum" or "max"."""
    return functional.all_reduce(self, _operation(reduceOp), _taking_part(group))


def all_gather_single(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """Return the tensors of all processes, joined along a dimension."""
    return cat(list(functional.all_gather(self, _taking_part(group))), gather_dim)


def reduce_scatter_single(self: Any, reduceOp: str, scatter_dim: int, group: Any,
                          tag: str = "") -> Any:
    """Return this rank's part, along a dimension, of the combination of all tensors."""
    processes = _taking_part(group)
    parts = self.chunk(processes.size(), scatter_dim)
    return functional.reduce_scatter(None, parts, _operation(reduceOp), processes)


def all_to_all_single(self: Any, output_split_sizes: Sequence[int] | None,
                      input_split_sizes: Sequence[int] | None, group: Any, tag: str = "") -> Any:
    """Return the rows that all processes had for this one, one after the other."""
    rows = len(self) if output_split_sizes is None else sum(output_split_sizes)
    like = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(like, self, output_split_sizes, input_split_sizes,
                                        _taking_part(group))


def permute_tensor(self: Any, src_dst: Sequence[int], group: Any, tag: str = "") -> Any:
    """Return the elements of the process `m` for which `src_dst[m]` is this one's rank."""
    processes = _taking_part(group)
    here, sizes = processes.rank(), range(processes.size())
    taken = [self.numel() * (src_dst[source] == here) for source in sizes]
    given = [self.numel() * (src_dst[here] == target) for target in sizes]
    return all_to_all_single(self.reshape(-1), taken, given, group).reshape(self.shape)


all_gather_tensor = all_gather_single_autograd = all_gather_tensor_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_single_autograd = reduce_scatter_single
reduce_scatter_tensor_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single
