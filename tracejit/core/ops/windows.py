"""Windows of a tensor laid side by side, and put together again: unfold and fold.

In: images (N, C, H, W) or (C, H, W); or any tensor and one of its dimensions. Out: blocks (N, C *
window, windows) and images of them, each the gradient of the other; views of a dimension's windows.
Called by users as `nn.functional.unfold`, `fold` and `Tensor.unfold`, by `nn`.

Programs call the array library. Halves are added up in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tracejit.core.ops import creation, shapes
from tracejit.core.ops.convolution_record import windows_of
from tracejit.core.ops.gather_scatter import index_add_record, index_put_record
from tracejit.core.ops.max_pool_record import reach
from tracejit.core.ops.movement import typed
from tracejit.core.ops.operators import method
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import INTEGER, SCALAR_NAMES, TensorType, bfloat16, float16

_HALVES = (float16.numpy, bfloat16.numpy)


# -- blocks of images ------------------------------------------------------------------------------
def _visits(
    sizes: Sequence[int], out: Sequence[int], kernel: tuple, stride: tuple, padding: tuple,
    dilation: tuple,
) -> Iterator[tuple[tuple, tuple]]:  # fmt: skip
    """Yield places in (N, C, *kernel, *windows) and (N, C, *sizes), for each element of a
    window."""
    for place in product(*map(range, kernel)):
        found = [reach(*each) for each in zip(place, sizes, out, stride, padding, dilation)]
        inside = [r for r in found if r is not None]
        if len(inside) == len(found):
            windows, elements = zip(*inside)
            yield (slice(None), slice(None), *place, *windows), (..., *elements)


def _unfold_eager(xp: Any, x: Any, kernel: tuple, stride: tuple, padding: tuple,
                  dilation: tuple) -> Any:  # fmt: skip
    sizes = x.shape[2:]
    out = windows_of(sizes, kernel, stride, padding, dilation)
    blocks = xp.zeros((*x.shape[:2], *kernel, *out), x.dtype)
    for block, image in _visits(sizes, out, kernel, stride, padding, dilation):
        blocks[block] = x[image]
    return blocks.reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(out))


def _fold_eager(xp: Any, x: Any, sizes: tuple, kernel: tuple, stride: tuple, padding: tuple,
                dilation: tuple) -> Any:  # fmt: skip
    result = x.dtype
    out = windows_of(sizes, kernel, stride, padding, dilation)
    channels = x.shape[1] // math.prod(kernel)
    blocks = (x.astype(np.float32) if result in _HALVES else x).reshape(
        x.shape[0], channels, *kernel, *out
    )
    images = xp.zeros((x.shape[0], channels, *sizes), blocks.dtype)
    for block, image in _visits(sizes, out, kernel, stride, padding, dilation):
        images[image] += blocks[block]
    return images.astype(result, copy=False)


def _unfold_type(input: Any, kernel: tuple, stride: tuple, padding: tuple,
                 dilation: tuple) -> TensorType:  # fmt: skip
    count = shapes.numel(windows_of(input.shape[2:], kernel, stride, padding, dilation))
    return typed(input, (input.shape[0], input.shape[1] * math.prod(kernel), count))


def _fold_type(input: Any, sizes: tuple, kernel: tuple, stride: tuple, padding: tuple,
               dilation: tuple) -> TensorType:  # fmt: skip
    return typed(input, (input.shape[0], input.shape[1] // math.prod(kernel), *sizes))


unfold_record: Op = Op(
    "im2col", "extern", ("input",), infer=_unfold_type, eager=_unfold_eager,
    node_name="Im2ColBackward0",
    rules={"input": lambda grad, input_type, kernel, stride, padding, dilation: fold_record(
        grad, sizes=tuple(input_type.shape[2:]), kernel=kernel, stride=stride, padding=padding,
        dilation=dilation)},
)  # fmt: skip

fold_record: Op = Op(
    "col2im", "extern", ("input",), infer=_fold_type, eager=_fold_eager,
    node_name="Col2ImBackward0",
    rules={"input": lambda grad, kernel, stride, padding, dilation: unfold_record(
        grad, kernel=kernel, stride=stride, padding=padding, dilation=dilation)},
)  # fmt: skip


def _pair(what: str, value: Any) -> tuple:
    listed = isinstance(value, (tuple, list))
    given = tuple(map(as_size, value)) if listed else (as_size(value),) * 2
    if len(given) != 2:
        raise RuntimeError(f"It is expected {what} equals to 2, but got size {len(given)}")
    return given


def _windows(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, tuple]:
    found = {"kernel": _pair("kernel_size", kernel_size), "dilation": _pair("dilation", dilation),
             "padding": _pair("padding", padding), "stride": _pair("stride", stride)}  # fmt: skip
    for what, least, name in (("kernel", 1, "kernel size"), ("dilation", 1, "dilation"),
                              ("padding", 0, "padding"), ("stride", 1, "stride")):  # fmt: skip
        if min(found[what]) < least:
            short = "pad" if what == "padding" else what
            wanted = "greater than zero" if least else "non-negative"
            raise RuntimeError(f"{name} should be {wanted}, but got {short}_height: "
                               f"{found[what][0]} {short}_width: {found[what][1]}")
    return found


def _described(windows: dict[str, tuple], *names: str) -> str:
    return ", ".join(f"{n}{'_size' * (n == 'kernel')}={windows[n]}" for n in names)


def _check_dtype(name: str, input: Any) -> None:
    if input.dtype.category == INTEGER:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{SCALAR_NAMES[input.dtype.name]}'"
        )


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
           stride: Any = 1) -> Any:  # fmt: skip
    """Return every window of (N, C, H, W) or (C, H, W) as a column: (N, C * window, windows).

    Arguments are integers, or (rows, columns); padding is with zeros at both ends.

    >>> import tracejit
    >>> tracejit.nn.functional.unfold(tracejit.ones(1, 3, 4, 5), 2).shape
    tracejit.Size([1, 12, 12])

    RuntimeError if sizes do not fit, NotImplementedError for integers.
    """
    windows = _windows(kernel_size, dilation, padding, stride)
    ndim = len(input.shape)
    if ndim < 3:
        shapes.normalize_dim(ndim, ndim)
    if ndim not in (3, 4) or any(size == 0 for size in input.shape[-3:]):
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
                           "other non-zero dimensions for input, but got: "
                           f"{shapes.shape_text(input.shape)}")
    out = windows_of(input.shape[-2:], **windows)
    if any(count < 1 for count in out):
        size, made = (tuple(map(shapes.hint, x)) for x in (input.shape[-2:], out))
        raise RuntimeError(f"Given input with spatial size {size}, "
                           f"{_described(windows, 'kernel', 'dilation', 'padding')}, calculated "
                           f"shape of the array of sliding blocks as {made}, but its components "
                           "must be at least one.")
    _check_dtype("im2col_out_cpu", input)
    if ndim == 4:
        return unfold_record(input, **windows)
    return unfold_record(input.unsqueeze(0), **windows).squeeze(0)


def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Any:  # fmt: skip
    """Add up columns (N, C * window, windows) to the image (N, C, *output_size).

    Columns may also be (C * window, windows).

    >>> import tracejit
    >>> tracejit.nn.functional.fold(tracejit.ones(1, 4, 2), (2, 3), 2).tolist()
    [[[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]]

    RuntimeError if sizes do not fit, NotImplementedError for integers.
    """
    sizes = _pair("output_size", output_size)
    windows = _windows(kernel_size, dilation, padding, stride)
    ndim = len(input.shape)
    if ndim not in (2, 3) or any(size == 0 for size in input.shape[-2:]):
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
                           "size and non-zero dimensions for input, but got: "
                           f"{shapes.shape_text(input.shape)}")
    rows, count = input.shape[-2:]
    if not shapes.equal(rows % math.prod(windows["kernel"]), 0):
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of "
                           f"kernel_size, but got input.size(1)={shapes.hint(rows)} and "
                           f"kernel_size={windows['kernel']}.")
    out = windows_of(sizes, **windows)
    given = f"Given output_size={tuple(map(shapes.hint, sizes))}, " + _described(
        windows, "kernel", "dilation", "padding", "stride")  # fmt: skip
    high, wide = map(shapes.hint, out)
    shapes.same(count, out[0] * out[1],
                f"{given}, expected size of input's dimension 2 to match the calculated number of "
                f"sliding blocks {high} * {wide} = {high * wide}, but got "
                f"input.size(2)={shapes.hint(count)}.")  # fmt: skip
    if any(n < 1 for n in out):
        raise RuntimeError(f"{given}, calculated shape of the array of sliding blocks as "
                           f"({high}, {wide}), but its components must be at least one.")
    _check_dtype("col2im_out_cpu", input)
    if ndim == 3:
        return fold_record(input, sizes=sizes, **windows)
    return fold_record(input.unsqueeze(0), sizes=sizes, **windows).squeeze(0)


# -- windows of one dimension, as a view -----------------------------------------------------------
def _sliding_type(input: Any, dim: int, size: Any, step: Any) -> TensorType:
    count = (input.shape[dim] - size) // step + 1
    return typed(input, (*input.shape[:dim], count, *input.shape[dim + 1:], size))


def _sliding_eager(xp: Any, x: Any, dim: int, size: int, step: int) -> Any:
    count = (x.shape[dim] - size) // step + 1
    return xp.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:dim], count, *x.shape[dim + 1:], size),
        (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1:], x.strides[dim]),
    )


def _places(like: Any, dim: int, size: Any, step: Any) -> Any:
    """Return where in dimension `dim` each element of each window lies: (windows, size)."""
    count = (like.shape[dim] - size) // step + 1
    return (creation.iota(count, like) * step).unsqueeze(1) + creation.iota(size, like)


def _sliding_rule(grad: Any, input_type: TensorType, dim: int, size: Any, step: Any) -> Any:
    whole = creation.zeros_of(grad, input_type._replace(dtype=grad.dtype))
    windows = grad.movedim(-1, dim + 1)
    return index_add_record(
        whole, windows, _places(whole, dim, size, step), dims=(dim,), wrap=False
    )


def _write_sliding(base: Any, src: Any, dim: int, size: Any, step: Any) -> Any:
    places = _places(base, dim, size, step)  # where windows overlap, the last one is seen
    return index_put_record(base, src.movedim(-1, dim + 1), places, dims=(dim,), wrap=False)


sliding_record: Op = Op(
    "unfold", "movement", ("input",), views=True, infer=_sliding_type, eager=_sliding_eager,
    view_inverse=_write_sliding,
    element=lambda emit, index, dim, size, step: emit.operand(
        0, [*index[:dim], index[dim] * step + index[-1], *index[dim + 1:-1]]),
    rules={"input": _sliding_rule},
)  # fmt: skip


@method("unfold")
def sliding_windows(input: Any, dimension: int, size: Any, step: Any) -> Any:
    """View the windows of `size` elements in a dimension, `step` apart.

    Their elements are in a new last dimension.

    >>> import tracejit
    >>> tracejit.arange(5).unfold(0, 3, 2).tolist()
    [[0, 1, 2], [2, 3, 4]]

    RuntimeError where there are fewer elements than `size`.
    """
    k = shapes.normalize_dim(dimension, len(input.shape))
    x = input if input.shape else input.reshape(1)
    length, by, total = as_size(size), as_size(step), x.shape[k]
    if length < 0:
        raise RuntimeError(f"size is {shapes.hint(length)} but must be >= 0")
    if not shapes.same_structure(length, total) and length > total:
        raise RuntimeError(f"maximum size for tensor at dimension {k} is {shapes.hint(total)} but "
                           f"size is {shapes.hint(length)}")
    if by <= 0:
        raise RuntimeError(f"step is {shapes.hint(by)} but must be > 0")
    found = sliding_record(x, dim=k, size=length, step=by)
    return found if input.shape else found.select(0, 0)
