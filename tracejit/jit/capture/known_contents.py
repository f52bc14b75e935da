"""Guards on contents of the caller's small tensors, where a value decides what Python does.

In: the graph inputs that decide a value Python asks for. Out: `KnownContents`, by which an entry
serves only calls in which these tensors hold the same. So the recording goes on where the segment
would end otherwise. Called by `fold` and `build.py`. After `DIFFERED` misses for other contents,
the jit makes no more such entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.saved import alias
from tracejit.core.eager.state import of_array
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import CPU
from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.concretize import concretize
from tracejit.jit.ir.graph import Value

LARGEST = 1024  # elements: comparing them takes about as long as finding the tensor
OTHER_CONTENTS = "other contents"
DIFFERED = 2  # calls that missed for this: then no more entries depend on contents


class KnownContents:
    """Contents that one graph input must have: those that `learn` found when it was recorded."""

    def __init__(self, number: int, source: Source, known: Tensor):
        self.number, self.name = number, source.text
        self.answer = known.array
        self.bytes = self.answer.tobytes()

    def holds(self, inputs: Sequence[Any]) -> bool:
        """Return True if the input holds the same bits."""
        x = inputs[self.number]
        return x._shape == self.answer.shape and x.array.tobytes() == self.bytes


def knowable(tracer: Any) -> Callable[[Value], bool] | None:
    """Return a test of an input: may an entry depend on what it holds? It may for the caller's
    numbers and small tensors. Return None if the entry may depend on no contents at all."""
    root = tracer.root is tracer and not tracer.speculation_depth and not tracer.differentiating
    if not root or not tracer.cacheable or tracer.breaks or tracer.knows is None:
        return None
    numbers = {value for _, value in tracer.scalars}
    tensors = {item.value: item.tensor for item in tracer.lifted_tensors()}
    return lambda x: x in numbers or x in tensors and _is_small(tracer, tensors[x])


def learn(tracer: Any, inputs: Sequence[Value]) -> None:
    """Make the contents of such inputs constants of the recording. Numbers are guarded by value,
    tensors become `KnownContents`."""
    numbers = {value: number for number, value in tracer.scalars}
    tensors = {item.value: item.tensor for item in tracer.lifted_tensors()}
    with tracer.paused(), no_grad():
        for x in inputs:
            if x in tensors:
                tracer.contents.add(x)
                tracer.constant_values[x] = alias(tensors[x]).clone()
    for x in inputs:
        if x in numbers:
            tracer.constant_values[x] = of_array(np.array(concretize(numbers[x]), x.dtype.numpy))


def _is_small(tracer: Any, x: Tensor) -> bool:
    """Return True for few elements on the CPU that no array shows, at a source that `stays`."""
    known = x._device is CPU and x._storage is not None and math.prod(x._shape) <= LARGEST
    return known and id(x._storage) not in tracer.exported_storages and tracer.knows(x)


def stays(source: Source | None) -> bool:
    """Return True if a source is no argument, nor an element of one: its tensor is likely to
    stay."""
    at = source
    while at is not None and at.how == "item" and at.parent is not None:
        at = at.parent
    return at is not None and at.how != "argument"
