"""Chooses and makes the native function of a small eager op.

In: a record with `fast`. Out: the function; `declines` where this interpreter has none. Called by
`core.ops.direct_calls` outside of recordings; `tracejit/__init__.py` installs `made` there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops.direct_calls import Direct, declines
from tracejit.core.ops.record import Op
from tracejit.jit.runtime import (
    eager_elementwise,
    eager_numbers,
    eager_reductions,
    eager_selection,
    eager_views,
    eager_words,
)


# These bring in lowering, which a sum of two tensors does not need.
def _short(function: Any) -> Callable[..., Any]:
    from tracejit.jit.runtime import eager_short

    return eager_short.direct(function)


def _product(op: Any) -> Callable[..., Any]:
    from tracejit.jit.runtime import eager_products

    return eager_products.direct(op)


def _with_vector(op: Any) -> Callable[..., Any]:
    from tracejit.jit.runtime import eager_vector_calls

    return eager_vector_calls.direct(op)


_KINDS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "elementwise": eager_elementwise.direct, "view": eager_views.direct,
    "reduction": eager_reductions.direct, "product": _product,
    "selection": eager_selection.direct, "number": eager_numbers.direct,
    "fused": _short, "vector": _with_vector,
}  # fmt: skip


def made(op: Op | Direct) -> Callable[..., Any]:
    """Make the native function of an op."""
    if not eager_words.available():
        return declines
    return _KINDS[op.fast](op)
