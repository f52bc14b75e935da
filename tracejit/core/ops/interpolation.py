"""Interpolation: images of another size.

In: (N, C, *spatial) with one to three spatial dimensions; sizes, or factors. Out: tensors of as
many dimensions. Called by users as `nn.functional.interpolate`, by `nn`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import adaptive_pooling, shapes
from tracejit.core.ops.pointwise_logic import clamp
from tracejit.core.ops.pointwise_math import floor
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import Op
from tracejit.core.ops.resampling_record import resampling
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES, float64, uint8

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_ALIGNED = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_KEPT = ("linear", False, None)  # a dimension whose size stays
_AREA = {
    1: adaptive_pooling.adaptive_avg_pool1d, 2: adaptive_pooling.adaptive_avg_pool2d,
    3: adaptive_pooling.adaptive_avg_pool3d,
}  # fmt: skip


def _record(kind: str, n: int, suffix: str = "") -> Op:
    camel = "".join(part.capitalize() for part in kind.split("_"))
    name = f"upsample_{kind}{n}d{suffix and '_' + suffix}"
    return resampling(name, f"Upsample{camel}{n}D{suffix.capitalize()}Backward0")


RECORDS: dict[tuple[str, int, bool], Op] = {
    **{("nearest", n, False): _record("nearest", n) for n in (1, 2, 3)},
    **{("nearest-exact", n, False): _record("nearest_exact", n) for n in (1, 2, 3)},
    **{(mode, n, False): _record(mode, n) for mode, n in _ALIGNED.items()},
    **{(mode, 2, True): _record(mode, 2, "aa") for mode in ("bilinear", "bicubic")},
}


# -- arguments -------------------------------------------------------------------------------------
def _scaled(size: Any, factor: float) -> Any:
    """Return the whole part of `size` times `factor`; for a whole factor a symbolic size stays
    symbolic."""
    return size * int(factor) if factor.is_integer() else math.floor(float(size) * factor)


def _sizes(
    input: Any, size: Any, scale_factor: Any, recompute: bool
) -> tuple[tuple, tuple[float | None, ...]]:
    """Return sizes of the result, and factors to compute positions with (None: from the sizes)."""
    spatial = tuple(input.shape[2:])
    shown = list(map(shapes.hint, spatial))
    n, given = len(spatial), f"got input with spatial dimensions of {shown}"
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        out = tuple(size) if isinstance(size, (tuple, list)) else (size,) * n
        if len(out) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but "
                f"{given} and output size of {size}. Please provide input tensor in (N, C, d1, d2, "
                "...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if not all(isinstance(x, int) for x in out):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, "
                f"int, int], but got size with types {[type(x) for x in out]}"
            )
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(map(as_size, out)), (None,) * n
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    listed = isinstance(scale_factor, (tuple, list))
    factors = tuple(map(float, scale_factor)) if listed else (float(scale_factor),) * n
    if len(factors) != n:
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, but {given} "
            f"and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, "
            "d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return tuple(map(_scaled, spatial, factors)), (None,) * n if recompute else factors


def _check(input: Any, out: tuple, mode: str, antialias: bool) -> None:
    n, spatial = len(out), tuple(input.shape[2:])
    if any(size < 1 for size in (*spatial, *out)):
        texts = [", ".join(f"{a}: {shapes.hint(x)}" for a, x in zip("DHW"[-n:], each))
                 for each in (spatial, out)]  # fmt: skip
        joined = "and output" if n == 1 else "output"
        raise RuntimeError("Input and output sizes should be greater than 0, but got input "
                           f"({texts[0]}) {joined} ({texts[1]})")
    if input.shape[1] == 0:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes "
                           f"{shapes.shape_text(input.shape)}")
    of_bytes = "nearest" in mode or mode in ("bilinear", "bicubic")
    if input.dtype.category != FLOATING and not (input.dtype is uint8 and of_bytes):
        raise NotImplementedError(f'"{_kernel(mode, n, antialias)}" not implemented for '
                                  f"'{SCALAR_NAMES[input.dtype.name]}'")


def _kernel(mode: str, n: int, antialias: bool) -> str:
    """Return PyTorch's name of the kernel."""
    if antialias:
        return "compute_index_ranges_weights"
    if mode == "bicubic":
        return "compute_indices_weights_cubic"
    if n == 2:
        return f"upsample_{'nearest' if 'nearest' in mode else mode}2d_channels_last"
    return f"compute_indices_weights_{'nearest' if 'nearest' in mode else 'linear'}"


def _unsupported(ndim: int, mode: str) -> NotImplementedError:
    wanted = _ALIGNED.get(mode)
    if wanted is not None and mode != "bicubic" and ndim in (3, 4, 5):
        return NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {wanted + 2}D input")
    return NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got "
                               f"{ndim}D) for the modes: {_MODES} (got {mode})")


# -- what users call -------------------------------------------------------------------------------
def _kinds(mode: str, align: bool, antialias: bool, factors: Sequence[float | None]) -> tuple:
    """Return the kind of resampling of each dimension."""
    if mode in ("nearest", "nearest-exact"):
        return tuple(("nearest", f, 0.5 if "exact" in mode else 0.0) for f in factors)
    if antialias:
        return tuple(("antialiased", align, f, mode == "bicubic") for f in factors)
    return tuple(("cubic" if mode == "bicubic" else "linear", align, f) for f in factors)


def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Any:  # fmt: skip
    """Resize `input`, floating, (N, C, L), (N, C, H, W) or (N, C, D, H, W).

    size, scale_factor  one of them: an integer, a factor, or one for each spatial dimension
    mode           "nearest", "nearest-exact", "linear" (of 3 dimensions), "bilinear", "bicubic" (of
                   4), "trilinear" (of 5), "area": means of windows; nearest, bilinear and bicubic
                   also of uint8
    align_corners  True: the middles of the corner elements stay in place; else their edges do
    recompute_scale_factor  True: positions follow from the sizes, not from the given factor
    antialias      of bilinear and bicubic: shrunk images are smoothed

    >>> import tracejit
    >>> x = tracejit.tensor([[[0.0, 2.0]]])
    >>> tracejit.nn.functional.interpolate(x, scale_factor=2, mode="linear").tolist()
    [[[0.0, 0.5, 1.5, 2.0]]]

    ValueError if the options do not fit together, RuntimeError for empty images,
    NotImplementedError for other modes, dimensions and dtypes.
    """
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError("align_corners option can only be set with the interpolating modes: "
                         "linear | bilinear | bicubic | trilinear")
    out, factors = _sizes(input, size, scale_factor, bool(recompute_scale_factor))
    ndim = len(input.shape)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
                         "and requires a 4-D tensor as input")
    if mode == "area" and ndim in (3, 4, 5):
        return _AREA[ndim - 2](input, out)
    record = RECORDS.get((mode, ndim - 2, bool(antialias)))
    if record is None:
        raise _unsupported(ndim, mode)
    _check(input, out, mode, antialias)
    align, smoothed = bool(align_corners), bool(antialias)
    if input.dtype is uint8 and mode in ("bilinear", "bicubic"):
        down, across = (("fixed", *how) for how in _kinds(mode, align, smoothed, factors))
        wide = record(convert(input, float64), out=(input.shape[2], out[1]), how=(_KEPT, across))
        tall = record(_to_bytes(wide), out=out, how=(down, _KEPT))
        return convert(_to_bytes(tall), uint8)
    return record(input, out=out, how=_kinds(mode, align, smoothed, factors))


def _to_bytes(input: Any) -> Any:
    """Round to the nearest of 0 to 255, halves upward; still floats.

    Pillow and PyTorch round images of bytes so after each direction.
    """
    return clamp(floor(input + 0.5), 0, 255)


def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Any:  # fmt: skip
    """Call `interpolate` under its former name: (N, C, *) gives (N, C, *size).

    >>> import tracejit
    >>> tracejit.nn.functional.upsample(tracejit.ones(1, 1, 2), scale_factor=2).shape
    tracejit.Size([1, 1, 4])
    """
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` "
                  "instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Call `interpolate` with mode "nearest": (N, C, *) gives (N, C, *size).

    >>> import tracejit
    >>> tracejit.nn.functional.upsample_nearest(tracejit.tensor([[[1., 2.]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Call `interpolate` with mode "bilinear" and aligned corners: (N, C, H, W) gives (N, C,
    *size).

    >>> import tracejit
    >>> tracejit.nn.functional.upsample_bilinear(tracejit.tensor([[[[1., 2.]]]]), (1, 3)).flatten()
    tensor([1.0000, 1.5000, 2.0000])
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
