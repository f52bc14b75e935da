"""Generators that a captured function makes, seeds, reads or sets by hand.

In: what is about to happen to a generator (`ops.generators` tells). Out: a graph break, if this
thread records. It runs the draws so far first, so seeds and states are those of the plain function.
Draws themselves are recorded and break nothing.
"""

from __future__ import annotations

from tracejit.core.eager.recording import active
from tracejit.core.ops.generators import install_observer


def _tell_recorder(event: str) -> None:
    tracer = active.tracer
    if tracer is not None:
        tracer.break_graph(None, f"the function {event}",
                           "make, seed and save generators outside the captured function")


install_observer(_tell_recorder)
