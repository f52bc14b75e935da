"""Differences of neighbours, and sums of areas between them: diff, trapezoid, cumulative_trapezoid,
gradient.

In: values along a dimension, and where they are taken: a distance, or a tensor of places. Out: a
tensor. Written in slices and arithmetic. Called by users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.joining import cat
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import logical_xor
from tracejit.core.ops.pointwise_record import is_tensor
from tracejit.core.ops.reduction import sum
from tracejit.core.ops.scan import cumsum
from tracejit.core.ops.shapes import as_size, equal, hint, normalize_dim, normalize_dims
from tracejit.core.ops.slicing import slice_along
from tracejit.core.ops.types import bool_, uint8


@method()
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Subtract from each element the one before along `dim`, `n` times over; of bools, test if they
    differ.

    `prepend` and `append` are put at the ends first.

    >>> import tracejit
    >>> tracejit.diff(tracejit.tensor([1, 4, 9, 16]), n=2)
    tensor([2, 2])

    RuntimeError for a negative `n` and for tensors without dimensions.
    """
    count, rank = as_size(n), len(input.shape)
    if not rank:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if count < 0:
        raise RuntimeError(f"order must be non-negative but got {count}")
    k = normalize_dim(dim, rank)
    ends = [x for x in (prepend, append) if x is not None]
    if any(len(x.shape) != rank for x in ends):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if count == 0:
        return input.clone()
    for x in ends:
        for d, (own, given) in enumerate(zip(input.shape, x.shape)):
            if d != k and not equal(own, given):
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({d}) = {hint(own)}, but "
                    f"got tensor.size({d}) = {hint(given)}")
    if ends:
        input = cat([x for x in (prepend, input, append) if x is not None], k)
    for _ in range(count):
        after, before = slice_along(input, k, 1, None), slice_along(input, k, None, -1)
        input = logical_xor(after, before) if input.dtype is bool_ else after - before
    return input


# -- areas -----------------------------------------------------------------------------------------
def _areas(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    """Return the area over each pair of neighbours, and the dimension."""
    if not y.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if y.dtype is bool_ or x is not None and x.dtype is bool_:
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    k = normalize_dim(dim, len(y.shape))
    pairs = slice_along(y, k, None, -1) + slice_along(y, k, 1, None)
    if x is None:
        return pairs * dx / 2.0, k
    if len(x.shape) == 1:
        if not equal(x.shape[0], y.shape[k]):
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        steps = diff(x).reshape((-1, *(1,) * (len(y.shape) - k - 1)))
    else:
        missing = len(y.shape) - len(x.shape)
        x = x.reshape((*(1,) * missing, *x.shape)) if missing > 0 else x
        steps = diff(x, dim=k - len(y.shape))
    return pairs * steps / 2.0, k


@method()
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Return the area under `y` along `dim`, its values joined by lines. The result is without
    `dim`.

    The values are taken at the places `x` of its shape or (n,), or `dx` (1) apart.

    >>> import tracejit
    >>> tracejit.trapezoid(tracejit.tensor([1.0, 2.0, 4.0]), dx=2)
    tensor(9.)
    """
    areas, k = _areas("trapezoid", y, x, _distance("trapezoid", x, dx), dim)
    return sum(areas, k - len(y.shape))


@method()
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Return the areas under `y` up to each of its values but the first; see `trapezoid`.

    The result has the shape of `y` with one element less along `dim`.

    >>> import tracejit
    >>> tracejit.cumulative_trapezoid(tracejit.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    distance = _distance("cumulative_trapezoid", x, dx)
    areas, k = _areas("cumulative_trapezoid", y, x, distance, dim)
    return cumsum(areas, k - len(y.shape))


def _distance(name: str, x: Any, dx: Any) -> Any:
    if x is not None and dx is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments: x and dx")
    return 1 if dx is None else dx


trapz = trapezoid


# -- slopes ----------------------------------------------------------------------------------------
def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple:
    """Estimate the slope of `input` at each element along each of the dimensions `dim` (None: all).

    Differences are of second order; at the ends of order `edge_order`.

    spacing: a distance (1), one for each dimension, or the places as vectors.

    >>> import tracejit
    >>> tracejit.gradient(tracejit.tensor([1.0, 4.0, 9.0, 16.0]))[0]
    tensor([3., 4., 6., 7.])

    RuntimeError for an `edge_order` other than 1 and 2, and where there are too few elements.
    """
    if input.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = normalize_dims(dim, len(input.shape))
    if dim is not None:
        given = dim if isinstance(dim, (tuple, list)) else (dim,)
        dims = tuple(normalize_dim(d, len(input.shape)) for d in given)
    single = not isinstance(spacing, (tuple, list))
    spacings: Sequence[Any] = [1 if spacing is None else spacing] * len(dims) if single else spacing
    if len(spacings) == 1 and len(dims) > 1 and dim is None and not is_tensor(spacings[0]):
        spacings = list(spacings) * len(dims)
    if len(spacings) != len(dims) and dim is not None:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or of the length of dim, "
            f"but got {len(spacings)} spacings for {len(dims)} dimensions")
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {len(input.shape)}', since dim argument was not given, but "
            f"got a list of length {len(spacings)}")
    return tuple(_slope(input, k, h, edge_order) for k, h in zip(dims, spacings))


def _slope(input: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    if input.shape[dim] < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least "
                           "edge_order+1")

    def cut(x: Any, start: Any, stop: Any) -> Any:
        return slice_along(x, dim, start, stop)

    rise = cut(input, 1, None) - cut(input, None, -1)
    if not is_tensor(spacing) or not spacing.shape:
        slopes = rise / spacing
        inner = (cut(input, 2, None) - cut(input, None, -2)) / (2 * spacing)
        low, high = 0.5, 0.5
    else:
        steps = diff(spacing).reshape(tuple(-1 if d == dim else 1 for d in range(len(rise.shape))))
        slopes = rise / steps
        near, far = cut(steps, None, -1), cut(steps, 1, None)
        inner = (cut(slopes, None, -1) * far + cut(slopes, 1, None) * near) / (near + far)
        low, high = cut(near / (near + far), None, 1), cut(far / (near + far), -1, None)
    first, last = cut(slopes, None, 1), cut(slopes, -1, None)
    if edge_order == 2:
        first = first + (first - cut(slopes, 1, 2)) * low
        last = last + (last - cut(slopes, -2, -1)) * high
    return cat([first, inner, last], dim)
