"""Pooling: the largest element, the mean or the norm of windows, in one to three dimensions.

In: (N, C, *spatial) or (C, *spatial); integers or one per dimension. Out: tensors of as many
dimensions. Called by users as `nn.functional.*_pool*`, by `nn`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.max_pool_record import max_pool_records
from tracejit.core.ops.pointwise import div
from tracejit.core.ops.resampling_record import avg_pool_records
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import FLOATING, INTEGER, SCALAR_NAMES, int64

_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


# -- checks ----------------------------------------------------------------------------------------
def integers(name: str, what: str, place: int, value: Any) -> tuple[int, ...]:
    """Return the integers of an argument: one or several. TypeError for others."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    for k, x in enumerate(given):
        if not isinstance(x, int) or isinstance(x, bool):
            kind = type(x).__name__
            found = f"not {kind}" if given == (value,) else f"but found element of type {kind} " \
                f"at pos {k}"
            raise TypeError(
                f"{name}(): argument '{what}' (position {place}) must be tuple of ints, {found}"
            )
    return tuple(map(as_size, given))


def _numbers(name: str, n: int, what: str, place: int, value: Any) -> tuple[int, ...]:
    """Return an integer for each of `n` dimensions; an empty stride is the kernel."""
    given = integers(name, what, place, value)
    if len(given) == 1 or what == "stride" and not given:
        return given * n
    if len(given) == n and n > 1:
        return given
    omitted = what == "stride"
    if n == 1 and name.startswith("max"):
        kinds = "None, an int, list of ints," if omitted else "an int, list of ints"
        kinds += "," * (what == "padding") + " or"
        raise RuntimeError(f"{name}() {what} must be {kinds} tuple of ints of size 1 but got size "
                           f"{len(given)}")
    if n == 1:
        raise RuntimeError(f"{name}() argument '{what}' should contain one int (got {len(given)})")
    if what == "dilation":
        kinds = "be either a single int, or"
    elif name == "avg_pool3d":
        kinds = "be omitted, a single int, or" if omitted else "be a single int, or"
    else:
        kinds = "either be omitted, a single int, or" if omitted else "either be a single int, or"
    raise RuntimeError(f"{name}: {what} must {kinds} a tuple of {_COUNTS[n]}")


def _check_input(name: str, n: int, input: Any) -> None:
    ndim = len(input.shape)
    maximum = name.startswith("max")
    if ndim not in (n + 1, n + 2):
        if maximum and n == 1 or name == "avg_pool2d":
            if not maximum:
                shapes.normalize_dim(-3, ndim)
            raise RuntimeError(_wrong_shape(name, n, input))
        if n == 1:
            raise RuntimeError(f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for "
                               f"argument #1 'self' (while checking arguments for {name})")
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    if not any(size == 0 for size in input.shape[ndim - n - 1:]):
        return
    if n == 3:
        full = "max_pool3d_with_indices_out_cpu_template" if maximum else name
        raise RuntimeError(f"{full}(): Expected input's non-batch dimensions to have positive "
                           f"length, but input has a shape of {shapes.shape_text(input.shape)} and "
                           "non-batch dimension 0 has length zero!")
    raise RuntimeError(_wrong_shape(name, n, input))


def _wrong_shape(name: str, n: int, input: Any) -> str:
    prefix = f"{name}: " if name == "max_pool1d" else ""
    size = tuple(input.shape)
    if name == "avg_pool1d":  # PyTorch pools it in two dimensions
        n, size = 2, (*size[:-1], 1, size[-1])
    return (f"{prefix}Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{shapes.shape_text(size)}")


def _check_windows(name: str, kernel: tuple, stride: tuple, padding: tuple,
                   dilation: tuple) -> None:  # fmt: skip
    if name == "max_pool1d":
        _check_vector_windows(kernel[0], stride[0], padding[0], dilation[0])
        return
    if any(k <= 0 for k in kernel) and any(s != 0 for s in stride):
        letters = "THW"[-max(len(kernel), 2):]
        shown = " ".join(f"k{a}: {k}" for a, k in zip(letters, kernel))
        raise RuntimeError(f"kernel size should be greater than zero, but got {shown}")
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    if any(s < 0 for s in stride):
        letters = "THW"[-max(len(stride), 2):]
        shown = " ".join(f"d{a}: {s}" for a, s in zip(letters, stride))
        raise RuntimeError(f"stride should be greater than zero, but got {shown}")
    if any(d <= 0 for d in dilation):
        shown = " ".join(f"dilation{a}: {d}" for a, d in zip("THW"[-len(dilation):], dilation))
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError("pad should be at most half of effective kernel size, but got "
                               f"pad={p}, kernel_size={k} and dilation={d}")


def _check_padding(n: int, kernel: tuple, padding: tuple) -> None:
    """Check padding of maxima as PyTorch also does: at most half a window, dilated or not."""
    if all(p <= k // 2 for k, p in zip(kernel, padding)):
        return
    if n == 1:
        kernel, padding = (1, *kernel), (0, *padding)
    if n == 3:
        shown = " ".join(f"{what}{'TWH'[k]}: {each[(0, 2, 1)[k]]}"
                         for what, each in (("k", kernel), ("pad", padding)) for k in range(3))
    else:
        shown = (f"padW = {padding[1]}, padH = {padding[0]}, kW = {kernel[1]}, kH = {kernel[0]}")
    raise RuntimeError("pad should be smaller than or equal to half of kernel size, but got "
                       + shown)


def _check_vector_windows(kernel: int, stride: int, padding: int, dilation: int) -> None:
    for what, value in (("kernel_size", kernel), ("stride", stride)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError("max_pool1d() padding should be at most half of kernel size, but got "
                           f"padding={padding} and kernel_size={kernel}")
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")


def _check_dtype(kernel_name: str, input: Any, categories: Sequence[int]) -> None:
    if input.dtype.category not in categories:
        raise NotImplementedError(
            f'"{kernel_name}" not implemented for \'{SCALAR_NAMES[input.dtype.name]}\''
        )


# -- sizes -----------------------------------------------------------------------------------------
def _windows(size: Any, kernel: int, stride: int, padding: int, dilation: int,
             ceil_mode: bool) -> Any:  # fmt: skip
    """Count the windows; with `ceil_mode`, also the last, which may reach beyond."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    # No window begins in the padding at the end.
    return count - 1 if (count - 1) * stride >= size + padding else count


def _window_counts(name: str, input: Any, kernel: tuple, stride: tuple, padding: tuple,
                   dilation: tuple, ceil_mode: bool) -> tuple:  # fmt: skip
    n = len(kernel)
    sizes = tuple(input.shape[-n:])
    out = tuple(
        _windows(*each, ceil_mode) for each in zip(sizes, kernel, stride, padding, dilation)
    )
    if name == "avg_pool3d" and any(a < b for a, b in zip(sizes, kernel)):
        image, window = (
            " ".join(f"{prefix}{a}: {shapes.hint(x)}" for a, x in zip("THW", each))
            for prefix, each in (("", sizes), ("k", kernel))
        )
        raise RuntimeError(f"input image ({image}) smaller than kernel size ({window})")
    if all(count >= 1 for count in out):
        return out
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {shapes.hint(out[0])}")
    sizes, out = (((1, *x) if n == 1 else x) for x in (sizes, out))
    texts = ["x".join(str(shapes.hint(x)) for x in (input.shape[-n - 1], *each))
             for each in (sizes, out)]  # fmt: skip
    raise RuntimeError(f"Given input size: ({texts[0]}). Calculated output size: ({texts[1]}). "
                       "Output size is too small")


def batched(n: int, input: Any, call: Callable[[Any], Any]) -> Any:
    """Call `call` with `input` as (N, C, *spatial); return results as `input` was."""
    if len(input.shape) == n + 2:
        return call(input)
    found = call(input.unsqueeze(0))
    return tuple(x.squeeze(0) for x in found) if isinstance(found, tuple) else found.squeeze(0)


# -- the largest of each window --------------------------------------------------------------------
def _max_pool(n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
              ceil_mode: bool, return_indices: bool) -> Any:  # fmt: skip
    name = f"max_pool{n}d"
    kernel = _numbers(name, n, "kernel_size", 2, kernel_size)
    steps = kernel if stride is None else _numbers(name, n, "stride", 3, stride) or kernel
    pads = _numbers(name, n, "padding", 4, padding)
    apart = _numbers(name, n, "dilation", 5, dilation)
    _check_input(name, n, input)
    said = "max_pool2d" if n == 1 and return_indices else name  # PyTorch runs its checks
    _check_windows(said, kernel, steps, pads, apart)
    if said != "max_pool1d":
        _check_padding(n, kernel, pads)
    out = _window_counts(said, input, kernel, steps, pads, apart, ceil_mode)
    if said == "max_pool1d":
        _check_dtype("max_pool1d_impl", input, (FLOATING,))
    _check_dtype(said, input, (FLOATING, INTEGER))
    attributes = {"out": out, "kernel": kernel, "stride": steps, "padding": pads,
                  "dilation": apart}  # fmt: skip
    found = batched(n, input, lambda x: max_pool_records[n](x, **attributes))
    return found if return_indices else found[0]


def max_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Return the largest element of each window of (N, C, L) or (C, L): see `max_pool2d`.

    The result is (N, C, L') with L' = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) /
    stride) + 1.

    >>> import tracejit
    >>> tracejit.nn.functional.max_pool1d(tracejit.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[3., 2.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode,
                     return_indices)


def max_pool2d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Return the largest element of each window of (N, C, H, W) or (C, H, W), floating or int.

    stride     from one window to the next; None: the kernel size
    padding    elements at both ends that are never the largest, at most half a window
    dilation   from one element of a window to the next
    ceil_mode  also pool the rest at the end
    return_indices  also return where in H * W the largest elements are, as int64

    >>> import tracejit
    >>> x = tracejit.arange(16.0).reshape(1, 1, 4, 4)
    >>> tracejit.nn.functional.max_pool2d(x, 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]

    RuntimeError if sizes do not fit, NotImplementedError for bool and complex tensors.
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode,
                     return_indices)


@autocasts(cpu="float32")
def max_pool3d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Return the largest element of each window of (N, C, D, H, W) or (C, D, H, W): see
    `max_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.functional.max_pool3d(tracejit.ones(1, 2, 4, 4, 4), 2).shape
    tracejit.Size([1, 2, 2, 2, 2])
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode,
                     return_indices)


# -- the mean of each window -----------------------------------------------------------------------
def _avg_pool(n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
              count_include_pad: bool, divisor: int | None = None) -> Any:  # fmt: skip
    name = f"avg_pool{n}d"
    kernel = _numbers(name, n, "kernel_size", 2, kernel_size)
    steps = kernel if stride is None else _numbers(name, n, "stride", 3, stride) or kernel
    pads = _numbers(name, n, "padding", 4, padding)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    _check_input(name, n, input)
    _check_windows(name, kernel, steps, pads, (1,) * n)
    out = _window_counts(name, input, kernel, steps, pads, (1,) * n, ceil_mode)
    if input.dtype is not int64:
        shown = "avg_pool3d_out_frame" if n == 3 else "avg_pool2d"
        _check_dtype(shown, input, (FLOATING,))
    counting = "nothing" if divisor is not None else "all" if count_include_pad else "inside"
    how = tuple(("windows", k, s, p, counting) for k, s, p in zip(kernel, steps, pads))
    found = batched(n, input, lambda x: avg_pool_records[n](x, out=out, how=how))
    if divisor is None:
        return found
    return found / divisor if found.dtype is not int64 else div(
        found, divisor, rounding_mode="trunc")


def avg_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Any:
    """Average over each window of (N, C, L) or (C, L): see `avg_pool2d`.

    The result is (N, C, L') with L' = floor((L + 2 * padding - kernel_size) / stride) + 1.

    >>> import tracejit
    >>> tracejit.nn.functional.avg_pool1d(tracejit.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[2., 1.]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Any:
    """Average over each window of `input`, (N, C, H, W) or (C, H, W), floating or int64.

    stride     from one window to the next; None: the kernel size
    padding    zeros at both ends, at most half a window
    ceil_mode  also pool the rest at the end
    count_include_pad  count padding as elements
    divisor_override   divide sums by this instead of the number of elements

    >>> import tracejit
    >>> x = tracejit.arange(16.0).reshape(1, 1, 4, 4)
    >>> tracejit.nn.functional.avg_pool2d(x, 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]

    RuntimeError if sizes do not fit, NotImplementedError for other dtypes.
    """
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


@autocasts(cpu="float32")
def avg_pool3d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Any:
    """Average over each window of (N, C, D, H, W) or (C, D, H, W): see `avg_pool2d`.

    >>> import tracejit
    >>> tracejit.nn.functional.avg_pool3d(tracejit.ones(1, 2, 4, 4, 4), 2).shape
    tracejit.Size([1, 2, 2, 2, 2])
    """
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)
