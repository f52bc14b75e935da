"""Replacements of `float`, `int`, `min` and `max` in recorded code, which keep pending numbers
pending.

In: the arguments of the call, handed over by `host_calls.py`. Out: the number. It is pending if it
is made of numbers of this recording that are pending, and the operation cannot raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.host_reads import (
    NUMBERS,
    AfterSymFloat,
    AfterSymInt,
    AfterSymStr,
    longest,
    read,
)
from tracejit.jit.capture.looking import is_exactly
from tracejit.jit.capture.output import deferring_tracer
from tracejit.jit.capture.tree import number_kind


def deferred_float(*args: Any) -> Any:
    """Return `float(x)`: pending if x is a pending number, or a tensor without dimensions."""
    tracer = deferring_tracer()
    x = args[0] if len(args) == 1 else None
    if tracer is not None and type(x) is Tensor and not x.shape:
        x = read(tracer, x)
    if type(x) is AfterSymStr:
        return float(x.concretize())
    if type(x) is AfterSymFloat:
        return x
    return x.arithmetic("float", (x,)) if type(x) is AfterSymInt else float(*args)


def deferred_int(*args: Any, **keywords: Any) -> Any:
    """Return `int(x)`: pending if x is a pending int, or a tensor of ints without dimensions."""
    tracer = deferring_tracer()
    x = args[0] if len(args) == 1 and not keywords else None
    if tracer is not None and type(x) is Tensor and not x.shape:
        x = read(tracer, x)
        args = (x,)
    if args and type(args[0]) is AfterSymStr:
        args = (args[0].concretize(), *args[1:])
    return x if type(x) is AfterSymInt else int(*args, **keywords)


def deferred_min(*args: Any, **keywords: Any) -> Any:
    """Return `min(...)`: pending where one of several numbers is, and all are of one kind.

    >>> deferred_min(2.0, 1.0), deferred_min([3, 1])
    (1.0, 1)
    """
    found = _chosen(_least, args, keywords)
    return min(*args, **keywords) if found is None else found


def deferred_max(*args: Any, **keywords: Any) -> Any:
    """Return `max(...)`: pending where `min(...)` is."""
    found = _chosen(_most, args, keywords)
    return max(*args, **keywords) if found is None else found


def _chosen(choose: Callable[..., Any], args: tuple, keywords: dict[str, Any]) -> Any:
    tracer = deferring_tracer()
    given = args[0] if len(args) == 1 else args
    if tracer is None or keywords or not is_exactly(given, (tuple, list)):
        return None
    waiting = [x for x in given if is_exactly(x, NUMBERS) and x.open]
    kinds = {number_kind(x) for x in given}
    if not waiting or len(kinds) != 1 or any(x.call is not tracer for x in waiting):
        return None
    (kind,) = kinds
    if kind is float:
        return AfterSymFloat(tracer, choose, tuple(given))
    return AfterSymInt(tracer, choose, tuple(given), longest(given)) if kind is int else None


def _least(*numbers: Any) -> Any:
    return min(numbers)


def _most(*numbers: Any) -> Any:
    return max(numbers)
