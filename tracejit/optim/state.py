"""Optimizer state: the tensors an optimizer keeps beside each parameter, made when the first
gradient is there.

In: an optimizer at the start of a step. Out: `optimizer.state[p]` filled for every parameter that
has a gradient.

The tensors are ordinary ones also while a step is captured: they become inputs of its graph. Making
them is not part of the graph (a replay finds them there), and capture does not watch this file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active, ended_to_hints
from tracejit.jit.capture.host_reads import AFTER_SYMS


@contextmanager
def unrecorded() -> Iterator[None]:
    """Ops inside run at once, also while a function is captured."""
    tracer, active.tracer = active.tracer, None
    try:
        yield
    finally:
        active.tracer = tracer


def create_states(optimizer: Any) -> None:
    """Make the state of each parameter that has a gradient and no state yet."""
    tracer: Any = active.tracer
    fresh = False  # whether the last entries are kept, and the tracer was not told so yet
    try:
        for group in optimizer.param_groups:
            keeps = optimizer._keeps_state(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                optimizer._check_gradient(p.grad)
                if not keeps:
                    continue
                if any(value is not None for value in optimizer.state.get(p, {}).values()):
                    continue
                # A parameter that is itself being computed has no size to be read at once.
                if p._storage is None:
                    made = optimizer._new_state(p, group)
                else:
                    _ask(group, optimizer._begins_with)
                    with unrecorded(), no_grad():
                        made = optimizer._new_state(p, group)
                if made:
                    kept = p._storage is not None and tracer is not None
                    if kept is not fresh:
                        _settle(tracer, optimizer)  # refused in blocks that may not run
                        fresh = kept
                    beside = {name: made.pop(name) for name in optimizer._unsaved if name in made}
                    optimizer.state[p] = made
                    if beside:
                        optimizer._beside_state[p] = beside
    finally:
        if fresh:
            _settle(tracer, optimizer)


def _settle(tracer: Any, optimizer: Any) -> None:
    tracer.commit_container(optimizer.state)
    tracer.commit_container(optimizer._beside_state)


def _ask(group: dict[str, Any], names: tuple[str, ...]) -> None:
    """Make numbers known that only the program knows: state is made of them at once."""
    for number in [group[name] for name in names]:
        if type(number) in AFTER_SYMS:
            number.concretize("an option with which an optimizer's state begins")


def note_step(optimizer: Any) -> None:
    """Note that the optimizer steps, which schedules ask. A replay need not: it stays noted."""
    optimizer._opt_called = True


def first_rate(group: dict[str, Any]) -> float:
    """Return the rate with which state begins. State that is made at once is no part of a program,
    which does not depend on the rate then."""
    return float(ended_to_hints(group["lr"]))


def forget_steps(optimizer: Any) -> None:
    """Note the optimizer's present `step`, for its first schedule: `warn_of_order` compares with
    it."""
    if not hasattr(optimizer, "_step_before_schedules"):
        optimizer._step_before_schedules = _function(optimizer.step)


def warn_of_order(schedule: Any) -> None:
    """Warn where a schedule's second step comes before the optimizer's first.

    No captured program holds the warning: none holds the optimizer's first step either.
    """
    # while captured the count may be a number of the program; `hint` is its value in this call
    count = schedule.__dict__["_step_count"]
    if getattr(count, "hint", count) != 1:
        return
    optimizer = schedule.optimizer
    see = (
        "See more details at "
        "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
    )
    if _function(optimizer.step) is not getattr(optimizer, "_step_before_schedules", None):
        text = (
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
            "initialization. Please, make sure to call `optimizer.step()` before "
            f"`lr_scheduler.step()`. {see}"
        )
    elif not optimizer.__dict__.get("_opt_called", False):
        text = (
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 "
            "and later, you should call them in the opposite order: `optimizer.step()` before "
            "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
            f"value of the learning rate schedule. {see}"
        )
    else:
        return
    warnings.warn(text, UserWarning, stacklevel=3)


def _function(method: Any) -> Any:
    return getattr(method, "__func__", method)
