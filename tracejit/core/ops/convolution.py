"""Convolutions in one to three dimensions, and their transposes.

In: (N, C, *spatial) or (C, *spatial), weights, an optional bias; integers or one per dimension.
Out: floating tensors of as many dimensions. Called by users as `nn.functional.conv*`, by `nn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, widened
from tracejit.core.ops.convolution_record import (
    conv_input_record,
    conv_record,
)
from tracejit.core.ops.padding import pad
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import SCALAR_NAMES


# -- one node with its bias ------------------------------------------------------------------------
def _with_bias(record: Op, input: Any, weight: Any, bias: Any, attributes: Any) -> Any:
    if bias is None:
        return record(input, weight, **attributes)
    result = record(widened(input), widened(weight), **attributes)
    return convert(result + _per_channel(widened(bias), result), input.dtype)


def _per_channel(bias: Any, result: Any) -> Any:
    return bias.reshape((-1, *(1,) * (len(result.shape) - 2)))


def _bias_rule(grad: Any) -> Any:
    return grad.sum((0, *range(2, len(grad.shape))))


def _body(input: Any, weight: Any, bias: Any, **attributes: Any) -> Any:
    return _with_bias(conv_record, input, weight, bias, attributes)


def _transposed_body(input: Any, weight: Any, bias: Any, **attributes: Any) -> Any:
    result = conv_input_record(input, weight, **attributes)
    # PyTorch rounds halves before it adds the bias here.
    return result if bias is None else result + _per_channel(bias, result)


convolution_record = composite(
    "convolution", ("input", "weight", "bias"), _body,
    infer=lambda input, weight, bias, **attributes: conv_record.infer(input, weight, **attributes),
    input=conv_record.rules["input"], weight=conv_record.rules["weight"], bias=_bias_rule,
)  # fmt: skip

transposed_record = composite(
    "conv_transpose", ("input", "weight", "bias"), _transposed_body,
    infer=lambda input, weight, bias, **attributes: conv_input_record.infer(
        input, weight, **attributes
    ),
    node_name="ConvolutionBackward0",
    input=conv_input_record.rules["input"], weight=conv_input_record.rules["weight"],
    bias=_bias_rule,
)  # fmt: skip


# -- checks ----------------------------------------------------------------------------------------
def per_dimension(value: Any, count: int, what: str) -> tuple[int, ...]:
    """Return an integer for each of `count` dimensions, from one or as many."""
    given = tuple(map(as_size, value)) if isinstance(value, (tuple, list)) else (as_size(value),)
    if len(given) == 1:
        return given * count
    if len(given) != count:
        raise RuntimeError(
            f"expected {what} to be a single integer value or a list of {count} values to match "
            f"the convolution dimensions, but got {what}={list(given)}"
        )
    return given


def _check_types(input: Any, weight: Any, bias: Any) -> None:
    if weight.dtype is not input.dtype:
        wanted, found = (SCALAR_NAMES[x.dtype.name] for x in (input, weight))
        raise RuntimeError(f"expected scalar type {wanted} but found {found}")
    if bias is not None and bias.dtype is not input.dtype:
        names = [SCALAR_NAMES[x.dtype.name].lower() for x in (input, bias)]
        raise RuntimeError(
            f"Input type ({names[0]}) and bias type ({names[1]}) should be the same"
        )


def _check_numbers(stride: tuple, padding: tuple, dilation: tuple, groups: int) -> None:
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_shapes(input: Any, weight: Any, bias: Any, groups: int, transposed: bool) -> None:
    """Check that the channels of batched `input` (N, C, ...), weight and bias agree."""
    if len(weight.shape) != len(input.shape):
        rank = len(weight.shape)
        raise RuntimeError(
            f"Expected {rank}-dimensional input for {rank}-dimensional weight"
            f"{shapes.shape_text(weight.shape)}, but got {len(input.shape)}-dimensional input of "
            f"size {shapes.shape_text(input.shape)} instead"
        )
    kind = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    size = shapes.shape_text(weight.shape)
    rows = weight.shape[0]
    if rows < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {size} instead"
        )
    if rows % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{size}] instead"
        )
    channels = rows if transposed else weight.shape[1] * groups
    shapes.same(
        input.shape[1], channels,
        f"Given {kind}, weight of size {size}, expected input{shapes.shape_text(input.shape)} to "
        f"have {shapes.hint(channels)} channels, but got {shapes.hint(input.shape[1])} channels "
        "instead",
    )  # fmt: skip
    outputs = weight.shape[1] * groups if transposed else rows
    if bias is not None and (len(bias.shape) != 1 or not shapes.equal(bias.shape[0], outputs)):
        kind = f"{kind}, weight" if transposed else "weight"
        raise RuntimeError(
            f"Given {kind} of size {size}, expected bias to be 1-dimensional with "
            f"{shapes.hint(outputs)} elements, but got bias of size "
            f"{shapes.shape_text(bias.shape)} instead"
        )


def _check_kernel(sizes: Sequence[Any], kernel: Sequence[Any], padding: tuple,
                  dilation: tuple) -> None:  # fmt: skip
    padded = [n + 2 * p for n, p in zip(sizes, padding)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    if any(n < r for n, r in zip(padded, reach)):
        texts = [" x ".join(str(shapes.hint(n)) for n in each) for each in (padded, reach)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({texts[0]}). Kernel size: ({texts[1]}). "
            "Kernel size can't be greater than actual input size"
        )


def _batched(name: str, count: int, input: Any) -> Any:
    """Return `input` as (N, C, *spatial)."""
    ndim = len(input.shape)
    if ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {shapes.shape_text(input.shape)}"
        )
    return input if ndim == count + 2 else input.unsqueeze(0)


# -- what users call -------------------------------------------------------------------------------
def _same(input: Any, kernel: Sequence[Any], stride: tuple, dilation: tuple) -> tuple[Any, tuple]:
    """Return the input and the padding that give as many windows as elements."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    more = [n % 2 for n in total]
    if any(more):  # one more at the end
        input = pad(input, [x for extra in reversed(more) for x in (0, extra)])
    return input, tuple(n // 2 for n in total)


def _convolve(
    count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    groups: int,
) -> Any:  # fmt: skip
    images = _batched(f"conv{count}d", count, input)
    _check_types(input, weight, bias)
    dimensions = len(weight.shape) - 2
    stride, dilation = (
        per_dimension(value, dimensions, what)
        for value, what in ((stride, "stride"), (dilation, "dilation"))
    )
    kernel = weight.shape[2:]
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        images, padding = (
            _same(images, kernel, stride, dilation) if padding == "same" else (images, (0,) * count)
        )
    padding = per_dimension(padding, dimensions, "padding")
    _check_numbers(stride, padding, dilation, groups)
    _check_shapes(images, weight, bias, groups, transposed=False)
    _check_kernel(images.shape[2:], kernel, padding, dilation)
    result = apply(
        convolution_record, (images, weight, bias),
        {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups},
    )  # fmt: skip
    return result if len(input.shape) == count + 2 else result.squeeze(0)


def _transpose(
    count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Any:  # fmt: skip
    images = _batched(f"conv_transpose{count}d", count, input)
    _check_types(input, weight, bias)
    stride, padding, output_padding, dilation = (
        per_dimension(value, len(weight.shape) - 2, what)
        for value, what in (
            (stride, "stride"), (padding, "padding"), (output_padding, "output_padding"),
            (dilation, "dilation"),
        )
    )  # fmt: skip
    _check_numbers(stride, padding, dilation, groups)
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"output_padding={list(output_padding)}, stride={list(stride)}, "
            f"dilation={list(dilation)}"
        )
    _check_shapes(images, weight, bias, groups, transposed=True)
    sizes = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(
            images.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding
        )
    )
    if any(n < 1 for n in sizes):
        texts = [" x ".join(str(shapes.hint(n)) for n in x) for x in (images.shape[2:], sizes)]
        raise RuntimeError(
            f"Given input size per channel: ({texts[0]}). Calculated output size per channel: "
            f"({texts[1]}). Output size is too small"
        )
    result = apply(
        transposed_record, (images, weight, bias),
        {"sizes": sizes, "stride": stride, "padding": padding, "dilation": dilation,
         "groups": groups},
    )  # fmt: skip
    return result if len(input.shape) == count + 2 else result.squeeze(0)


@autocasts(cpu="lower", cuda="lower")
def conv1d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
    """Sum products over windows of (N, C, L) or (C, L), as `conv2d` does over those of images.

    weight (out, C / groups, k) and bias (out,). The result is (N, out, L') with L' = floor((L + 2 *
    padding - dilation * (k - 1) - 1) / stride) + 1. RuntimeError where sizes do not fit.

    >>> import tracejit
    >>> x = tracejit.tensor([[[1., 2., 3.]]])
    >>> tracejit.conv1d(x, tracejit.ones(1, 1, 2))
    tensor([[[3., 5.]]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@autocasts(cpu="lower", cuda="lower")
def conv2d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
    """Sum products over windows of `input` (N, C, H, W) or (C, H, W): a cross-correlation.

    Each of the O filters of `weight` (O, C / groups, kH, kW) gives a channel, plus `bias` (O,).

    stride    from one window to the next; padding: zeros at both ends, or "valid", or "same"
    dilation  from one element of a window to the next; groups: of channels that do not meet

    >>> import tracejit
    >>> x, w = tracejit.ones(1, 3, 8, 8), tracejit.ones(4, 3, 3, 3)
    >>> tracejit.nn.functional.conv2d(x, w, stride=2, padding=1).shape
    tracejit.Size([1, 4, 4, 4])

    RuntimeError if sizes do not fit, dtypes differ, or a window is larger than the padded input.
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@autocasts(cpu="lower", cuda="lower")
def conv3d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
    """Sum products over windows of (N, C, D, H, W) or (C, D, H, W), as `conv2d` does over those of
    images.

    weight (out, C / groups, kD, kH, kW) and bias (out,). The result is (N, out, D', H', W').
    RuntimeError where sizes do not fit.

    >>> import tracejit
    >>> tracejit.conv3d(tracejit.ones(1, 2, 4, 4, 4), tracejit.ones(3, 2, 2, 2, 2)).shape
    tracejit.Size([1, 3, 3, 3, 3])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


@autocasts(cpu="lower", cuda="lower")
def conv_transpose1d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Any:  # fmt: skip
    """Apply the transpose of `conv1d` to (N, C, L) or (C, L): see `conv_transpose2d`.

    weight (C, out / groups, k) and bias (out,). The result is (N, out, L') with L' = (L - 1) *
    stride - 2 * padding + dilation * (k - 1) + output_padding + 1. RuntimeError where sizes do not
    fit.

    >>> import tracejit
    >>> tracejit.conv_transpose1d(tracejit.tensor([[[1., 2.]]]), tracejit.ones(1, 1, 2), stride=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return _transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@autocasts(cpu="lower", cuda="lower")
def conv_transpose2d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Any:  # fmt: skip
    """Apply the transpose of `conv2d`: its gradient, from a tensor like its output to one like its
    input.

    weight (C, O / groups, kH, kW); output_padding: further elements at the end, which the strides
    of a convolution would skip.

    >>> import tracejit
    >>> x, w = tracejit.ones(1, 3, 4, 4), tracejit.ones(3, 2, 2, 2)
    >>> tracejit.nn.functional.conv_transpose2d(x, w, stride=2).shape
    tracejit.Size([1, 2, 8, 8])
    """
    return _transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@autocasts(cpu="lower", cuda="lower")
def conv_transpose3d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Any:  # fmt: skip
    """Apply the transpose of `conv3d` to (N, C, D, H, W) or (C, D, H, W): see `conv_transpose2d`.

    weight (C, out / groups, kD, kH, kW) and bias (out,). The result is (N, out, D', H', W').
    RuntimeError where sizes do not fit.

    >>> import tracejit
    >>> weight = tracejit.ones(2, 3, 2, 2, 2)
    >>> tracejit.conv_transpose3d(tracejit.ones(1, 2, 2, 2, 2), weight, stride=2).shape
    tracejit.Size([1, 3, 4, 4, 4])
    """
    return _transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
