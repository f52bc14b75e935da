"""Collectives in which each process sends a part to every other one.

In: tensors of any dtype and layout. Out: results in tensors that the caller gave, or a `Work` with
`async_op=True`. Called by programs and by `nn.functional`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.distributed.buffers import (
    apart,
    check_same_dtype,
    check_tensor,
    check_tensors,
    source,
    target,
)
from tracejit.distributed.collectives import Finish, ended, post
from tracejit.distributed.device_groups import carrier
from tracejit.distributed.exchanges import check_list
from tracejit.distributed.groups import ProcessGroup, member
from tracejit.distributed.operation import Operation
from tracejit.distributed.parts import received_parts, sent_parts
from tracejit.distributed.work import Work


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send each process a part of `input`, along its first dimension, and put theirs in `output`.

    output    written: the parts from rank 0, rank 1 and so on, one after the other
    input     (rows, *), of the dtype of `output`
    input_split_sizes, output_split_sizes  rows for, and from, each process; equal ones if None
    group     a `ProcessGroup`; the default one if None
    async_op  True: returns a `Work` at once; the result is there after its `wait()`

    Raises RuntimeError for rows that do not divide equally, and for sizes that do not add up to
    them.

    Two processes with [0, 1] and [2, 3] have [0, 2] and [1, 3] after it.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> found = tracejit.zeros(2, dtype=tracejit.int64)
    >>> dist.all_to_all_single(found, tracejit.arange(2) + 2 * dist.get_rank())
    >>> found
    tensor([0, 1])
    >>> dist.destroy_process_group()
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_same_dtype([output, input])
    found = member(group, "all_to_all_single")
    if found is None:
        return None
    found = carrier(found, output, input)
    rows_out = _rows(output, output_split_sizes, found)
    rows_in = _rows(input, input_split_sizes, found)
    to = target(output, "all_to_all_single")
    sent = apart(source(input, "all_to_all_single"), to.tensor)
    operation = _all_to_all(
        sent, rows_in, to.tensor, rows_out, found, "all_to_all_single", async_op, to.finish, None
    )
    return ended(found, [operation], [output], async_op)


def _rows(tensor: Any, sizes: Sequence[int] | None, group: ProcessGroup) -> list[int]:
    """Return the elements of the part of each process."""
    length = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if length % group.size():
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // group.size()] * group.size()
    if len(sizes) != group.size():
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    row = tensor.numel() // length if length else 0
    return [int(size) * row for size in sizes]


def _all_to_all(
    sent: Any, counts_in: Sequence[int], received: Any, counts_out: Sequence[int],
    group: ProcessGroup, name: str, wakes: bool, finish: Finish, keep: Any,
) -> Operation:  # fmt: skip
    tables = np.zeros((4, group.size()), np.int32)
    for row, counts in ((0, counts_in), (2, counts_out)):
        if sum(counts) > np.iinfo(np.int32).max:
            raise RuntimeError(f"{name} moves at most 2**31 - 1 elements at once")
        tables[row] = counts
        tables[row + 1, 1:] = np.cumsum(counts)[:-1]
    word = group.library.word(sent.dtype.itemsize)
    at = [int(row.ctypes.data) for row in tables]
    arguments = (
        sent.data_ptr(), at[0], at[1], word, received.data_ptr(), at[2], at[3], word,
        group.handle, None,
    )  # fmt: skip
    return post(
        group, name, "Ialltoallv", 0, arguments, (sent, received, tables, keep), wakes, finish
    )


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Any], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send the k-th tensor of a list to rank k, and receive one from every rank.

    output_tensor_list  a tensor for each process, which is written; of the shape of what it sends
    input_tensor_list   a tensor for each process; shapes may differ, the dtype is one
    group               a `ProcessGroup`; the default one if None
    async_op            True: returns a `Work` at once; the result is there after its `wait()`

    Raises RuntimeError for lists of another length, ValueError for several dtypes.

    Two processes with the lists [0], [1] and [10], [11] have [0], [10] and [1], [11] after it.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> found = [tracejit.tensor([-1]) for _ in range(size)]
    >>> dist.all_to_all(found, [tracejit.tensor([10 * rank + k]) for k in range(size)])
    >>> found
    [tensor([0])]
    >>> dist.destroy_process_group()
    """
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_same_dtype([*output_tensor_list, *input_tensor_list])
    found = member(group, "all_to_all")
    if found is None:
        return None
    check_list(output_tensor_list, found, "all_to_all: invalid output tensor list")
    check_list(input_tensor_list, found, "all_to_all: invalid input tensor list")
    found = carrier(found, *output_tensor_list, *input_tensor_list)
    counts_in = [one.numel() for one in input_tensor_list]
    counts_out = [one.numel() for one in output_tensor_list]
    sent = sent_parts(input_tensor_list, "all_to_all")
    received, finish = received_parts(output_tensor_list, "all_to_all")
    keep = (input_tensor_list, output_tensor_list)
    operation = _all_to_all(
        sent, counts_in, received, counts_out, found, "all_to_all", async_op, finish, keep
    )
    return ended(found, [operation], output_tensor_list, async_op)
