"""Deferred tensors that the tape accounts for: those that results' histories and views hold.

In: the results of a recorded call. Out: ids of deferred tensors reachable from them through
tracejit's own objects. A deferred tensor that is alive and not among them is held by something no
replay could reproduce.
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
    """ids of the results and of every deferred tensor their histories and views keep alive. Not of
    their gradients: no output spec sets the `.grad` of what a replay makes. A leaf that only
    histories hold keeps its own: nobody gets at it once the call is over, or it is a result itself.
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
    """Return True if something holds, and still does when what only cycles of garbage hold is gone.

    Collect the young ones first, since it takes long to look at all that a process has.
    """
    for generation in (1, 2):
        if not holds():
            return False
        gc.collect(generation)
    return holds()


def _is_tape(x: Any) -> bool:
    """Asks the class: a number that is pending would be read for an attribute it has not."""
    cls = type(x)
    return (
        not issubclass(cls, type)
        and module_name(cls).startswith("tracejit.core.eager")
        or issubclass(cls, AfterSym)
        or class_attribute(cls, "next_functions") is not ABSENT
        or class_attribute(cls, "holds_tensors") is not ABSENT
    )
