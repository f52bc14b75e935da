"""Numbers of ended recordings (symbolic sizes, runtime numbers), as the plain values they had.

In: attributes or operands that a tape node, a view or an op call still holds. Out: the same, with
each number that does not belong to the recording at work replaced by its value in the call that
made it. Called by the tracer, `fold` and `loop_items`, and by the eager tape through
`eager.recording.ended_to_hints`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager import recording
from tracejit.core.eager.recording import active
from tracejit.core.ops.types import TensorType
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.ir.sizes import SymInt


def ended_to_hints(x: Any) -> Any:
    """Return `x` with the numbers of ended recordings made plain. Records no guard."""
    return with_numbers(x, _ended_to_hint)


def _ended_to_hint(x: Any) -> Any:
    tracer: Any = active.tracer
    if type(x) is SymInt:
        return x if tracer is not None and tracer.graph.scope is x.scope else x.hint
    if issubclass(type(x), SymNumber):
        return x if tracer is not None and tracer.root is x.tracer else x.hint
    return x


def with_numbers(x: Any, number: Callable[[Any], Any]) -> Any:
    """Return an op's attributes or operands with `number` applied to each leaf."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([with_numbers(y, number) for y in x])
    if kind is dict:
        return {k: with_numbers(y, number) for k, y in x.items()}
    if kind is TensorType:
        return TensorType(x.dtype, with_numbers(x.shape, number), x.device)
    return number(x)


recording.install_ended_to_hints(ended_to_hints)
