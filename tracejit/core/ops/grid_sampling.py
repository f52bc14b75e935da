"""Grid sampling: images read at places between their elements.

In: images (N, C, H, W) or (N, C, D, H, W), and where to read them, from -1 at one edge to 1 at the
other. Out: (N, C, *places). Called by users as `nn.functional.grid_sample` and `affine_grid`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

from tracejit.core.ops import creation, shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.gather_scatter import gather_record
from tracejit.core.ops.pointwise import convert, where
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES, int64

_PADDINGS = ("zeros", "border", "reflection")
_MODES = ("bilinear", "nearest", "bicubic")


# -- places ----------------------------------------------------------------------------------------
def _between(x: Any, last: Any) -> Any:
    """Limit `x` to 0 .. last; no gradient goes back through elements at a limit or beyond."""
    return where((x > 0) & (x < last), x, x.detach().clamp(0, last))


def _mirrored(x: Any, low: float, span: Any) -> Any:
    """Reflect `x` at low and low + span, as often as it takes."""
    far = (x - low).abs()
    behind = far.fmod(span)
    odd = (far.detach() / span).floor().fmod(2) != 0
    return where(odd, span - behind, behind) + low


def _inside(x: Any, size: Any, padding: str, align: bool, ndim: int = 2) -> Any:
    """Bring places, in elements, into the image; padding "zeros" leaves them.

    NaN becomes the first place of an image, the last of a volume.
    """
    if padding == "reflection":
        if align and size == 1:
            x = x * 0
        else:
            x = _mirrored(x, 0, size - 1) if align else _mirrored(x, -0.5, size)
    if padding == "zeros":
        return x
    return _between(where(x == x, x, size - 1 if ndim == 3 else 0), size - 1)


def _in_elements(x: Any, size: Any, align: bool) -> Any:
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


# -- reading ---------------------------------------------------------------------------------------
def _read(rows: Any, places: Sequence[Any], sizes: Sequence[Any], weight: Any) -> Any:
    """Read rows (N, C, elements) at whole `places`, times `weight`; 0 outside of the image.

    Places are one (N, P) for each dimension.
    """
    within, linear = None, None
    for place, size in zip(places, sizes):
        here = (place >= 0) & (place < size)
        within = here if within is None else within & here
        index = convert(where(here, place, 0), int64)
        linear = index if linear is None else linear * size + index
    assert linear is not None and within is not None
    index = linear.unsqueeze(1).expand((rows.shape[0], rows.shape[1], linear.shape[1]))
    found = gather_record(rows, index, dim=2)
    if len(sizes) == 2:
        # At a NaN place the weights are NaN, too: the result is NaN in images, 0 in volumes.
        found = where(within.unsqueeze(1), found, 0)
        return found if weight is None else found * weight.unsqueeze(1)
    if weight is not None:
        found = found * weight.unsqueeze(1)
    return where(within.unsqueeze(1), found, 0)


def _nearest(rows: Any, places: Sequence[Any], sizes: Sequence[Any]) -> Any:
    found = _read(rows, [x.detach().round() for x in places], sizes, None)
    # The gradient of the places is zeros, not None.
    never = (places[0] != places[0]) & (places[0] == places[0])
    nothing = sum(where(never, x, 0) for x in places)
    return found + nothing.unsqueeze(1)


def _linear(rows: Any, places: Sequence[Any], sizes: Sequence[Any]) -> Any:
    low = [x.detach().floor() for x in places]
    after = [x - before for x, before in zip(places, low)]
    total: Any = 0
    for corner in product((0, 1), repeat=len(sizes)):
        weight: Any = 1
        for step, share in zip(corner, after):
            weight = (share if step else 1 - share) * weight
        whole = [before + step for before, step in zip(low, corner)]
        total = _read(rows, whole, sizes, weight) + total
    return total


def _cubic_weights(t: Any) -> list[Any]:
    a = -0.75
    far = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (t + 1, 2 - t)]
    near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (t, 1 - t)]
    return [far[0], near[0], near[1], far[1]]


def _cubic(rows: Any, places: Sequence[Any], sizes: Sequence[Any], padding: str,
           align: bool) -> Any:  # fmt: skip
    low = [x.detach().floor() for x in places]
    weights = [_cubic_weights(x - before) for x, before in zip(places, low)]
    total: Any = 0
    for i, j in product(range(4), repeat=2):
        whole = [
            _inside(before + (step - 1), size, padding, align)
            for before, step, size in zip(low, (i, j), sizes)
        ]
        # Places that the padding moved are whole, but for rounding.
        whole = [x if padding == "zeros" else x.round() for x in whole]
        total = _read(rows, whole, sizes, weights[0][i] * weights[1][j]) + total
    return total


def _check(input: Any, grid: Any, mode: str) -> None:
    n = len(input.shape) - 2
    if grid.dtype is not input.dtype:
        wanted, found = (SCALAR_NAMES[x.dtype.name] for x in (input, grid))
        raise RuntimeError(f"expected scalar type {wanted} but found {found}")
    if not shapes.equal(grid.shape[0], input.shape[0]):
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but "
                           f"got input with sizes {shapes.shape_text(input.shape)} and grid with "
                           f"sizes {shapes.shape_text(grid.shape)}")
    if not shapes.equal(grid.shape[-1], n):
        raise RuntimeError(f"grid_sampler(): expected grid to have size {n} in last dimension, but "
                           f"got grid with sizes {shapes.shape_text(grid.shape)}")
    for k in range(2, n + 2):
        if input.shape[k] == 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial "
                               f"dimensions, but input has sizes {shapes.shape_text(input.shape)} "
                               f"with dimension {k} being empty")
    if n not in (2, 3) or len(grid.shape) != n + 2:
        asked = 4 if n == 2 else 5
        raise RuntimeError(f"grid_sampler(): expected {asked}D input and grid with same number of "
                           "dimensions, but got input with sizes "
                           f"{shapes.shape_text(input.shape)} and grid with sizes "
                           f"{shapes.shape_text(grid.shape)}")
    if n == 3 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype.category != FLOATING:
        kernel = "grid_sampler_2d_cpu_kernel_impl" if n == 2 else "grid_sampler_3d_cpu"
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{SCALAR_NAMES[input.dtype.name]}'"
        )


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details.", stacklevel=4)
    return bool(align_corners)


@autocasts(cpu="float32", cuda="widest")
def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Any:  # fmt: skip
    """Read `input`, floating, (N, C, H, W) or (N, C, D, H, W), at places: gives (N, C, ...).

    grid           (N, ..., 2 or 3) of the same dtype: x, y (and z) from -1 to 1
    mode           "bilinear" (of all dimensions), "nearest", or "bicubic" (of 4 dimensions)
    padding_mode   what is outside: "zeros", "border" (the nearest inside) or "reflection"
    align_corners  True: -1 and 1 are the middles of the outermost elements; else their edges

    >>> import tracejit
    >>> x = tracejit.tensor([[[[0.0, 1.0, 2.0]]]])
    >>> grid = tracejit.tensor([[[[-1.0, 0.0], [0.5, 0.0]]]])
    >>> tracejit.nn.functional.grid_sample(x, grid, align_corners=True).tolist()
    [[[[0.0, 1.5]]]]

    ValueError for other modes, RuntimeError if shapes or dtypes do not fit.
    """
    if mode not in _MODES:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
                         f"or 'bicubic', but got: '{mode}'")
    if padding_mode not in _PADDINGS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
                         f"'border', or 'reflection', but got: '{padding_mode}'")
    _check(input, grid, mode)
    align, sizes = _aligned(align_corners), tuple(input.shape[2:])
    batch, out = grid.shape[0], tuple(grid.shape[1:-1])
    rows = input.reshape((batch, input.shape[1], shapes.numel(sizes)))
    flat = grid.reshape((batch, shapes.numel(out), len(sizes)))
    places = [
        _in_elements(flat.select(2, len(sizes) - 1 - d), size, align)
        for d, size in enumerate(sizes)
    ]
    if mode == "bicubic":
        found = _cubic(rows, places, sizes, padding_mode, align)
    else:
        places = [_inside(x, size, padding_mode, align, len(sizes))
                  for x, size in zip(places, sizes)]
        found = (_nearest if mode == "nearest" else _linear)(rows, places, sizes)
    return found.reshape((batch, input.shape[1], *out))


# -- grids -----------------------------------------------------------------------------------------
def _line(count: Any, like: Any, align: bool) -> Any:
    """Return the middles of `count` elements: from -1 to 1, or half an element inside of them."""
    if count == 1:
        return creation.full_of(like, (1,), 0, like.dtype)
    line = convert(creation.iota(count, like), like.dtype) * (2 / (count - 1)) - 1
    return line if align else line * ((count - 1) / count)


def affine_grid(theta: Any, size: Sequence[Any], align_corners: bool | None = None) -> Any:
    """Return places for `grid_sample` that move an image by the matrices `theta`.

    theta  floating, (N, 2, 3) or (N, 3, 4)
    size   of the image, (N, C, H, W) or (N, C, D, H, W)

    >>> import tracejit
    >>> theta = tracejit.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]])
    >>> tracejit.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True).tolist()
    [[[[-1.0, 0.5], [1.0, 0.5]]]]

    ValueError or NotImplementedError if shapes or dtypes do not fit.
    """
    if theta.dtype.category != FLOATING:
        raise ValueError("Expected theta to have floating point type, but got "
                         f"{theta.dtype}")
    sizes = tuple(map(as_size, size))
    n, shape, shown = len(sizes) - 2, tuple(theta.shape), tuple(map(shapes.hint, sizes))
    if n not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
                                  f"transforms, respectively. Got size {shown}.")
    if len(shape) != 3 or not shapes.same_shape(shape[-2:], (n, n + 1)):
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for "
                         f"size {shown}. Got {theta.shape}.")
    if any(count <= 0 for count in sizes):
        raise ValueError(f"Expected non-zero, positive output size. Got {shown}")
    shapes.same(sizes[0], shape[0],
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{shown[0]}, {n + 1}] but got: [{shapes.hint(shape[0])}, {n + 1}].")  # fmt: skip
    spatial, align = sizes[2:], _aligned(align_corners)
    if align and any(shapes.hint(count) == 1 for count in spatial):
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.", stacklevel=3)
    columns = []
    for d in reversed(range(n)):  # x before y before z
        line = _line(spatial[d], theta, align)
        apart = line.reshape(tuple(spatial[d] if k == d else 1 for k in range(n)))
        columns.append(apart.expand(spatial).reshape((shapes.numel(spatial),)))
    places = sum(
        column.unsqueeze(-1) * theta.select(2, k).unsqueeze(1) for k, column in enumerate(columns)
    )
    return (places + theta.select(2, n).unsqueeze(1)).reshape((sizes[0], *spatial, n))
