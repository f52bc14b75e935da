"""Lifting: tensors of the caller become inputs of the graph, with symbols for sizes and strides.

In: a concrete tensor that recorded code uses for the first time. Out: its `FunctionalTensor` state.
Tensors over the same elements are one input, unless one of them requires grad. Memory that overlaps
in another way has `overlaps_other` set. Called by the tracer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracejit.core.eager.views import counting_family
from tracejit.core.ops.types import TensorType
from tracejit.jit.capture.inputs import LiftedInput
from tracejit.jit.capture.storage import (
    FunctionalStorage,
    FunctionalTensor,
    VersionCounter,
    byte_range,
)
from tracejit.jit.ir.graph import Value

if TYPE_CHECKING:
    from tracejit.jit.capture.tracer import Tracer


def lift(tracer: Tracer, tensor: Any) -> FunctionalTensor:
    """Make a concrete tensor an input of the graph and return its state."""
    storage = tensor._storage
    place = (id(storage), tensor._offset, tensor._shape, tensor._strides, tensor._dtype,
             id(counting_family(tensor)))
    known = tracer.by_place.get(place)
    if known is not None and not (
        tensor._requires_grad or known.memory.input_tensor._requires_grad
    ):
        traced = FunctionalTensor(tracer, known.memory)
        traced._value, traced._mutations = known.memory.value, known.memory.mutations
        tracer.lifted[id(tensor)] = LiftedInput(tensor, known.memory.input, traced)
        return traced
    start, end = byte_range(tensor)
    overlapping = tracer.intervals.overlapping(start, end)
    if any(memory.mutations for memory in overlapping):
        tracer.break_graph(
            tensor, "the function reads memory that it wrote through an overlapping tensor"
        )
        overlapping = []
    value = _input_like(tracer, tensor)
    counter = tracer.version_counters.setdefault(id(storage), VersionCounter(storage.version))
    traced = FunctionalTensor(tracer, FunctionalStorage(value, counter, tensor))
    traced.memory.strides = tracer.graph.strides.get(value)
    for memory in overlapping:
        memory.overlaps_other = traced.memory.overlaps_other = True
    tracer.intervals.add(start, end, traced.memory)
    tracer.lifted[id(tensor)] = LiftedInput(tensor, value, traced)
    tracer.by_place[place] = traced
    return traced


def _input_like(tracer: Tracer, tensor: Any) -> Value:
    """Make a new input of the graph with the tensor's dtype, and symbols for its sizes and strides.

    A parameter's windows (sizes from dimension 2 on) become guarded ints. As symbols, every layer
    would add one to what a convolution makes of an image's sizes. The count of elements would be a
    product of such sums.
    """
    k = len(tracer.graph.inputs)
    scope = tracer.graph.scope
    shape = []
    for d, size in enumerate(tensor._shape):
        symbol = scope.symbol(size, f"s{k}_{d}")
        tracer.graph.symbol_sources[f"s{k}_{d}"] = ("size", k, d)
        if tracer.static or (d >= 2 and tensor._keeps_windows):
            scope.decide("==", symbol, size)
        shape.append(scope.resolve(symbol))
    strides: list[Any] = []
    contiguous = tensor._strides is None
    if not contiguous:
        for d, stride in enumerate(tensor._strides):
            strides.append(scope.symbol(stride, f"t{k}_{d}"))
            tracer.graph.symbol_sources[f"t{k}_{d}"] = ("stride", k, d)
    return tracer.graph.input(
        TensorType(tensor._dtype, tuple(shape), tensor._device),
        contiguous=contiguous,
        strides=strides,
    )
