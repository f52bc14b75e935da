"""Discrete Fourier transforms: complex to complex, real to half of a complex one, and back.

In: tensors; attributes `dims` and `norm`. `norm` names the direction whose result is divided by the
number of points n: "backward" or "forward"; "ortho" divides both by its root. Out: tensors.

The array library computes three records. Each is linear. Its gradient, the adjoint, is the
transform in the other direction with the divisor at the same place. Other ops do what PyTorch's
functions do beyond that: cut, pad and conjugate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.creation import full_of, iota
from tracejit.core.ops.pointwise_complex import conj, real
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.rearranging import roll
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.slicing import slice_along, slice_backward_record
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    asked_dtype,
    dtype,
    float64,
    get_default_dtype,
)

_ADJOINT = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _resized_type(input: Any, kind: dtype, dim: int, size: Any) -> TensorType:
    shape = (*input.shape[:dim], size, *input.shape[dim + 1:])
    return TensorType(kind, shape, input.device)


# -- records ---------------------------------------------------------------------------------------
def _whole_array(xp: Any, input: Any, dims: tuple[int, ...], forward: bool, norm: str) -> Any:
    return (xp.fft.fftn if forward else xp.fft.ifftn)(input, axes=dims, norm=norm)


whole_record: Op = Op(
    "fft_c2c", "extern", ("input",), eager=_whole_array, node_name="FftC2CBackward0",
    infer=lambda input, dims, forward, norm: TensorType(
        input.dtype, tuple(input.shape), input.device),
    rules={"input": lambda grad, dims, forward, norm: whole_record(
        grad, dims=dims, forward=not forward, norm=_ADJOINT[norm])})


def _half_rule(grad: Any, input_type: TensorType, dims: tuple[int, ...], norm: str) -> Any:
    """Transform back with zeros for the half that was not computed: it has no gradient of its
    own."""
    last = dims[-1]
    whole = slice_backward_record(grad, size=input_type.shape[last], dim=last, start=0,
                                  stop=grad.shape[last], step=1)
    return real(whole_record(whole, dims=dims, forward=False, norm=_ADJOINT[norm]))


half_record: Op = Op(
    "fft_r2c", "extern", ("input",), node_name="FftR2CBackward0",
    eager=lambda xp, input, dims, norm: xp.fft.rfftn(input, axes=dims, norm=norm),
    infer=lambda input, dims, norm: _resized_type(
        input, input.dtype.to_complex(), dims[-1], input.shape[dims[-1]] // 2 + 1),
    rules={"input": _half_rule})


def _real_array(xp: Any, input: Any, dims: tuple[int, ...], count: int, norm: str) -> Any:
    sizes = [*(input.shape[d] for d in dims[:-1]), count]
    return xp.fft.irfftn(input, s=sizes, axes=dims, norm=norm)


def _real_rule(grad: Any, dims: tuple[int, ...], count: Any, norm: str) -> Any:
    """Transform forward, and double the points that stand for two.

    These are all but the first and, of an even count, the middle one.
    """
    half = half_record(grad, dims=dims, norm=_ADJOINT[norm])
    size = half.shape[dims[-1]]
    place = iota(size, grad)
    twice = (place >= 1) & (place <= count - size)
    after = (1,) * (len(half.shape) - 1 - dims[-1])
    return half * convert(where(twice, 2, 1), grad.dtype).reshape((size, *after))


real_record: Op = Op(
    "fft_c2r", "extern", ("input",), node_name="FftC2RBackward0", eager=_real_array,
    infer=lambda input, dims, count, norm: _resized_type(
        input, input.dtype.to_real(), dims[-1], count),
    rules={"input": _real_rule})


# -- arguments -------------------------------------------------------------------------------------
def _prepared(input: Any, to_complex: bool) -> Any:
    """Convert `input` to a dtype that is transformed: a floating point or a complex one."""
    d = input.dtype
    if d.category < FLOATING:
        d = get_default_dtype()
    if d.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {SCALAR_NAMES[d.name]}")
    return convert(input, d.to_complex() if to_complex else d)


def _of_real(input: Any, message: str) -> Any:
    if input.dtype.category == COMPLEX:
        raise RuntimeError(f"{message} {SCALAR_NAMES[input.dtype.name]}")
    return _prepared(input, False)


def _norm(norm: str | None) -> str:
    if norm is not None and norm not in _ADJOINT:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm or "backward"


def _dims(input: Any, s: Any, dim: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the dimensions to transform, and the number of points in each."""
    ndim = len(input.shape)
    asked = s if isinstance(s, Sequence) else (s,)
    sizes = None if s is None else [shapes.counted(as_size(n)) for n in asked]
    if dim is not None:
        given = tuple(dim) if isinstance(dim, Sequence) else (dim,)
        dims = tuple(shapes.normalize_dim(d, ndim) for d in given)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    elif sizes is not None and len(sizes) > ndim:
        raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {ndim} "
                           "dimensions.")
    else:
        dims = tuple(range(ndim - (ndim if sizes is None else len(sizes)), ndim))
    if sizes is not None and len(sizes) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    points = [input.shape[d] if sizes is None or type(sizes[k]) is int and sizes[k] == -1
              else sizes[k] for k, d in enumerate(dims)]
    return dims, points


def _check_points(points: Sequence[Any]) -> None:
    for n in points:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({shapes.hint(n)}) specified")


def _resized(input: Any, dims: Sequence[int], sizes: Sequence[Any]) -> Any:
    """Cut, or pad with zeros, at the end of each dimension."""
    for d, size in zip(dims, sizes):
        count = input.shape[d]
        if shapes.same_structure(count, size) or count == size:
            continue
        if size < count:
            input = slice_along(input, d, 0, size)
        else:
            input = slice_backward_record(input, size=size, dim=d, start=0, stop=count, step=1)
    return input


# -- transforms ------------------------------------------------------------------------------------
def _one(input: Any, n: Any, dim: int) -> tuple[Any, Any]:
    """Return `s` and `dim` of a transform along one dimension."""
    if not input.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if n is not None:
        _check_points((n,))
    return None if n is None else (n,), (dim,)


def transformed(input: Any, s: Any, dim: Any, norm: str | None, forward: bool) -> Any:
    """Return all points of a complex tensor's transform."""
    input = _prepared(input, True)
    dims, points = _dims(input, s, dim)
    _check_points(points)
    kind = _norm(norm)
    input = _resized(input, dims, points)
    return whole_record(input, dims=dims, forward=forward, norm=kind) if dims else input.clone()


def half_transformed(input: Any, s: Any, dim: Any, norm: str | None, name: str) -> Any:
    """Return the first half of a real tensor's forward transform: the other half mirrors it."""
    dims, points = _dims(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    _check_points(points)
    return half_record(_resized(input, dims, points), dims=dims, norm=_norm(norm))


def real_transformed(input: Any, s: Any, dim: Any, norm: str | None, name: str) -> Any:
    """Return the real tensor that has `input` as the first half of its forward transform."""
    input = _prepared(input, True)
    dims, points = _dims(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = None if s is None else (list(s) if isinstance(s, Sequence) else [s])[-1]
    if given is None or type(given) is int and given == -1:
        points[-1] = 2 * (input.shape[dims[-1]] - 1)
    _check_points(points)
    count, kind = points[-1], _norm(norm)
    input = _resized(input, dims, [*points[:-1], count // 2 + 1])
    return real_record(input, dims=dims, count=count, norm=kind)


@autocasts(cpu="float32")
def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Return the discrete Fourier transform along `dim` of a real or complex tensor: complex, n
    points.

    n     points: the input is cut to them, or padded with zeros; None: all there are
    norm  "backward" (None): as it is; "forward": divided by n; "ortho": by its root

    Point k is the sum of input[j] * exp(-2 pi i j k / n); other dimensions stay. RuntimeError for
    halves, and for no points.

    >>> import tracejit
    >>> tracejit.fft.fft(tracejit.tensor([1., 0., 0., 0.]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return transformed(input, *_one(input, n, dim), norm, True)


@autocasts(cpu="float32")
def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Invert `fft`: the same sum with conjugate roots, divided by n unless `norm` says otherwise.

    Complex, in the shape of `input` but for n along `dim`. Errors are those of `fft`.

    >>> import tracejit
    >>> tracejit.fft.ifft(tracejit.tensor([6., 0., 0.])).real
    tensor([2., 2., 2.])
    """
    return transformed(input, *_one(input, n, dim), norm, False)


@autocasts(cpu="float32")
def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Return the first n // 2 + 1 points of `fft` of a real tensor; the others are their
    conjugates. Other sizes stay.

    >>> import tracejit
    >>> tracejit.fft.rfft(tracejit.tensor([1., 2., 3.]))
    tensor([ 6.0000+0.0000j, -1.5000+0.8660j])
    """
    input = _of_real(input, "rfft expects a real input tensor, but got")
    return half_transformed(input, *_one(input, n, dim), norm, "rfft")


@autocasts(cpu="float32")
def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Invert `rfft`: n real points along `dim`; without `n` an even number, 2 * (size - 1). Other
    sizes stay.

    >>> import tracejit
    >>> tracejit.fft.irfft(tracejit.tensor([1., 1., 1.]))
    tensor([1., 0., 0., 0.])
    """
    return real_transformed(input, *_one(input, n, dim), norm, "irfft")


@autocasts(cpu="float32")
def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Apply `fft` to a tensor with `input` as first half and its conjugate as the other.

    The result is real, with n points along `dim`: 2 * (size - 1) unless told. Other sizes stay.

    >>> import tracejit
    >>> tracejit.fft.hfft(tracejit.tensor([1., 1., 1.]))
    tensor([4., 0., 0., 0.])
    """
    # hfft is irfft of the conjugate, with the divisor of the other direction.
    return real_transformed(conj(input), *_one(input, n, dim), _ADJOINT[_norm(norm)], "hfft")


@autocasts(cpu="float32")
def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """Invert `hfft`: n // 2 + 1 complex points along `dim` of a real tensor. Other sizes stay.

    >>> import tracejit
    >>> tracejit.fft.ihfft(tracejit.tensor([4., 0., 0., 0.])).real
    tensor([1., 1., 1.])
    """
    input = _of_real(input, "ihfft expects a real input tensor, but got")
    return conj(half_transformed(input, *_one(input, n, dim), _ADJOINT[_norm(norm)], "ihfft"))


@autocasts(cpu="float32")
def fftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Apply `fft` along several dimensions: those of `dim`, else as many last ones as `s` has, else
    all.

    >>> import tracejit
    >>> tracejit.fft.fftn(tracejit.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return transformed(input, s, dim, norm, True)


@autocasts(cpu="float32")
def ifftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Invert `fftn`: `ifft` along each dimension of `dim`; complex, in the same shape unless `s`
    tells sizes.

    >>> import tracejit
    >>> tracejit.fft.ifftn(tracejit.fft.fftn(tracejit.eye(2))).real
    tensor([[1., 0.],
            [0., 1.]])
    """
    return transformed(input, s, dim, norm, False)


@autocasts(cpu="float32")
def rfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Apply `fftn` to a real tensor: the first half of the points, n // 2 + 1, of the last
    dimension.

    >>> import tracejit
    >>> tracejit.fft.rfftn(tracejit.ones(4, 4)).shape
    tracejit.Size([4, 3])
    """
    input = _of_real(input, "rfftn expects a real-valued input tensor, but got")
    return half_transformed(input, s, dim, norm, "rfftn")


@autocasts(cpu="float32")
def irfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Invert `rfftn`: a real tensor whose last dimension has n points, 2 * (size - 1) unless `s`
    tells.

    >>> import tracejit
    >>> tracejit.fft.irfftn(tracejit.fft.rfftn(tracejit.ones(4, 4))).shape
    tracejit.Size([4, 4])
    """
    return real_transformed(input, s, dim, norm, "irfftn")


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Apply `hfft` along the last of several dimensions, and `fft` along the others: real.

    >>> import tracejit
    >>> tracejit.fft.hfftn(tracejit.ones(4, 3)).shape
    tracejit.Size([4, 4])
    """
    return real_transformed(conj(input), s, dim, _ADJOINT[_norm(norm)], "hfftn")


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """Invert `hfftn`: complex, with n // 2 + 1 points in the last dimension.

    >>> import tracejit
    >>> tracejit.fft.ihfftn(tracejit.ones(4, 4)).shape
    tracejit.Size([4, 3])
    """
    input = _of_real(input, "Only supports floating-point dtypes, but found:")
    return conj(half_transformed(input, s, dim, _ADJOINT[_norm(norm)], "ihfftn"))


@autocasts(cpu="float32")
def fft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Apply `fftn` along two dimensions, the last unless told; complex, in the same shape.

    >>> import tracejit
    >>> tracejit.fft.fft2(tracejit.eye(2)).real
    tensor([[2., 0.],
            [0., 2.]])
    """
    return fftn(input, s, dim, norm)


@autocasts(cpu="float32")
def ifft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Apply `ifftn` along two dimensions, the last unless told; complex, in the same shape.

    >>> import tracejit
    >>> tracejit.fft.ifft2(tracejit.fft.fft2(tracejit.eye(2))).real
    tensor([[1., 0.],
            [0., 1.]])
    """
    return ifftn(input, s, dim, norm)


@autocasts(cpu="float32")
def rfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Apply `rfftn` along two dimensions, the last unless told: (*, H, W // 2 + 1).

    >>> import tracejit
    >>> tracejit.fft.rfft2(tracejit.ones(4, 4)).shape
    tracejit.Size([4, 3])
    """
    return rfftn(input, s, dim, norm)


@autocasts(cpu="float32")
def irfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Apply `irfftn` along two dimensions, the last unless told: real, (*, H, 2 * (W - 1)) unless
    `s` tells.

    >>> import tracejit
    >>> tracejit.fft.irfft2(tracejit.fft.rfft2(tracejit.ones(4, 4))).shape
    tracejit.Size([4, 4])
    """
    return irfftn(input, s, dim, norm)


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Apply `hfftn` along two dimensions, the last unless told: real, (*, H, 2 * (W - 1)) unless
    `s` tells.

    >>> import tracejit
    >>> tracejit.fft.hfft2(tracejit.ones(4, 3)).shape
    tracejit.Size([4, 4])
    """
    return hfftn(input, s, dim, norm)


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """Apply `ihfftn` along two dimensions, the last unless told: (*, H, W // 2 + 1).

    >>> import tracejit
    >>> tracejit.fft.ihfft2(tracejit.ones(4, 4)).shape
    tracejit.Size([4, 3])
    """
    return ihfftn(input, s, dim, norm)


# -- frequencies -----------------------------------------------------------------------------------
def _frequencies(name: str, numbers: Any, n: Any, d: float, dtype: dtype | None,
                 requires_grad: bool) -> Any:
    kind = asked_dtype(dtype) or get_default_dtype()
    if kind.category < FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    count = full_of(numbers, (), 1.0, float64) * n  # no number: n may be symbolic
    made = convert(numbers, kind) * convert(1.0 / (count * d), kind)
    return made.requires_grad_() if requires_grad else made


def fftfreq(n: int, d: float = 1.0, *, dtype: dtype | None = None, device: Any = None,
            requires_grad: bool = False) -> Any:
    """Return the frequencies (n,) of the points of `fft`, in cycles per unit of `d`, the distance
    of samples.

    >>> import tracejit
    >>> tracejit.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    place = iota(n, device=device)
    signed = where(place < (n + 1) // 2, place, place - n)
    return _frequencies("fftfreq", signed, n, d, dtype, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: dtype | None = None, device: Any = None,
             requires_grad: bool = False) -> Any:
    """Return the frequencies of the points of `rfft`, a vector of n // 2 + 1, in cycles per unit of
    `d`, the distance of samples.

    >>> import tracejit
    >>> tracejit.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    place = iota(n // 2 + 1, device=device)
    return _frequencies("rfftfreq", place, n, d, dtype, requires_grad)


def _shifted(input: Any, dim: Any, by: Any) -> Any:
    ndim = len(input.shape)
    dims = range(ndim) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    places = [shapes.normalize_dim(d, ndim) for d in dims]
    return roll(input, [by(input.shape[k]) for k in places], places)


def fftshift(input: Any, dim: Any = None) -> Any:
    """Put the points in the order of their frequencies, 0 in the middle, along `dim` (None: all);
    same shape.

    >>> import tracejit
    >>> tracejit.fft.fftshift(tracejit.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """Invert `fftshift`: 0 comes first along `dim` (None: all dimensions); same shape.

    >>> import tracejit
    >>> tracejit.fft.ifftshift(tracejit.fft.fftshift(tracejit.fft.fftfreq(4)))
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _shifted(input, dim, lambda n: (n + 1) // 2)
