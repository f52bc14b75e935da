"""Tensors of any rank side by side, and apart again: atleast_1d, hstack, column_stack, hsplit.

Also products of sets (cartesian_prod, combinations) and broadcast_tensors. In: tensors. Out: one,
or a tuple of views. Written in cat, split and views. Called by users.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.gather_scatter import index
from tracejit.core.ops.joining import cat, meshgrid, must_be_list, stack, tensor_split
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import is_tensor
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import TensorType, int64


# -- at least so many dimensions -------------------------------------------------------------------
def _at_least(x: Any, ndim: int) -> Any:
    rank = len(x.shape)
    if rank == 0:
        return x.reshape((1,) * ndim)
    if rank == 1 and ndim == 3:
        return x.unsqueeze(0).unsqueeze(-1)
    if rank < ndim:
        return x.unsqueeze(-1 if ndim == 3 else 0)
    return x


def _of_each(ndim: int) -> Callable[..., Any]:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            if is_tensor(tensors[0]):
                return _at_least(tensors[0], ndim)
            tensors = tuple(tensors[0])
        return tuple(_at_least(x, ndim) for x in tensors)

    function.__name__ = f"atleast_{ndim}d"
    function.__doc__ = f"""Return a view with dimensions of size 1 put in until there are {ndim}.

    Of several tensors, or a list of them, return a tuple of such tensors.

    >>> import tracejit
    >>> tracejit.atleast_{ndim}d(tracejit.tensor(2.0)).ndim
    {ndim}
    """
    return function


atleast_1d, atleast_2d, atleast_3d = map(_of_each, (1, 2, 3))


# -- one beside the other --------------------------------------------------------------------------
def _pieces(name: str, rank: int, tensors: Sequence[Any]) -> list:
    """Return the tensors with at least so many dimensions; RuntimeError if there are none."""
    must_be_list(name, tensors)
    if not len(tensors):
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return [_at_least(x, rank) for x in tensors]


def hstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along dimension 1, vectors along 0.

    >>> import tracejit
    >>> tracejit.hstack([tracejit.ones(2), tracejit.zeros(1)])
    tensor([1., 1., 0.])
    """
    pieces = _pieces("hstack", 1, tensors)
    return cat(pieces, 0 if len(pieces[0].shape) == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along dimension 0, vectors as rows.

    >>> import tracejit
    >>> tracejit.vstack([tracejit.ones(2), tracejit.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    return cat(_pieces("vstack", 2, tensors), 0)


def row_stack(tensors: Sequence[Any]) -> Any:
    """Call `vstack`: it joins along dimension 0.

    >>> import tracejit
    >>> tracejit.row_stack([tracejit.ones(2), tracejit.zeros(2)]).shape
    tracejit.Size([2, 2])
    """
    must_be_list("row_stack", tensors)
    return vstack(tensors)


def dstack(tensors: Sequence[Any]) -> Any:
    """Join tensors along dimension 2, matrices as slices of it.

    >>> import tracejit
    >>> tracejit.dstack([tracejit.tensor([1, 2]), tracejit.tensor([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return cat(_pieces("dstack", 3, tensors), 2)


def column_stack(tensors: Sequence[Any]) -> Any:
    """Join tensors as `hstack` does, vectors as columns.

    >>> import tracejit
    >>> tracejit.column_stack([tracejit.tensor([1, 2]), tracejit.tensor([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    pieces = _pieces("column_stack", 1, tensors)
    return hstack([x.reshape((-1, 1)) if len(x.shape) < 2 else x for x in pieces])


# -- apart -----------------------------------------------------------------------------------------
def _split(name: str, least: int, dim: int, input: Any, parts: Any) -> tuple:
    rank = len(input.shape)
    if rank < least:
        raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but "
                           f"got a tensor with {rank} dimensions!")
    if isinstance(parts, str):
        raise TypeError(f"{name}(): expected sections or indices, got {parts!r}")
    if not isinstance(parts, (tuple, list)):
        size, count = input.shape[dim], as_size(parts)
        if count <= 0 or size % count != 0:
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the "
                               f"size of the dimension {shapes.hint(size)} is not divisible by the "
                               f"split_size {count}!")
    return tensor_split(input, parts, dim)


@method()
def hsplit(input: Any, indices_or_sections: Any) -> tuple:
    """Cut along dimension 1, a vector along 0, into views: equal sections, or before indices.

    >>> import tracejit
    >>> [x.tolist() for x in tracejit.arange(4).hsplit([1, 3])]
    [[0], [1, 2], [3]]
    """
    return _split("hsplit", 1, 0 if len(input.shape) == 1 else 1, input, indices_or_sections)


@method()
def vsplit(input: Any, indices_or_sections: Any) -> tuple:
    """Cut along dimension 0 into views; see `hsplit`.

    >>> import tracejit
    >>> [tuple(x.shape) for x in tracejit.vsplit(tracejit.zeros(4, 2), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("vsplit", 2, 0, input, indices_or_sections)


@method()
def dsplit(input: Any, indices_or_sections: Any) -> tuple:
    """Cut along dimension 2 into views; see `hsplit`.

    >>> import tracejit
    >>> [tuple(x.shape) for x in tracejit.dsplit(tracejit.zeros(1, 2, 4), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", 3, 2, input, indices_or_sections)


# -- products of sets ------------------------------------------------------------------------------
def _must_be_vector(x: Any) -> None:
    if len(x.shape) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {shapes.shape_text(x.shape)}")


def cartesian_prod(*tensors: Any) -> Any:
    """Return all ways to take one element of each vector, as rows.

    >>> import tracejit
    >>> tracejit.cartesian_prod(tracejit.tensor([1, 2]), tracejit.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    must_be_list("cartesian_prod", tensors)
    for x in tensors:
        _must_be_vector(x)
    if len(tensors) == 1:
        return tensors[0]
    return stack([grid.flatten() for grid in meshgrid(*tensors, indexing="ij")], 1)


def _choices(xp: Any, x: Any, r: int, repeated: bool) -> Any:
    choose = itertools.combinations_with_replacement if repeated else itertools.combinations
    chosen = choose(range(x.shape[0]), r)
    return xp.asarray(list(chosen), xp.int64).reshape(-1, r)


def _choices_type(input: Any, r: int, repeated: bool) -> TensorType:
    count = int(input.shape[0])
    rows = math.comb(max(count + r - 1, 0) if repeated else count, r)
    return TensorType(int64, (rows, r), input.device)


choices_record = Op("choices", "extern", ("input",), infer=_choices_type, eager=_choices)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return all ways to take `r` elements of a vector, in its order, as rows.

    >>> import tracejit
    >>> tracejit.combinations(tracejit.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    _must_be_vector(input)
    count = as_size(r)
    if count < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {count}")
    if count == 0:
        return input.new_empty((0,))
    places = choices_record(input, r=count, repeated=bool(with_replacement))
    return index(input, (0,), [places])


method("combinations")(combinations)


# -- one shape -------------------------------------------------------------------------------------
def broadcast_tensors(*tensors: Any) -> tuple:
    """Expand the tensors to their common shape, as views.

    >>> import tracejit
    >>> x, y = tracejit.broadcast_tensors(tracejit.zeros(2), tracejit.zeros(3, 1))
    >>> x.shape, y.shape
    (tracejit.Size([3, 2]), tracejit.Size([3, 2]))
    """
    if len(tensors) == 1 and not is_tensor(tensors[0]):
        tensors = tuple(tensors[0])
    shape = shapes.broadcast(*(x.shape for x in tensors))
    return tuple(x.expand(shape) for x in tensors)
