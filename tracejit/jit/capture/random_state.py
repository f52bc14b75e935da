"""Generator states as inputs: random ops draw from them while a function is recorded.

In: a generator. Out: its state as a tensor of the graph, and the number of earlier draws. Importing
this file makes random ops ask the tracer, or outside a recording the generator itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracejit.core.eager.recording import active
from tracejit.core.memory import CPU
from tracejit.core.ops import random
from tracejit.core.ops.types import TensorType, int64
from tracejit.jit.capture.inputs import RngInput

if TYPE_CHECKING:
    from tracejit.jit.capture.tracer import Tracer


def rng_input_of(tracer: Tracer, generator: random.Generator) -> RngInput:
    """Return the graph's input for a generator's state; break the graph if the function seeded
    it."""
    draws = tracer.generators.get(id(generator))
    if draws is not None and not draws.untouched():
        tracer.break_graph(None, "the function seeds the random generator")
        draws = None
    if draws is None:
        state = tracer.graph.input(TensorType(int64, (2,), CPU), source="generator state")
        tensor = tracer.untracked(state)
        draws = tracer.generators[id(generator)] = RngInput(generator, tensor, state)
    return draws


def _state_of(generator: random.Generator) -> tuple[Any, int]:
    """Return (state, earlier draws) for a random op: the tracer's, or the generator's own outside a
    recording."""
    tracer = active.tracer
    if tracer is None:
        return generator.take(), 0
    return tracer.random_state(generator)


random.install_state_provider(_state_of)
