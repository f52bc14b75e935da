"""View at a position that another tensor holds, and its twin that writes the part back.

In: tensors, an int64 tensor without dimensions. Out: the `select` of the number that it holds,
which only a program will know. Called by the tracer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import creation
from tracejit.core.ops.gather_scatter import read_at
from tracejit.core.ops.movement import typed
from tracejit.core.ops.record import Op
from tracejit.core.ops.slicing import must_fit_slice, part
from tracejit.core.ops.types import TensorType


def _at_element(emit: Any, place: Sequence[Any], dim: int) -> Any:
    at = emit.to_index(emit.operand(1, []))
    return emit.operand(0, [*place[:dim], at, *place[dim:]])


select_at_record: Op = Op(
    "select_at", "movement", ("input", "index"), views=True,
    view_inverse=lambda base, src, index, dim: select_at_scatter_record(base, src, index, dim=dim),
    infer=lambda input, index, dim: typed(input, (*input.shape[:dim], *input.shape[dim + 1:])),
    eager=lambda xp, x, index, dim: x[part(dim, int(index))], node_name="SelectBackward0",
    element=_at_element,
    rules={"input": lambda grad, index, input_type, dim: select_at_scatter_record(
        creation.zeros_of(grad, input_type._replace(dtype=grad.dtype)), grad, index, dim=dim)},
)  # fmt: skip


def _at_scatter_type(base: Any, src: Any, index: Any, dim: int) -> TensorType:
    must_fit_slice(src, (*base.shape[:dim], *base.shape[dim + 1:]))
    return typed(base, base.shape)


def _at_scatter_element(emit: Any, place: Sequence[Any], dim: int) -> Any:
    return emit.where(place[dim] == emit.to_index(emit.operand(2, [])),
                      lambda: emit.operand(1, [*place[:dim], *place[dim + 1:]]),
                      lambda: emit.operand(0, place))


def _at_scatter_eager(xp: Any, base: Any, src: Any, index: Any, dim: int) -> Any:
    whole = xp.array(base, order="C")
    whole[part(dim, int(index))] = src
    return whole


select_at_scatter_record: Op = Op(
    "select_at_scatter", "movement", ("base", "src", "index"),
    infer=_at_scatter_type,
    eager=_at_scatter_eager,
    element=_at_scatter_element,
    rules={
        "base": lambda grad, src_type, index, dim: select_at_scatter_record(
            grad, creation.zeros_of(grad, src_type._replace(dtype=grad.dtype)), index, dim=dim),
        "src": lambda grad, index, dim: select_at_record(grad, index, dim=dim),
    },
)  # fmt: skip


def select_at(input: Any, dim: int, index: Any) -> Any:
    """Return `input.select(dim, index)`, a view, for an int64 tensor without dimensions.

    That tensor may be written later. Raises IndexError for a position out of range, when it is
    looked at.
    """
    ahead = creation.iota(input.shape[dim], index).reshape((1,) * dim + (input.shape[dim],))
    place = read_at(ahead, dim, index).reshape(()).clone()
    return select_at_record(input, place, dim=dim)
