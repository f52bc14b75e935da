"""Optimizer state: the tensors an optimizer keeps beside each parameter, made when the first
gradient is there.

In: an optimizer at the start of a step. Out: `optimizer.state[p]` filled for every parameter that
has a gradient. They are ordinary tensors also while a step is captured, so that they become inputs
of its program; making them is not part of the program (a replay finds them there), and capture does
not watch this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.eager.modes import no_grad
from tracejit.eager.recording import active


@contextmanager
def unrecorded() -> Iterator[None]:
    """Ops inside run at once, also while a function is captured."""
    recorder, active.recorder = active.recorder, None
    try:
        yield
    finally:
        active.recorder = recorder


def create_states(optimizer: Any) -> None:
    """Make the state of each parameter that has a gradient and no state yet."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is None or optimizer.state.get(p):
                continue
            # A parameter that is itself being computed has no size to be read at once.
            if p._storage is None:
                made = optimizer._new_state(p, group)
            else:
                with unrecorded(), no_grad():
                    made = optimizer._new_state(p, group)
            if made:
                optimizer.state[p] = made
                if p._storage is not None and active.recorder is not None:
                    active.recorder.settled(optimizer.state)
