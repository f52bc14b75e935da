"""`x.view(dtype)`: the same bytes read as another element type.

In: a tensor and a dtype. Out: a view; its last dimension grows or shrinks where elements have
another size. Called by `movement.view`. Nothing is differentiable here, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import equal, hint
from tracejit.core.ops.types import SCALAR_NAMES, TensorType, dtype


def _type(input: Any, dtype: dtype) -> TensorType:
    old, new, shape = input.dtype.itemsize, dtype.itemsize, tuple(input.shape)
    if old > new:
        shape = (*shape[:-1], shape[-1] * (old // new))
    elif new > old:
        shape = (*shape[:-1], shape[-1] // (new // old))
    return TensorType(dtype, shape, input.device)


reinterpret_record: Op = Op(
    "reinterpret", "movement", ("input",), views=True, infer=_type,
    view_inverse=lambda base, src, dtype: reinterpret_record(src, dtype=base.dtype),
    eager=lambda xp, input, dtype: input.view(dtype.numpy), node_name="ViewBackward0")


def reinterpreted(input: Any, dtype: dtype) -> Any:
    """View the tensor's bytes as elements of `dtype`.

    >>> import tracejit
    >>> tracejit.tensor([1.0, -1.0]).view(tracejit.int32).tolist()
    [1065353216, -1082130432]
    >>> tracejit.tensor([1, 2], dtype=tracejit.int16).view(tracejit.uint8).shape
    tracejit.Size([4])

    RuntimeError where elements of another size do not fit the last dimension or its strides.
    """
    if dtype is input.dtype:
        return input.view(input.shape)
    if dtype.itemsize != input.dtype.itemsize:
        _check_fits(input, dtype)
    return reinterpret_record(input, dtype=dtype)


def _check_fits(input: Any, dtype: dtype) -> None:
    old, new = input.dtype.itemsize, dtype.itemsize
    views = (f"to view {SCALAR_NAMES[input.dtype.name]} as {SCALAR_NAMES[dtype.name]} (different "
             "element sizes)")
    if not input.shape:
        raise RuntimeError(f"self.dim() cannot be 0 {views}")
    divisible = [("size(-1)", input.shape[-1])]
    if hasattr(input, "stride"):
        *strides, last = input.stride()
        if not equal(last, 1):
            raise RuntimeError(f"self.stride(-1) must be 1 {views}, but got {last}")
        divisible += [("storage_offset()", input.storage_offset())]
        divisible += [(f"stride({k})", stride) for k, stride in enumerate(strides)]
    for name, value in divisible if new > old else ():
        if not equal(value % (new // old), 0):
            raise RuntimeError(f"self.{name} must be divisible by {new // old} {views}, but got "
                               f"{hint(value)}")
