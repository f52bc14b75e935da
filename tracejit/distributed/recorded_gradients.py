"""Averages of gradients in a recording: the buckets of a reducer as collectives of the graph.

In: gradients, which become ready while a backward is recorded. Out: gradients that are means over
the processes. Called by `reducer` in captured functions that hold a whole step.

The program sends what eager code sends, bucket by bucket, so that a process whose call is captured
meets others whose call is not. Its buckets are values of the graph, not memory of the reducer.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import over_same_memory
from tracejit.core.ops import collectives as records
from tracejit.core.ops.creation import zeros
from tracejit.core.ops.joining import cat
from tracejit.distributed import recorded
from tracejit.distributed.buckets import Bucket, GradBucket
from tracejit.distributed.reduce_op import ReduceOp


def recording_of(reducer: Any) -> RecordedGradients:
    """Return what the recording has of a reducer's present backward."""
    known: dict[int, RecordedGradients] = active.tracer.root.kept_for_call  # type: ignore
    found = known.get(id(reducer))
    if found is None:
        found = known[id(reducer)] = RecordedGradients(reducer, known)
    return found


class RecordedGradients:
    """One backward in a recording.

    known  where the recording keeps this until the backward is over
    """

    def __init__(self, reducer: Any, known: dict[int, RecordedGradients]) -> None:
        self.reducer, self.known = reducer, known
        self.missing = [len(bucket.indices) for bucket in reducer.buckets]
        self.met: set[int] = set()
        self.results: list[Any] = []  # of the buckets that were sent
        active.task.callbacks.append(self.finish)
        reducer.keep_order()

    @no_grad()
    def arrived(self, index: int) -> None:
        """Note that a parameter's gradient is there, and send the buckets that are complete."""
        reducer = self.reducer
        if index in self.met:
            raise RuntimeError(reducer.twice(index))
        self.met.add(index)
        self.missing[reducer.bucket_number(index)] -= 1
        while len(self.results) < len(self.missing) and not self.missing[len(self.results)]:
            self.results.append(self._sent(reducer.buckets[len(self.results)]))

    def _sent(self, bucket: Bucket) -> Any:
        """Record the mean of a bucket over the processes."""
        reducer = self.reducer
        parts = [
            zeros(one.shape, dtype=one.dtype) if one.grad is None else one.grad.detach()
            for one in bucket.parameters
        ]  # fmt: skip
        if reducer.hook is not None:
            flat = cat([part.reshape(-1) for part in parts])
            number = len(self.results)
            last = number + 1 == len(reducer.buckets)
            return reducer.hook(reducer.hook_state, GradBucket(bucket, number, last, flat))
        flat = records.bucket(*parts, divisor=reducer.divisor)
        if bucket.owner is not None:
            for parameter in bucket.parameters:
                parameter.grad = None
            return recorded.combined_in(flat, bucket.owner, ReduceOp.SUM, reducer.group)
        return recorded.combined(flat, ReduceOp.SUM, reducer.group)

    @no_grad()
    def finish(self) -> None:
        """Bring the means to the gradients. The next forward says what is missing."""
        reducer = self.reducer
        del self.known[id(reducer)]
        if len(self.results) < len(reducer.buckets):
            active.tracer.add_break("a backward does not reach all parameters of a "
                                    "DistributedDataParallel module")  # fmt: skip
            reducer.told_of(self.met)
            return
        for bucket, result in zip(reducer.buckets, self.results):
            found = result.wait() if reducer.hook is not None else result
            found = found[0] if isinstance(found, (list, tuple)) else found
            if bucket.owner not in (None, reducer.group.rank()):
                continue
            at = 0
            for parameter in bucket.parameters:
                part = found[at : at + parameter.numel()].reshape(parameter.shape)
                at += parameter.numel()
                grad = parameter.grad
                if grad is None:
                    parameter.grad = part.clone()
                elif _is_alone(grad):
                    parameter.grad = over_same_memory(part)  # the bucket's: nothing is copied
                else:
                    grad._assign(part.to(grad.dtype))
        reducer.expecting = False
        reducer.note_own_means()


def _is_alone(grad: Any) -> bool:
    """Return True if the call made a gradient, and nothing but its parameter and `finish` holds
    it or its memory."""
    traced = grad._traced
    if traced is None or traced.memory.input_tensor is not None:
        return False
    return _references(grad) <= _OF_GRADIENT and sys.getrefcount(traced.memory) <= _OF_MEMORY


def _references(grad: Any) -> int:
    return sys.getrefcount(grad)


def _measured() -> tuple[int, int]:
    """Count the references to a gradient and to its memory that nobody else holds: Python's
    versions differ."""
    parameter = SimpleNamespace(grad=SimpleNamespace(memory=SimpleNamespace()))
    grad = parameter.grad
    return (lambda grad: _references(grad))(grad), sys.getrefcount(grad.memory)


_OF_GRADIENT, _OF_MEMORY = _measured()
