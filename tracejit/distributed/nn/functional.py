"""Collectives through which gradients go: the backward is a collective too.

In: tensors, which stay as they are. Out: new tensors. Called by programs whose loss depends on
other processes' values.

All processes must call the same collectives in the same order, in the backward as well: so each
needs a loss that depends on the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.autograd.function import Function
from tracejit.core.ops.creation import empty_like, zeros_like
from tracejit.core.ops.joining import stack
from tracejit.distributed import all_to_all_exchanges, collectives, exchanges
from tracejit.distributed.groups import ProcessGroup, member, world
from tracejit.distributed.reduce_op import ReduceOp

_NONE = (None, None, None, None)


def _group(group: Any) -> ProcessGroup:
    found = member(group, "a differentiable collective")
    return world() if found is None else found


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: ProcessGroup, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        made = tensor.clone()
        collectives.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, tensor: Any) -> Any:
        ctx.root, ctx.group = root, group
        made = tensor.clone()
        collectives.broadcast(made, group=group, group_src=root)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        found = _Reduce.apply(ctx.root, ReduceOp.SUM, ctx.group, grad)
        return None, None, found if ctx.group.rank() == ctx.root else zeros_like(found)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, root: int, op: ReduceOp, group: ProcessGroup, tensor: Any) -> Any:
        ctx.root, ctx.group = root, group
        made = tensor.clone()
        collectives.reduce(made, op=op, group=group, group_dst=root)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.root, ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, tensor: Any) -> Any:
        ctx.group = group
        found = [empty_like(tensor) for _ in range(group.size())]
        exchanges.all_gather(found, tensor.contiguous(), group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        shapes = [grads[0].shape] * ctx.group.size()
        return None, sum_over(_AllToAll.apply(ctx.group, shapes, *grads))


def sum_over(parts: Sequence[Any]) -> Any:
    """Return the sum of tensors of one shape."""
    return stack(list(parts)).sum(0)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, tensor: Any) -> Any:
        ctx.root, ctx.group = root, group
        # the others get zeros, so that every process has results to go back from
        found = [zeros_like(tensor) for _ in range(group.size())]
        here = group.rank() == root
        exchanges.gather(
            tensor.contiguous(), found if here else None, group=group, group_dst=root
        )
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.root, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, *tensors: Any) -> Any:
        ctx.root, ctx.group = root, group
        made = zeros_like(tensors[0])
        here = group.rank() == root
        given = [one.contiguous() for one in tensors] if here else None
        exchanges.scatter(made, given, group=group, group_src=root)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, *_Gather.apply(ctx.root, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: ProcessGroup, *tensors: Any) -> Any:
        ctx.group = group
        made = empty_like(tensors[group.rank()])
        exchanges.reduce_scatter(made, [one.contiguous() for one in tensors], op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, *_AllGather.apply(ctx.group, grad)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, shapes: Sequence[Any], *tensors: Any) -> Any:
        ctx.group, ctx.shapes = group, [one.shape for one in tensors]
        found = [tensors[0].new_empty(shape) for shape in shapes]
        all_to_all_exchanges.all_to_all(found, [one.contiguous() for one in tensors], group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: ProcessGroup, output: Any, rows_out: Any, rows_in: Any, tensor: Any
    ) -> Any:
        ctx.group, ctx.rows_out, ctx.rows_in, ctx.shape = group, rows_out, rows_in, tensor.shape
        made = empty_like(output)
        all_to_all_exchanges.all_to_all_single(made, tensor.contiguous(), rows_out, rows_in, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        like = grad.new_empty(ctx.shape)
        found = _AllToAllSingle.apply(ctx.group, like, ctx.rows_in, ctx.rows_out, grad)
        return *_NONE, found


def all_reduce(tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the combination of the tensors of all processes.

    tensor  of the same shape and dtype in all processes; stays as it is
    op      `ReduceOp.SUM` (default) or another one
    group   a `ProcessGroup`; the default one if None

    The gradient is the combination of the gradients of all processes. All must call the backward
    too.

    In two processes both the result and the gradient are twice as large here.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> x = tracejit.ones(2, requires_grad=True)
    >>> across.all_reduce(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _AllReduce.apply(op, _group(group), tensor)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of rank `src`. Its gradient is the sum of all processes' gradients.

    tensor  of the same shape and dtype in all processes; stays as it is
    src     global rank of the giver
    group   a `ProcessGroup`; the default one if None

    In two processes the gradient is [2., 2.] in rank 0 and [0., 0.] in rank 1.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> x = tracejit.ones(2, requires_grad=True)
    >>> across.broadcast(x, src=0).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Broadcast.apply(found.ranks.index(src), found, tensor)


def reduce(tensor: Any, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the combination of all processes' tensors in rank `dst`, the own tensor elsewhere.

    tensor  of the same shape and dtype in all processes; stays as it is
    dst     global rank of the receiver
    op      `ReduceOp.SUM` (default) or another one
    group   a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> across.reduce(tracejit.ones(2), dst=0)
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Reduce.apply(found.ranks.index(dst), op, found, tensor)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes, in the order of ranks.

    tensor  of the same shape and dtype in all processes
    group   a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> across.all_gather(tracejit.ones(2))
    (tensor([1., 1.]),)
    >>> dist.destroy_process_group()
    """
    return _AllGather.apply(_group(group), tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes in rank `dst`, zeros elsewhere.

    tensor  of the same shape and dtype in all processes
    dst     global rank of the receiver; default 0
    group   a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> across.gather(tracejit.ones(2), dst=0)
    (tensor([1., 1.]),)
    >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Gather.apply(found.ranks.index(dst), found, tensor)


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """Return this process's tensor of the list that rank `src` has.

    tensors  as many as processes; outside `src` only their shape matters
    src      global rank of the giver; default 0
    group    a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> across.scatter([tracejit.full((2,), k) for k in range(dist.get_world_size())])
    tensor([0, 0])
    >>> dist.destroy_process_group()
    """
    found = _group(group)
    return _Scatter.apply(found.ranks.index(src), found, *tensors)


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Any:
    """Return the combination over all processes of the tensor of this rank.

    output      not used, as in PyTorch
    input_list  as many tensors as processes, of one shape and dtype
    op          `ReduceOp.SUM` (default) or another one
    group       a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> across.reduce_scatter(None, [tracejit.ones(2) for _ in range(dist.get_world_size())])
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _ReduceScatter.apply(op, _group(group), *input_list)


def all_to_all(
    output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None
) -> tuple[Any, ...]:
    """Return what each process had for this one in its list.

    output_tensor_list  give the results' shapes
    input_tensor_list   a tensor for each process; shapes may differ, the dtype is one
    group               a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> like = [tracejit.zeros(2) for _ in range(dist.get_world_size())]
    >>> across.all_to_all(like, [tracejit.ones(2) for _ in range(dist.get_world_size())])
    (tensor([1., 1.]),)
    >>> dist.destroy_process_group()
    """
    shapes = [one.shape for one in output_tensor_list]
    return _AllToAll.apply(_group(group), shapes, *input_tensor_list)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None,
) -> Any:  # fmt: skip
    """Return the parts that all processes had for this one, one after the other.

    output  gives the result's shape and dtype
    input   (rows, *), of the same dtype
    input_split_sizes, output_split_sizes  rows for, and from, each process; equal ones if None
    group   a `ProcessGroup`; the default one if None

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.nn import functional as across
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> across.all_to_all_single(tracejit.zeros(2), tracejit.ones(2))
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _AllToAllSingle.apply(
        _group(group), output, output_split_sizes, input_split_sizes, input
    )
