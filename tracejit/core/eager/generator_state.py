"""Generators that a captured function reads or sets by hand.

In: what is about to happen to a generator (`ops.generators` says so). Out: a break in the recording
that runs in this thread, if one does. What it drew so far is drawn first, so that seeds and states
are those of the plain function. Draws themselves are recorded and need none of this.
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
