"""Collectives of several tensors: each process gets those of others, or parts of them.

In: tensors of any dtype and layout. Out: results in tensors that the caller gave, or a `Work` with
`async_op=True`. Called by programs, by `objects` and by `nn.functional`.

Lists whose tensors lie one behind the other, as chunks of one tensor do, are not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.joining import stack
from tracejit.distributed import recorded
from tracejit.distributed.buffers import (
    Target,
    apart,
    check_same_dtype,
    check_tensor,
    check_tensors,
    reduced_in,
    source,
    target,
    together,
)
from tracejit.distributed.collectives import Finish, averaging, ended, handle, post, root_of
from tracejit.distributed.device_groups import carrier
from tracejit.distributed.groups import ProcessGroup, member
from tracejit.distributed.operation import Operation
from tracejit.distributed.parts import received_parts, sent_parts
from tracejit.distributed.reduce_op import ReduceOp, mpi_operation
from tracejit.distributed.work import Work


def all_gather(
    tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give every process the tensors of all, in the order of ranks.

    tensor_list  as many tensors as processes, which are written; of the shape and dtype of `tensor`
    tensor       of the same shape and dtype in all processes
    group        a `ProcessGroup`; the default one if None
    async_op     True: returns a `Work` at once; the result is there after its `wait()`

    Raises RuntimeError for a list of another length or other sizes, ValueError for several dtypes.

    Two processes with [1., 2.] and [3., 4.] both have the list of these two tensors after it.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> every = [tracejit.zeros(2) for _ in range(dist.get_world_size())]
    >>> dist.all_gather(every, tracejit.tensor([1.0, 2.0]))
    >>> every
    [tensor([1., 2.])]
    >>> dist.destroy_process_group()
    """
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_same_dtype([*tensor_list, tensor])
    found = member(group, "all_gather")
    if found is None:
        return None
    check_list(tensor_list, found, "all_gather: invalid output tensor list")
    _check_sizes(tensor_list, tensor, "all_gather")
    if recorded.records_for(tensor, *tensor_list):
        return handle(recorded.all_gather(tensor_list, tensor, found), async_op)
    found = carrier(found, tensor, *tensor_list)
    to = received_parts(tensor_list, "all_gather")
    operation = _gather_all(to, tensor, found, "all_gather", async_op, tensor_list)
    return ended(found, [operation], tensor_list, async_op)


def check_list(tensors: Sequence[Any], group: ProcessGroup, text: str) -> None:
    if len(tensors) != group.size():
        raise RuntimeError(f"{text} (expected length {group.size()}, got {len(tensors)})")


def _check_sizes(tensors: Sequence[Any], like: Any, name: str) -> None:
    for k, one in enumerate(tensors):
        if one.numel() != like.numel():
            raise RuntimeError(f"{name}: invalid tensor size at index {k} (expected "
                               f"{tuple(like.shape)}, got {tuple(one.shape)})")


def _gather_all(
    to: Target, tensor: Any, group: ProcessGroup, name: str, wakes: bool, keep: Any = None
) -> Operation:
    sent = apart(source(tensor, name), to.tensor)
    word = group.library.word(sent.dtype.itemsize)
    count = sent.numel()
    arguments = (
        sent.data_ptr(), count, word, to.tensor.data_ptr(), count, word, group.handle, None
    )
    return post(
        group, name, "Iallgather", count, arguments, (sent, to.tensor, keep), wakes, to.finish
    )


def all_gather_single(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the inputs of all processes one after the other into `output_tensor`.

    output_tensor  with as many times the elements of `input_tensor` as there are processes:
                   concatenated (N * d, *) or stacked (N, d, *)
    input_tensor   (d, *), of the same shape and dtype in all processes
    group          a `ProcessGroup`; the default one if None
    async_op       True: returns a `Work` at once; the result is there after its `wait()`

    Raises ValueError for another number of elements and for two dtypes.

    Two processes with [1., 2.] and [3., 4.] need `zeros(4)` and have [1., 2., 3., 4.] after it.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> every = tracejit.zeros(2 * dist.get_world_size())
    >>> dist.all_gather_single(every, tracejit.tensor([1.0, 2.0]))
    >>> every
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    check_same_dtype([output_tensor, input_tensor])
    found = member(group, "all_gather_into_tensor")
    if found is None:
        return None
    if output_tensor.numel() != input_tensor.numel() * found.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    if recorded.records_for(output_tensor, input_tensor):
        return handle(recorded.all_gather_single(output_tensor, input_tensor, found), async_op)
    found = carrier(found, output_tensor, input_tensor)
    to = target(output_tensor, "all_gather_into_tensor")
    operation = _gather_all(to, input_tensor, found, "all_gather_into_tensor", async_op)
    return ended(found, [operation], [output_tensor], async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the inputs of all processes into one tensor. Arguments and results are
    those of `all_gather_single`.
    """
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Any]], input_tensor_list: list[Any], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Give every process several tensors of all: `output_tensor_lists[rank][k]`.

    output_tensor_lists  a list for each process, with tensors of the shapes of `input_tensor_list`
    input_tensor_list    tensors of any shapes, alike in all processes
    group                a `ProcessGroup`; the default one if None
    async_op             True: returns one `Work` for all of them

    Raises the errors of `all_gather`.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> every = [[tracejit.zeros(2), tracejit.zeros(1)] for _ in range(dist.get_world_size())]
    >>> dist.all_gather_coalesced(every, [tracejit.ones(2), tracejit.ones(1)])
    >>> every
    [[tensor([1., 1.]), tensor([1.])]]
    >>> dist.destroy_process_group()
    """
    check_tensors(input_tensor_list, "tensor_list")
    found = member(group, "all_gather_coalesced")
    if found is None:
        return None
    operations = []
    for k, tensor in enumerate(input_tensor_list):
        places = [one[k] for one in output_tensor_lists]
        work = all_gather(places, tensor, found, True)
        operations += work._operations if work is not None else []
    return ended(found, operations, [t for one in output_tensor_lists for t in one], async_op)


def reduce_scatter(
    output: Any, input_list: list[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Combine a list of tensors over all processes; each keeps the one of its rank.

    output      written; of the shape and dtype of each tensor of the list
    input_list  as many tensors as processes, of the shape of `output`
    op          `ReduceOp.SUM` (default), AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR
    group       a `ProcessGroup`; the default one if None
    async_op    True: returns a `Work` at once; the result is there after its `wait()`

    Raises RuntimeError for a list of another length or other sizes, ValueError for several dtypes.

    Two processes, both with the list [1.], [2.]: rank 0 has [2.] after it, rank 1 has [4.].

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> own = tracejit.zeros(1)
    >>> dist.reduce_scatter(own, [tracejit.tensor([k + 1.0]) for k in range(dist.get_world_size())])
    >>> own
    tensor([1.])
    >>> dist.destroy_process_group()
    """
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_same_dtype([*input_list, output])
    found = member(group, "reduce_scatter")
    if found is None:
        return None
    check_list(input_list, found, "reduce_scatter: invalid input tensor list")
    _check_sizes(input_list, output, "reduce_scatter")
    if recorded.records_for(output, *input_list):
        whole = stack([one.detach() for one in input_list])
        return handle(recorded.reduce_scatter(output, whole, op, found), async_op)
    found = carrier(found, output, *input_list)
    sent = sent_parts(input_list, "reduce_scatter", reduced_in(output.dtype))
    operation = _reduce_scatter(output, sent, op, found, "reduce_scatter", async_op, input_list)
    return ended(found, [operation], [output], async_op)


def _reduce_scatter(
    output: Any, sent: Any, op: Any, group: ProcessGroup, name: str, wakes: bool, keep: Any = None
) -> Operation:
    asked = mpi_operation(name, op, output.dtype)
    kind = reduced_in(output.dtype)
    to = target(output, name, kind)
    sent = apart(sent, to.tensor)
    library = group.library
    count = to.tensor.numel()
    arguments = (
        sent.data_ptr(), to.tensor.data_ptr(), count, library.element(kind.name),
        library.operation(asked), group.handle, None,
    )  # fmt: skip
    finish = together(averaging(op, to.tensor, group), to.finish)
    return post(
        group, name, "Ireduce_scatter_block", count, arguments, (sent, to.tensor, keep), wakes,
        finish,
    )  # fmt: skip


def reduce_scatter_single(
    output: Any, input: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine `input` over all processes; each keeps the part of its rank in `output`.

    output    (d, *), written
    input     (N * d, *) or (N, d, *) on N processes, of the dtype of `output`
    op        `ReduceOp.SUM` (default), AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR
    group     a `ProcessGroup`; the default one if None
    async_op  True: returns a `Work` at once; the result is there after its `wait()`

    Raises ValueError for another number of elements and for two dtypes.

    Two processes, both with [0., 1.]: rank 0 has [0.] after it, rank 1 has [2.].

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> own = tracejit.ones(1)
    >>> dist.reduce_scatter_single(own, tracejit.arange(float(dist.get_world_size())))
    >>> own
    tensor([0.])
    >>> dist.destroy_process_group()
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_same_dtype([output, input])
    found = member(group, "reduce_scatter_tensor")
    if found is None:
        return None
    if input.numel() != output.numel() * found.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    if recorded.records_for(output, input):
        whole = input.detach().reshape(found.size(), *output.shape)
        return handle(recorded.reduce_scatter(output, whole, op, found), async_op)
    found = carrier(found, output, input)
    sent = source(input, "reduce_scatter_tensor", reduced_in(input.dtype))
    operation = _reduce_scatter(output, sent, op, found, "reduce_scatter_tensor", async_op)
    return ended(found, [operation], [output], async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor over all processes, and keep a part. Arguments and results are
    those of `reduce_scatter_single`.
    """
    return reduce_scatter_single(output, input, op, group, async_op)


def gather(
    tensor: Any, gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Collect the tensors of all processes in that of `dst`, rank 0 if it is not named.

    tensor       of the same shape and dtype in all processes
    gather_list  in `dst` as many tensors of this shape as processes, written; None elsewhere
    dst          global rank of the receiver; `group_dst` is its rank in the group, in place of it
    group        a `ProcessGroup`; the default one if None
    async_op     True: returns a `Work` at once; the result is there after its `wait()`

    Raises ValueError for a list that is missing in `dst` or is there elsewhere, RuntimeError for
    one of another length or other sizes.

    Two processes with [0] and [1]: rank 0 has the list of both after it.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> every = [tracejit.tensor([-1]) for _ in range(size)] if rank == 0 else None
    >>> dist.gather(tracejit.tensor([rank]), every, dst=0)
    >>> every
    [tensor([0])]
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if gather_list:
        check_tensors(gather_list, "gather_list")
        check_same_dtype([*gather_list, tensor])
    found = member(group, "gather")
    if found is None:
        return None
    root = root_of(found, dst, group_dst, "dst")
    found = carrier(found, tensor, *(gather_list or ()))
    if root != found.rank():
        if gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination "
                             "ranks.")
        return _move_parts("Igather", "gather", tensor, None, root, found, async_op, None, [])
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    check_list(gather_list, found, "gather: Incorrect output list size")
    _check_sizes(gather_list, tensor, "gather")
    whole, finish = received_parts(gather_list, "gather")
    return _move_parts(
        "Igather", "gather", tensor, whole, root, found, async_op, finish, gather_list
    )


def _move_parts(
    function: str, name: str, tensor: Any, whole: Any, root: int, group: ProcessGroup,
    async_op: bool, finish: Finish, results: Sequence[Any],
) -> Work | None:  # fmt: skip
    """Post a gather of the processes' tensors into the whole of the root, or wait for it."""
    sent = source(tensor, name)
    count, word = sent.numel(), group.library.word(sent.dtype.itemsize)
    at = 0 if whole is None else whole.data_ptr()
    arguments = (sent.data_ptr(), count, word, at, count, word, root, group.handle, None)
    keep = (sent, whole, results)
    operation = post(group, name, function, count, arguments, keep, async_op, finish)
    return ended(group, [operation], results, async_op)


def scatter(
    tensor: Any, scatter_list: list[Any] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give each process one tensor of a list that `src` has, rank 0 if it is not named.

    tensor        is written; of the same shape and dtype in all processes
    scatter_list  in `src` as many tensors as processes, of the shape of `tensor`; None elsewhere
    src           global rank of the giver; `group_src` is its rank in the group, in place of it
    group         a `ProcessGroup`; the default one if None
    async_op      True: returns a `Work` at once; the result is there after its `wait()`

    Raises ValueError for a list that is missing in `src` or is there elsewhere, RuntimeError for
    one of another length or other sizes.

    In two processes, rank 1 has [20.] after this.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> own, size = tracejit.zeros(1), dist.get_world_size()
    >>> given = [tracejit.tensor([10.0 * (k + 1)]) for k in range(size)]
    >>> dist.scatter(own, given if dist.get_rank() == 0 else None, src=0)
    >>> own
    tensor([10.])
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_tensors(scatter_list, "scatter_list")
        check_same_dtype([*scatter_list, tensor])
    found = member(group, "scatter")
    if found is None:
        return None
    root = root_of(found, src, group_src, "src")
    found = carrier(found, tensor, *(scatter_list or ()))
    whole: Any = None
    if root == found.rank():
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        if len(scatter_list) != found.size():
            raise RuntimeError(
                f"scatter: Incorrect input list size {len(scatter_list)}. Input list size should "
                f"be {found.size()}, same as size of the process group.")  # fmt: skip
        _check_sizes(scatter_list, tensor, "scatter")
        whole = sent_parts(scatter_list, "scatter")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    to = target(tensor, "scatter")
    count, word = to.tensor.numel(), found.library.word(tensor.dtype.itemsize)
    at = 0 if whole is None else whole.data_ptr()
    arguments = (at, count, word, to.tensor.data_ptr(), count, word, root, found.handle, None)
    keep = (whole, to.tensor, scatter_list)
    operation = post(
        found, "scatter", "Iscatter", count, arguments, keep, async_op, to.finish
    )
    return ended(found, [operation], [tensor], async_op)
