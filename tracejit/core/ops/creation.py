"""Tensors made from nothing: constants, counting, and everything written with those two.

In: sizes (ints or symbolic), Python numbers, a dtype, a device. Out: new tensors, contiguous.
Called by users and by gradient rules. Rules pass `like` (or call `new_*`, `*_like`), a value that
the result belongs with: for a graph value the creation is a node of its graph.

There are two records only, `full` and `iota`; `arange`, `linspace` and `eye` are arithmetic on
`iota`, computed in float64 and rounded once to the result's dtype.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.memory.devices import as_device, makes_dense, makes_tensors
from tracejit.core.ops import pointwise
from tracejit.core.ops.fitting import as_written, fitting, plain_number
from tracejit.core.ops.operators import method
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.shapes import check_memory, hint, symbolic
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    asked_dtype,
    bfloat16,
    bool_,
    dtype,
    dtype_of_number,
    element,
    float16,
    float64,
    get_default_dtype,
    int64,
)  # fmt: skip


def _full_type(shape: tuple, value: Any, dtype: dtype, device: Any) -> TensorType:
    return TensorType(dtype, tuple(shape), device)


full_record: Op = Op(
    "full", "creation", (),
    sizes=("shape",),
    infer=_full_type,
    eager=lambda xp, shape, value, dtype, device: xp.full(
        shape, element(value, dtype.numpy) if dtype is float16
        else float(value) if dtype is bfloat16 else value, dtype.numpy),
    element=lambda emit, index, shape, value, dtype, device: emit.number(value),
)  # fmt: skip

iota_record: Op = Op(
    "iota", "creation", (),
    sizes=("size",),
    infer=lambda size, device: TensorType(int64, (size,), device),
    eager=lambda xp, size, device: xp.arange(size, dtype=xp.int64),
    element=lambda emit, index, size, device: emit.from_index(index[0]),
)  # fmt: skip


def create(record: Op, like: Any = None, **attributes: Any) -> Any:
    """Run a creation record where `like` lives: in its graph when it is a graph value."""
    graph = getattr(like, "graph", None)
    if graph is not None:
        return graph.append(record, (), attributes)
    return apply(record, (), attributes)


def full_of(like: Any, shape: Sequence[Any], value: Any, dtype: dtype, device: Any = None) -> Any:
    """Return a tensor of `value`s; `like` gives only its place: device, graph and trace."""
    dtype = asked_dtype(dtype)
    place = like.device if device is None and like is not None else device
    value = fitting(value, dtype)
    if type(value) is complex:
        value = pointwise.coerce(value, dtype)
    made = create(full_record, like, shape=tuple(shape), value=value, dtype=dtype,
                  device=as_device(place))
    alike = getattr(getattr(like, "_traced", None), "alike", None)
    return made if alike is None else alike(made)


def zeros_of(like: Any, type: TensorType) -> Any:
    """Return zeros of a TensorType, in the place of `like`."""
    return full_of(like, type.shape, 0, type.dtype, type.device)


def iota(size: Any, like: Any = None, device: Any = None) -> Any:
    """Return the int64 tensor 0, 1 ... size-1."""
    place = like.device if device is None and like is not None else device
    return create(iota_record, like, size=size, device=as_device(place))


def sizes_given(size: tuple, named: Any = None) -> tuple:
    """Return the sizes of `zeros(2, 3)`, `zeros((2, 3))` or `zeros(size=(2, 3))`.

    RuntimeError if one is negative, TypeError if one is no integer.
    """
    if named is not None:
        return sizes_given((*size, named))
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for extent in size:
        if isinstance(extent, bool) or not hasattr(extent, "__index__"):
            raise TypeError(f"sizes must be integers, got {extent!r}")
    sizes = tuple(symbolic(s) if isinstance(s, int) else s.__index__() for s in size)
    if any(s < 0 for s in sizes):
        sizes = tuple(map(hint, sizes))
        bad = next(s for s in sizes if s < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: {list(sizes)}")
    return sizes


def _marked(result: Any, requires_grad: bool) -> Any:
    return result.requires_grad_(True) if requires_grad else result


@makes_tensors
def full(size: Sequence[Any], fill_value: Any, *, dtype: dtype | None = None, device: Any = None,
         requires_grad: bool = False) -> Any:
    """Return a tensor of shape `size` filled with a number (or a 0-dim tensor).

    Without `dtype`: bool, int64 or the default floating dtype, by the number.

    >>> import tracejit
    >>> tracejit.full((2,), 7).dtype
    tracejit.int64
    """
    sizes = sizes_given(tuple(size) if isinstance(size, (tuple, list)) else (size,))
    return _marked(filled(sizes, fill_value, dtype, device, None), requires_grad)


def filled(sizes: tuple, value: Any, d: dtype | None, device: Any, like: Any) -> Any:
    """Return a tensor filled with a number, which only the program may know, or with a 0-dim
    tensor."""
    if getattr(value, "is_weak", False):  # a runtime number counts as a Python number
        kind = d or (get_default_dtype() if value.dtype is float64 else value.dtype)
        value = fitting(value, kind)
        if not pointwise.is_tensor(value):  # no program has an int so large
            return full_of(like, sizes, value, kind, device)
        made = value if kind is value.dtype else pointwise.convert(value, kind)
        if not pointwise.is_tensor(made):  # the conversion found its value
            return full_of(like, sizes, made, kind, device)
        return pointwise.copy(made).expand(sizes).clone()
    value = plain_number(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return pointwise.convert(value, d or value.dtype).expand(sizes).clone()
    return full_of(like, sizes, value, d or dtype_of_number(value), device)


@makes_tensors
def zeros(*sizes: Any, size: Any = None, dtype: dtype | None = None, device: Any = None,
          requires_grad: bool = False) -> Any:
    """Return zeros of shape `size`, of the default floating dtype unless told.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).shape
    tracejit.Size([2, 3])
    """
    shape = sizes_given(sizes, size)
    return _marked(full_of(None, shape, 0, dtype or get_default_dtype(), device), requires_grad)


@makes_tensors
def ones(*sizes: Any, size: Any = None, dtype: dtype | None = None, device: Any = None,
         requires_grad: bool = False) -> Any:
    """Return ones of shape `size`, of the default floating dtype unless told.

    >>> import tracejit
    >>> tracejit.ones(2).tolist()
    [1.0, 1.0]
    """
    shape = sizes_given(sizes, size)
    return _marked(full_of(None, shape, 1, dtype or get_default_dtype(), device), requires_grad)


@makes_tensors
def empty(*sizes: Any, size: Any = None, dtype: dtype | None = None, device: Any = None,
          requires_grad: bool = False) -> Any:
    """Return a tensor to be written later. It holds zeros, so that captured and plain calls agree.

    >>> import tracejit
    >>> tracejit.empty(2, 0).numel()
    0
    """
    return zeros(*sizes, size=size, dtype=dtype, device=device, requires_grad=requires_grad)


@method()
@makes_dense
def full_like(input: Any, fill_value: Any, *, dtype: dtype | None = None, device: Any = None,
              requires_grad: bool = False) -> Any:
    """Return `fill_value` in the shape, dtype and device of `input`, unless told other ones.

    >>> import tracejit
    >>> tracejit.full_like(tracejit.zeros(2), 7)
    tensor([7., 7.])
    """
    place = input.device if device is None else device
    made = filled(tuple(input.shape), fill_value, dtype or input.dtype, place, input)
    return _marked(made, requires_grad)


@method()
@makes_dense
def zeros_like(input: Any, *, dtype: dtype | None = None, device: Any = None,
               requires_grad: bool = False) -> Any:
    """Return zeros in the shape, dtype and device of `input`, unless told other ones.

    >>> import tracejit
    >>> tracejit.zeros_like(tracejit.ones(2), dtype=tracejit.int64)
    tensor([0, 0])
    """
    return full_like(input, 0, dtype=dtype, device=device, requires_grad=requires_grad)


@method()
@makes_dense
def ones_like(input: Any, *, dtype: dtype | None = None, device: Any = None,
              requires_grad: bool = False) -> Any:
    """Return ones in the shape, dtype and device of `input`, unless told other ones.

    >>> import tracejit
    >>> tracejit.ones_like(tracejit.zeros(2))
    tensor([1., 1.])
    """
    return full_like(input, 1, dtype=dtype, device=device, requires_grad=requires_grad)


@method()
@makes_dense
def empty_like(input: Any, *, dtype: dtype | None = None, device: Any = None,
               requires_grad: bool = False) -> Any:
    """Return a tensor to be written later, in the shape, dtype and device of `input`; it holds
    zeros.

    >>> import tracejit
    >>> tracejit.empty_like(tracejit.ones(2, 3)).shape
    tracejit.Size([2, 3])
    """
    return zeros_like(input, dtype=dtype, device=device, requires_grad=requires_grad)


@makes_tensors
def arange(start: Any = None, end: Any = None, step: Any = 1, *, dtype: dtype | None = None,
           device: Any = None, requires_grad: bool = False) -> Any:
    """Return start, start + step ... up to but without `end`.

    int64 when all three are integers, else the default floating dtype.

    >>> import tracejit
    >>> tracejit.arange(1, 10, 3).tolist()
    [1, 4, 7]

    RuntimeError for a zero step, or bounds on the wrong side of each other.
    """
    if start is None and end is None:
        raise TypeError("arange() missing 1 required positional arguments: \"end\"")
    if start is None or end is None:
        start, end = 0, end if start is None else start
    start, end, step = map(_number, (start, end, step))
    dtype = asked_dtype(dtype)
    if dtype is not None and dtype.category == COMPLEX:
        raise NotImplementedError("\"arange_cpu\" not implemented for "
                                  f"'{SCALAR_NAMES[dtype.name]}'")
    bounds = start, end, step
    if any(isinstance(x, float) and not math.isfinite(x) for x in bounds[:2]):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if dtype is not None and dtype.category < FLOATING:
        start, end, step = map(_truncated, bounds)
        bounds = (start, end, step) if dtype is int64 else bounds
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(x, int) for x in bounds)
    count = -((start - end) // step) if whole else _steps(*bounds)
    d = dtype or (int64 if whole else get_default_dtype())
    return _marked(_counted(iota(count, device=device), start, step, d), requires_grad)


def _number(x: Any) -> Any:
    """Return a bound as a Python number; RuntimeError where it is complex."""
    if isinstance(x, np.number) or pointwise.is_tensor(x) and not getattr(x, "is_weak", False):
        x = x.item()
    if isinstance(x, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return int(x) if type(x) is bool else x


def _truncated(x: Any) -> Any:
    if pointwise.is_tensor(x):
        return pointwise.convert(x, int64)
    return int(x) if isinstance(x, float) else x


def _steps(start: Any, end: Any, step: Any) -> int:
    return math.ceil((end - start) / step)


def _counted(numbers: Any, start: Any, step: Any, d: dtype) -> Any:
    """Return start + step * numbers, rounded once to `d`."""
    simple = type(start) is int and start == 0 and type(step) is int and step == 1
    if not simple:
        if d.category == FLOATING:
            numbers = pointwise.convert(numbers, float64)
        numbers = numbers * step + start
    return pointwise.convert(numbers, d)


@makes_tensors
def linspace(start: Any, end: Any, steps: int, *, dtype: dtype | None = None,
             device: Any = None, requires_grad: bool = False) -> Any:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    >>> import tracejit
    >>> tracejit.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    if isinstance(steps, float):
        raise TypeError("linspace(): argument 'steps' must be int, not float")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if any(pointwise.is_tensor(x) and x.shape for x in (start, end)):
        raise RuntimeError("linspace only supports 0-dimensional start and end tensors")
    dtype = asked_dtype(dtype)
    if any(_is_complex(x) for x in (start, end)):
        return _complex_linspace(start, end, steps, dtype, device, requires_grad)
    if dtype is bool_:
        raise NotImplementedError("\"linspace_cpu\" not implemented for 'Bool'")
    start, end = (fitting(x, dtype or get_default_dtype()) for x in (start, end))
    if dtype is not None and dtype.category < FLOATING:
        start, end = map(_truncated, (start, end))
    start, end = map(_bound, (start, end))
    k = pointwise.convert(iota(steps, device=device), float64)
    gap = (end - start) / (steps - 1) if steps > 1 else 0.0
    # Counting from the nearer end makes the last element exactly `end`.
    values = pointwise.where(k < steps // 2, k * gap + start, end - (steps - 1 - k) * gap)
    if steps == 1:
        values = k + start
    return _marked(pointwise.convert(values, dtype or get_default_dtype()), requires_grad)


def _bound(x: Any) -> Any:
    """Return a bound as a number, or as a tensor without a gradient."""
    if pointwise.is_tensor(x):
        return pointwise.convert(x if getattr(x, "is_weak", False) else x.detach(), float64)
    return int(x) if type(x) is bool else x


@makes_tensors
def logspace(start: float, end: float, steps: int, base: float = 10.0, *,
             dtype: dtype | None = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Raise `base` to the powers of `linspace(start, end, steps)`.

    >>> import tracejit
    >>> tracejit.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    dtype = asked_dtype(dtype)
    if dtype is not None and dtype.category < FLOATING:
        start, end = map(_truncated, (start, end))
    wide, default = float64, get_default_dtype()
    if any(_is_complex(x) for x in (start, end)):
        wide, default = wide.to_complex(), default.to_complex()
        if dtype is not None and dtype.category != COMPLEX:
            raise RuntimeError(f"torch.logspace(): inferred dtype {SCALAR_NAMES[default.name]} "
                               f"can't be safely cast to passed dtype {SCALAR_NAMES[dtype.name]}")
    powers = linspace(start, end, steps, dtype=wide, device=device)
    values = pointwise.pow(float(base), powers)
    return _marked(pointwise.convert(values, dtype or default), requires_grad)


def inclusive_range(start: float, end: float | None = None, step: float = 1, *,
                    dtype: dtype | None = None, device: Any = None,
                    requires_grad: bool = False) -> Any:
    """Return start, start + step ... up to and with `end`, a vector; PyTorch's older `range`, which
    warns.

    >>> import tracejit
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     tracejit.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        start, end = 0, start
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).", UserWarning, stacklevel=2)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    counted = _counted(iota(count, device=device), start, step,
                       asked_dtype(dtype) or get_default_dtype())
    return _marked(counted, requires_grad)


@makes_tensors
def scalar_tensor(s: Any, *, dtype: dtype | None = None, device: Any = None,
                  requires_grad: bool = False) -> Any:
    """Return a 0-dim tensor of a number, of the default dtype unless told.

    >>> import tracejit
    >>> tracejit.scalar_tensor(3)
    tensor(3.)
    """
    kind = asked_dtype(dtype) or get_default_dtype()
    return full((), as_written(s, kind), dtype=kind, device=device, requires_grad=requires_grad)


def number_tensor(number: Any) -> Any:
    """Return a 0-dim tensor of the dtype that a number has by itself."""
    return full((), number, dtype=dtype_of_number(number))


def _is_complex(x: Any) -> bool:
    return x.dtype.category == COMPLEX if pointwise.is_tensor(x) else isinstance(x, complex)


def _complex_linspace(start: Any, end: Any, steps: int, dtype: dtype | None, device: Any,
                      requires_grad: bool) -> Any:
    """Space the real and the imaginary parts evenly."""
    d = dtype or get_default_dtype().to_complex()
    if d.category != COMPLEX:
        raise RuntimeError("torch.linspace(): inferred dtype ComplexFloat can't be safely cast to "
                           f"passed dtype {SCALAR_NAMES[d.name]}")
    parts = [linspace(start.real, end.real, steps, dtype=d.to_real(), device=device),
             linspace(start.imag, end.imag, steps, dtype=d.to_real(), device=device)]
    return _marked(pointwise.complex(*parts), requires_grad)


@makes_tensors
def eye(n: int, m: int | None = None, *, dtype: dtype | None = None, device: Any = None,
        requires_grad: bool = False) -> Any:
    """Return an (n, m) matrix of zeros with ones on the diagonal.

    >>> import tracejit
    >>> tracejit.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    m = n if m is None else m
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return _marked(eye_of(None, n, m, dtype or get_default_dtype(), device),
                   requires_grad)


def eye_of(like: Any, n: Any, m: Any, d: dtype, device: Any = None) -> Any:
    """Return `eye` in the place of `like`."""
    check_memory((n, m), asked_dtype(d).itemsize)
    rows, columns = iota(n, like, device), iota(m, like, device)
    return pointwise.convert(rows.unsqueeze(-1) == columns, d)
