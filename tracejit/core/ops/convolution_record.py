"""Sums of products over windows: a convolution and its two gradients, as three records.

In: images (N, C, *spatial), weights (O, C / groups, *kernel), one to three spatial dimensions.
Out: `conv` gives (N, O, *windows); `conv_input` what each input element contributed to (a
transposed convolution), `conv_weight` what each weight did. Each is linear in both operands and its
gradients are the other two, so that there are derivatives of every order. Called by
`convolution.py`.

float32 and float64 on the CPU are computed by library kernels. All else calls the array library:
the windows of one image are copied into a matrix, which meets BLAS. Halves are computed in float32
and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tracejit.core.ops.array_sums import in_parts
from tracejit.core.ops.pointwise_record import device_of
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import same_structure
from tracejit.core.ops.types import TensorType, bfloat16, float16

_HALVES = (float16.numpy, bfloat16.numpy)


def windows_of(
    sizes: Sequence[Any], kernel: Sequence[Any], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[Any, ...]:  # fmt: skip
    """Return the number of windows that fit along each dimension."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation)
    )


def _conv_type(
    input: Any, weight: Any, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> TensorType:
    out = windows_of(input.shape[2:], weight.shape[2:], stride, padding, dilation)
    shape = (input.shape[0], weight.shape[0], *out)
    return TensorType(input.dtype, shape, device_of((input, weight)))


def _input_type(
    input: Any, weight: Any, sizes: tuple, stride: tuple, padding: tuple, dilation: tuple,
    groups: int,
) -> TensorType:  # fmt: skip
    shape = (input.shape[0], weight.shape[1] * groups, *sizes)
    return TensorType(input.dtype, shape, device_of((input, weight)))


def _weight_type(
    input: Any, other: Any, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
    groups: int,
) -> TensorType:  # fmt: skip
    shape = (other.shape[1], input.shape[1] // groups, *kernel)
    return TensorType(input.dtype, shape, device_of((input, other)))


# -- on arrays -------------------------------------------------------------------------------------
def _wide(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype in _HALVES else x


def _padded(xp: Any, x: Any, padding: Sequence[int]) -> Any:
    if not any(padding):
        return x
    sizes = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding))
    result = xp.zeros((*x.shape[:2], *sizes), x.dtype)
    result[_inside(x.shape[2:], padding)] = x
    return result


def _inside(sizes: Sequence[int], padding: Sequence[int]) -> tuple:
    return (..., *(slice(p, p + n) for n, p in zip(sizes, padding)))


def _columns(
    xp: Any, x: Any, kernel: tuple, out: tuple, stride: tuple, padding: tuple, dilation: tuple,
    groups: int,
) -> Iterator[Any]:  # fmt: skip
    """Yield each image's windows as (groups, channels of a group * kernel, windows).

    `out` is the number of windows along each dimension; more may fit. Each result is valid until
    the next.
    """
    x = _padded(xp, x, padding)
    n, channels = x.shape[:2]
    spatial = x.strides[2:]
    windows = xp.lib.stride_tricks.as_strided(
        x,
        (n, channels, *kernel, *out),
        (*x.strides[:2], *(a * d for a, d in zip(spatial, dilation)),
         *(a * s for a, s in zip(spatial, stride))),
    )  # fmt: skip
    matrix = groups, channels // groups * math.prod(kernel), math.prod(out)
    columns = xp.empty((channels, *kernel, *out), x.dtype)
    for image in windows:
        columns[...] = image
        yield columns.reshape(matrix)


def _matrices(weight: Any, groups: int) -> Any:
    """Reshape weights to (groups, outputs of a group, inputs of a group * kernel)."""
    outputs, inputs, *kernel = weight.shape
    return weight.reshape(groups, outputs // groups, inputs * math.prod(kernel))


def _conv_array(
    xp: Any, input: Any, weight: Any, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> Any:
    result = input.dtype
    input, weight = _wide(input), _wide(weight)
    kernel = weight.shape[2:]
    out = windows_of(input.shape[2:], kernel, stride, padding, dilation)
    y = xp.empty((input.shape[0], weight.shape[0], *out), input.dtype)
    matrices = _matrices(weight, groups)
    images = y.reshape(y.shape[0], groups, y.shape[1] // groups, math.prod(out))
    columns = _columns(xp, input, kernel, out, stride, padding, dilation, groups)
    for image, column in zip(images, columns):
        xp.matmul(matrices, column, out=image)
    return y.astype(result, copy=False)


def _input_array(
    xp: Any, input: Any, weight: Any, sizes: tuple, stride: tuple, padding: tuple,
    dilation: tuple, groups: int,
) -> Any:  # fmt: skip
    result = input.dtype
    input, weight = _wide(input), _wide(weight)
    kernel, out = weight.shape[2:], input.shape[2:]
    channels = weight.shape[1] * groups
    whole = tuple(n + 2 * p for n, p in zip(sizes, padding))
    x = xp.zeros((input.shape[0], channels, *whole), input.dtype)
    turned = _matrices(weight, groups).transpose(0, 2, 1)
    images = input.reshape(
        input.shape[0], groups, input.shape[1] // groups, math.prod(out)
    )
    for image, summed in zip(images, x):
        columns = xp.matmul(turned, image).reshape(channels, *kernel, *out)
        for position in product(*map(range, kernel)):
            start = [k * d for k, d in zip(position, dilation)]
            reached = tuple(
                slice(a, a + s * (n - 1) + 1, s) for a, s, n in zip(start, stride, out)
            )
            summed[(slice(None), *reached)] += columns[(slice(None), *position)]
    return xp.ascontiguousarray(x[_inside(sizes, padding)]).astype(result, copy=False)


def _weight_array(
    xp: Any, input: Any, other: Any, kernel: tuple, stride: tuple, padding: tuple,
    dilation: tuple, groups: int,
) -> Any:  # fmt: skip
    result = input.dtype
    input, other = _wide(input), _wide(other)
    outputs, inputs = other.shape[1], input.shape[1] // groups
    out = other.shape[2:]
    images = other.reshape(other.shape[0], groups, outputs // groups, math.prod(out))
    wide = xp.complex128 if input.dtype.kind == "c" else xp.float64
    # A sum over all images and windows loses digits in float32.
    total = xp.zeros((groups, outputs // groups, inputs * math.prod(kernel)), wide)
    columns = _columns(xp, input, kernel, out, stride, padding, dilation, groups)
    for image, column in zip(images, columns):
        total += in_parts(xp.matmul, image, column.transpose(0, 2, 1))
    return total.reshape(outputs, inputs, *kernel).astype(result, copy=False)


# -- records ---------------------------------------------------------------------------------------
def _to_input(grad: Any, weight: Any, input_type: TensorType, stride: tuple, padding: tuple,
              dilation: tuple, groups: int) -> Any:  # fmt: skip
    return conv_input_record(grad, weight, sizes=tuple(input_type.shape[2:]), stride=stride,
                             padding=padding, dilation=dilation, groups=groups)  # fmt: skip


def _to_weight(grad: Any, input: Any, weight_type: TensorType, stride: tuple, padding: tuple,
               dilation: tuple, groups: int) -> Any:  # fmt: skip
    return conv_weight_record(input, grad, kernel=tuple(weight_type.shape[2:]), stride=stride,
                              padding=padding, dilation=dilation, groups=groups)  # fmt: skip


def _to_windows(grad: Any, weight: Any, like: TensorType, stride: tuple, padding: tuple,
                dilation: tuple, groups: int) -> Any:  # fmt: skip
    """Apply `conv`, cut to the windows of `like`: a transposed convolution may leave room for
    more."""
    result = conv_record(grad, weight, stride=stride, padding=padding, dilation=dilation,
                         groups=groups)  # fmt: skip
    for dim in range(2, len(like.shape)):
        if not same_structure(result.shape[dim], like.shape[dim]):
            result = result.narrow(dim, 0, like.shape[dim])
    return result


conv_record: Op = Op(
    "conv", "extern", ("input", "weight"), infer=_conv_type, eager=_conv_array,
    library=True,
    rules={"input": _to_input, "weight": _to_weight},
)  # fmt: skip

conv_input_record: Op = Op(
    "conv_input", "extern", ("input", "weight"), infer=_input_type, eager=_input_array,
    library=True,
    rules={
        "input": lambda grad, weight, input_type, stride, padding, dilation, groups: _to_windows(
            grad, weight, input_type, stride, padding, dilation, groups
        ),
        "weight": lambda grad, input, weight_type, stride, padding, dilation, groups: _to_weight(
            input, grad, weight_type, stride, padding, dilation, groups
        ),
    },
)  # fmt: skip

conv_weight_record: Op = Op(
    "conv_weight", "extern", ("input", "other"), infer=_weight_type, eager=_weight_array,
    library=True,
    rules={
        "input": lambda grad, other, input_type, stride, padding, dilation, groups: _to_input(
            other, grad, input_type, stride, padding, dilation, groups
        ),
        "other": lambda grad, input, other_type, stride, padding, dilation, groups: _to_windows(
            input, grad, other_type, stride, padding, dilation, groups
        ),
    },
)  # fmt: skip
