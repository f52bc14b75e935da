"""Tensors of the caller become inputs of the graph, with symbols for their sizes and strides.

In: a concrete tensor that recorded code uses for the first time. Out: its `Traced` state; tensors
over the same place are one input, unless gradients tell them apart, and memory that overlaps
otherwise is known to be entangled. Called by the tracer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracejit.core.eager.views import counting_family
from tracejit.core.ops.types import TensorType
from tracejit.jit.capture.aliasing import Memory, Traced, Writes, extent
from tracejit.jit.capture.sources import Lifted
from tracejit.jit.ir.graph import Value

if TYPE_CHECKING:
    from tracejit.jit.capture.tracer import Tracer


def lift(tracer: Tracer, tensor: Any) -> Traced:
    """The state of a concrete tensor, which becomes an input of the graph."""
    storage = tensor._storage
    place = (id(storage), tensor._offset, tensor._shape, tensor._strides, tensor._dtype,
             id(counting_family(tensor)))
    known = tracer.by_place.get(place)
    if known is not None and not (tensor._requires_grad or known.memory.owner._requires_grad):
        traced = Traced(tracer, known.memory)
        traced._value, traced._generation = known.memory.value, known.memory.generation
        tracer.lifted[id(tensor)] = Lifted(tensor, known.memory.input, traced)
        return traced
    start, end = extent(tensor)
    overlapping = tracer.spans.overlapping(start, end)
    if any(memory.generation for memory in overlapping):
        tracer.need(
            tensor, "memory is read that overlaps what was written through another tensor"
        )
        overlapping = []
    value = _input_like(tracer, tensor)
    writes = tracer.writes.setdefault(id(storage), Writes(storage.version))
    traced = Traced(tracer, Memory(value, writes, tensor))
    traced.memory.strides = tracer.graph.strides.get(value)
    for memory in overlapping:
        memory.entangled = traced.memory.entangled = True
    tracer.spans.add(start, end, traced.memory)
    tracer.lifted[id(tensor)] = Lifted(tensor, value, traced)
    tracer.by_place[place] = traced
    return traced


def _input_like(tracer: Tracer, tensor: Any) -> Value:
    """A new input of the graph with the tensor's dtype, and symbols for its sizes and strides.

    The windows of a parameter are numbers, guarded: what a convolution makes of an image's sizes
    would have one more symbol with every layer, and its count of elements a product of such sums.
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
