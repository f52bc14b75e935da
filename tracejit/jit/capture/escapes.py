"""Deferred tensors that the tape accounts for: those that results' histories and views hold.

In: the results of a recorded call. Out: ids of the deferred tensors that tracejit's own objects
hold for them. Any other deferred tensor that is alive is held where no replay could put it. Called
by the tracer, and when an entry is made.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any

from tracejit.core.eager.nodes import AccumulateGrad
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.fingerprint import module_name
from tracejit.jit.capture.host_reads import AfterSym
from tracejit.jit.capture.looking import ABSENT, class_attribute, is_a, is_exactly

_CONTAINERS = (tuple, list, dict, set)


def accounted_tensors(results: Iterable[Tensor]) -> set[int]:
    """Return ids of the results and of the deferred tensors in their histories and views.

    Gradients of results do not count: no spec sets the `.grad` of a tensor that a replay makes. The
    gradient of a leaf that only histories hold counts. No code reaches that leaf after the call,
    unless it is a result itself.
    """
    found: set[int] = set()
    seen: set[int] = set()
    stack: list[Any] = list(results)
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if is_a(x, Tensor):
            if x._traced is None:
                continue
            found.add(id(x))
            stack.extend((x._node, x._view, x._hooks))
        elif type(x) is AccumulateGrad:
            if x.variable._traced is not None:
                stack.extend((x.variable, x.variable._grad))
        elif is_exactly(x, _CONTAINERS) or _is_tape(x):
            stack.extend(gc.get_referents(x))
    return found


def remains(holds: Callable[[], bool]) -> bool:
    """Return True if a condition holds, even once cycles of garbage are collected.

    Collect the young ones first, since it takes long to look at all that a process has.
    """
    for generation in (1, 2):
        if not holds():
            return False
        gc.collect(generation)
    return holds()


def _is_tape(x: Any) -> bool:
    """Return True for an object of tracejit's that holds tensors: of the tape, or a pending value.

    Ask its class: an attribute that a pending number has not would make it read its value.
    """
    cls = type(x)
    return (
        not issubclass(cls, type)
        and module_name(cls).startswith("tracejit.core.eager")
        or issubclass(cls, AfterSym)
        or class_attribute(cls, "next_functions") is not ABSENT
        or class_attribute(cls, "holds_tensors") is not ABSENT
    )
