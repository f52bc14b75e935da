"""Hooks that say how a bucket of gradients is averaged: as it is, or in half precision.

In: a group, or None for the default one, and a bucket. Out: a future of the averaged bucket. Passed
to `DistributedDataParallel.register_comm_hook`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops.types import bfloat16, dtype, float16
from tracejit.distributed.buckets import GradBucket
from tracejit.distributed.collectives import all_reduce
from tracejit.distributed.groups import world
from tracejit.futures import Future

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
    "fp16_compress_wrapper",
]  # fmt: skip


def _averaged(group: Any, buffer: Any) -> Future:
    found = world() if group is None else group
    buffer.div_(found.size())
    work = all_reduce(buffer, group=found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Average the bucket: what happens without a hook."""
    return _averaged(process_group, bucket.buffer())


def _compressed(process_group: Any, bucket: GradBucket, kind: dtype) -> Future:
    buffer = bucket.buffer()
    small = buffer.to(kind)

    def widen(future: Future) -> Any:
        buffer.copy_(future.value())
        return buffer

    return _averaged(process_group, small).then(widen)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Average the bucket's values, rounded to float16."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Average the bucket's values, rounded to bfloat16."""
    return _compressed(process_group, bucket, bfloat16)


def _wrapper(kind: dtype, hook: Callable[[Any, GradBucket], Future]) -> Callable[..., Future]:
    def wrapped(state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(kind))

        def widen(future: Future) -> Any:
            found = future.value()
            buffer.copy_(found[0] if isinstance(found, list) else found)
            return buffer

        return hook(state, bucket).then(widen)

    return wrapped


def fp16_compress_wrapper(
    hook: Callable[[Any, GradBucket], Future],
) -> Callable[[Any, GradBucket], Future]:
    """Return a hook that gives `hook` the bucket in float16."""
    return _wrapper(float16, hook)


def bf16_compress_wrapper(
    hook: Callable[[Any, GradBucket], Future],
) -> Callable[[Any, GradBucket], Future]:
    """Return a hook that gives `hook` the bucket in bfloat16."""
    return _wrapper(bfloat16, hook)
