"""Complex numbers: their parts, magnitudes and angles, and tensors of pairs as complex tensors.

In: tensors. Out: tensors; `real`, `imag`, `view_as_real` and `view_as_complex` are views. Called by
users and by the functions of a variable that differ for complex numbers (abs, sgn). `cotangents`,
which conjugates gradients, calls them, too.

Gradients follow PyTorch: that of a real loss with respect to z = x + iy is dL/dx + i dL/dy. The
functions here are not analytic, so their rules are right as they are (`Op.adjoint`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.movement import transpose, typed
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert, device_of, must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    float32,
    float64,
)


def _like(input: Any) -> TensorType:
    return typed(input, input.shape)


def _real_like(input: Any) -> TensorType:
    return TensorType(input.dtype.to_real(), tuple(input.shape), input.device)


# -- conjugates ------------------------------------------------------------------------------------
conj_record: Op = Op(
    "conj", "pointwise", ("input",), infer=_like, eager=lambda xp, input: xp.conjugate(input),
    rules={"input": lambda grad: conj_record(grad)}, adjoint=True)


@method()
def conj(input: Any) -> Any:
    """Return the complex conjugate, computed at once; a real tensor itself.

    >>> import tracejit
    >>> tracejit.tensor([1 + 2j]).conj()
    tensor([1.-2.j])
    """
    return conj_record(input) if input.dtype.category == COMPLEX else input


@method()
def conj_physical(input: Any) -> Any:
    """Return the complex conjugate, in the same shape; a real tensor itself.

    >>> import tracejit
    >>> tracejit.conj_physical(tracejit.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conj(input)


@method()
def is_conj(input: Any) -> bool:
    """Return False for every shape and dtype: conjugates are computed at once.

    >>> import tracejit
    >>> tracejit.is_conj(tracejit.tensor([1 + 2j]).conj())
    False
    """
    return False


@method("adjoint")
def adjoint(input: Any) -> Any:
    """Exchange the last two dimensions and conjugate: (*, m, n) gives (*, n, m). Without
    dimensions, only conjugate.

    RuntimeError for a tensor of one dimension.

    >>> import tracejit
    >>> tracejit.adjoint(tracejit.tensor([[1j, 2]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return conj(input) if not input.shape else conj(_matrices(input, "adjoint()"))


def _matrices(input: Any, name: str) -> Any:
    if len(input.shape) < 2:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. "
                           f"Got {len(input.shape)}-D tensor.")
    return transpose(input, -2, -1)


def _mH(input: Any) -> Any:
    """Return `adjoint`, as an attribute: (*, m, n) gives (*, n, m).

    >>> import tracejit
    >>> tracejit.tensor([[1j, 2]]).mH
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return conj(input) if not input.shape else conj(_matrices(input, "mH"))


def _H(input: Any) -> Any:
    """Return the conjugate transpose of a matrix (m, n): (n, m). RuntimeError for other dimensions.

    >>> import tracejit
    >>> tracejit.tensor([[1j, 2]]).H
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    ndim = len(input.shape)
    if ndim not in (0, 2):
        more = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError("tensor.H is only supported on matrices (2-D tensors). Got "
                           f"{ndim}-D tensor.{more}")
    return _mH(input)


Operators.mH = property(_mH)  # type: ignore[attr-defined]
Operators.H = property(_H)  # type: ignore[attr-defined]


# -- parts, as views -------------------------------------------------------------------------------
real_record: Op = Op(
    "real", "movement", ("input",), views=True, infer=_real_like,
    view_inverse=lambda base, src: complex_record(src, imag_record(base)),
    eager=lambda xp, input: input.real,
    rules={"input": lambda grad, input_type: convert(grad, input_type.dtype)}, adjoint=True)

imag_record: Op = Op(
    "imag", "movement", ("input",), views=True, infer=_real_like,
    view_inverse=lambda base, src: complex_record(real_record(base), src),
    eager=lambda xp, input: input.imag,
    rules={"input": lambda grad: complex_record(grad * 0, grad)}, adjoint=True)


def pairs(xp: Any, input: Any) -> Any:
    """View a complex array as an array of pairs of real numbers, over the same memory."""
    if input.flags.c_contiguous and input.ndim:
        return input.view(input.real.dtype).reshape((*input.shape, 2))
    part = input.real
    return xp.lib.stride_tricks.as_strided(
        part, (*part.shape, 2), (*part.strides, part.dtype.itemsize))


def _ofpairs(xp: Any, input: Any) -> Any:
    target = np.dtype(f"c{2 * input.dtype.itemsize}")
    if input.ndim and not _in_pairs(input, input.dtype.itemsize):
        input = xp.ascontiguousarray(input)
    return input.view(target)[..., 0]


def _in_pairs(array: Any, step: int) -> bool:
    return array.strides[-1] == step and array.size > 0


view_as_real_record: Op = Op(
    "view_as_real", "movement", ("input",), views=True,
    view_inverse=lambda base, src: complex_record(src.select(-1, 0), src.select(-1, 1)),
    infer=lambda input: TensorType(input.dtype.to_real(), (*input.shape, 2), input.device),
    eager=pairs,
    rules={"input": lambda grad: complex_record(grad.select(-1, 0), grad.select(-1, 1))},
    adjoint=True)

view_as_complex_record: Op = Op(
    "view_as_complex", "movement", ("input",), views=True,
    view_inverse=lambda base, src: view_as_real_record(src),
    infer=lambda input: TensorType(input.dtype.to_complex(), tuple(input.shape[:-1]),
                                   input.device),
    eager=_ofpairs,
    rules={"input": lambda grad: view_as_real_record(grad)}, adjoint=True)


def real(input: Any) -> Any:
    """Return the real parts, a view of the same shape; a real tensor itself.

    >>> import tracejit
    >>> tracejit.real(tracejit.tensor([1 + 2j]))
    tensor([1.])
    """
    return real_record(input) if input.dtype.category == COMPLEX else input


def imag(input: Any) -> Any:
    """Return the imaginary parts, a view of the same shape. RuntimeError for real tensors.

    >>> import tracejit
    >>> tracejit.imag(tracejit.tensor([1 + 2j]))
    tensor([2.])
    """
    if input.dtype.category != COMPLEX:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_record(input)


def _set_real(self: Any, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Any, value: Any) -> None:
    imag(self).copy_(value)


Operators.real = property(real, _set_real)  # type: ignore[attr-defined]
Operators.imag = property(imag, _set_imag)  # type: ignore[attr-defined]


def view_as_real(input: Any) -> Any:
    """View a complex tensor of shape (...) as a real one of shape (..., 2).

    >>> import tracejit
    >>> tracejit.view_as_real(tracejit.tensor([1 + 2j]))
    tensor([[1., 2.]])

    RuntimeError for real tensors.
    """
    if input.dtype.category != COMPLEX:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return view_as_real_record(input)


@autocasts(cpu="float32")
def view_as_complex(input: Any) -> Any:
    """View a float32 or float64 tensor of shape (..., 2) as a complex one of shape (...).

    >>> import tracejit
    >>> tracejit.view_as_complex(tracejit.tensor([[1., 2.]]))
    tensor([1.+2.j])

    RuntimeError if the last dimension has not size 2 and stride 1, or another stride is odd.
    """
    if input.dtype not in (float32, float64):
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, "
                           "but got a tensor of scalar type: "
                           f"{SCALAR_NAMES[input.dtype.name]}")
    if not input.shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if not shapes.equal(input.shape[-1], 2):
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if hasattr(input, "stride"):
        _check_pairs(input)
    return view_as_complex_record(input)


def _check_pairs(input: Any) -> None:
    """Raise RuntimeError if pairs do not lie as complex numbers do."""
    if input.storage_offset() % 2 != 0:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    if input.is_contiguous():
        return
    *others, last = input.stride()
    if last != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 != 0 for step in others):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")


# -- from parts ------------------------------------------------------------------------------------
def _complex_array(xp: Any, real: Any, imag: Any) -> Any:
    whole = xp.empty(np.broadcast_shapes(real.shape, imag.shape),
                     np.dtype(f"c{2 * real.dtype.itemsize}"))
    whole.real, whole.imag = real, imag
    return whole


complex_record: Op = Op(
    "complex", "pointwise", ("real", "imag"), adjoint=True,
    infer=lambda real, imag: TensorType(
        real.dtype.to_complex(), shapes.broadcast(real.shape, imag.shape), device_of((real, imag))),
    eager=_complex_array,
    rules={"real": lambda grad: real_record(grad), "imag": lambda grad: imag_record(grad)})


def _two_reals(first: Any, second: Any) -> None:
    names = [SCALAR_NAMES[x.dtype.name] for x in (first, second)]
    if any(x.dtype not in (float32, float64) for x in (first, second)):
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{names[0]} and {names[1]}")
    if names[0] != names[1]:
        raise RuntimeError(f"Expected object of scalar type {names[0]} but got scalar type "
                           f"{names[1]} for second argument")


def complex(real: Any, imag: Any) -> Any:
    """Return real + i * imag, of two float32 or two float64 tensors, which broadcast.

    >>> import tracejit
    >>> tracejit.complex(tracejit.tensor([1., 2.]), tracejit.tensor([3., 4.]))
    tensor([1.+3.j, 2.+4.j])

    RuntimeError for other dtypes, or two different ones.
    """
    must_be_tensors("complex", ("real", "imag"), (real, imag))
    _two_reals(real, imag)
    return complex_record(real, imag)


def _polar_body(abs: Any, angle: Any) -> Any:
    return complex_record(abs * angle.cos(), abs * angle.sin())


polar_record: Op = Op(
    "polar", "composite", ("abs", "angle"), infer=complex_record.infer, body=_polar_body,
    adjoint=True,
    rules={"abs": lambda grad, angle: real_record(grad * conj(_polar_body(1, angle))),
           "angle": lambda grad, out: imag_record(conj(out) * grad)})


@autocasts(cpu="float32")
def polar(abs: Any, angle: Any) -> Any:
    """Return abs * exp(i * angle), of two float32 or two float64 tensors, which broadcast.

    >>> import tracejit
    >>> tracejit.polar(tracejit.tensor([2.]), tracejit.tensor([0.]))
    tensor([2.+0.j])

    RuntimeError for other dtypes, or two different ones.
    """
    must_be_tensors("polar", ("abs", "angle"), (abs, angle))
    _two_reals(abs, angle)
    return polar_record(abs, angle)


# -- magnitude and angle ---------------------------------------------------------------------------
magnitude: Op = Op(
    "magnitude", "pointwise", ("input",), infer=_real_like,
    eager=lambda xp, input: xp.abs(input), node_name="AbsBackward0", adjoint=True,
    rules={"input": lambda grad, input: grad * unit(input)})


def _unit_array(xp: Any, input: Any) -> Any:
    size = xp.abs(input)
    return xp.where(size == 0, input.dtype.type(0), input / xp.where(size == 0, 1, size))


def _unit_rule(grad: Any, input: Any, out: Any) -> Any:
    """Return the part of `grad` that is along the circle, over the magnitude."""
    size = magnitude(input)
    across = grad - out * real_record(conj(out) * grad)
    return where(size == 0, 0, across / where(size == 0, 1, size))


unit: Op = Op(
    "unit", "pointwise", ("input",), infer=_like, eager=_unit_array, node_name="SgnBackward0",
    adjoint=True, rules={"input": _unit_rule})


def _angle_array(xp: Any, input: Any) -> Any:
    if input.dtype.kind == "c":
        return xp.arctan2(input.imag, input.real)
    turned = xp.where(input < 0, input.dtype.type(math.pi), input.dtype.type(0))
    return xp.where(input != input, input, turned)


def _angle_rule(grad: Any, input: Any) -> Any:
    if input.dtype.category != COMPLEX:
        return grad * 0
    x, y = real_record(input), imag_record(input)
    squared = x * x + y * y
    slope = grad / where(squared == 0, 1, squared)
    return where(squared == 0, 0, complex_record(-y * slope, x * slope))


angle_record: Op = Op(
    "angle", "pointwise", ("input",), infer=_real_like, eager=_angle_array, adjoint=True,
    rules={"input": _angle_rule})


@method()
def angle(input: Any) -> Any:
    """Return the angle in (-pi, pi], in radians and the same shape; of a real number 0 or pi.

    >>> import tracejit
    >>> tracejit.angle(tracejit.tensor([1j, -1]))
    tensor([1.5708, 3.1416])
    """
    if input.dtype.category < FLOATING:
        input = convert(input, float32)
    return angle_record(input)


def is_complex(input: Any) -> bool:
    """Return True if the dtype of `input`, of any shape, is complex.

    >>> import tracejit
    >>> tracejit.is_complex(tracejit.tensor([1j]))
    True
    """
    return bool(input.dtype.is_complex)


@method()
def isreal(input: Any) -> Any:
    """Return True where the imaginary part is 0; bools in the same shape.

    >>> import tracejit
    >>> tracejit.isreal(tracejit.tensor([1j, 1]))
    tensor([False,  True])
    """
    return imag(input) == 0 if input.dtype.category == COMPLEX else (
        (input == input) | (input != input))
