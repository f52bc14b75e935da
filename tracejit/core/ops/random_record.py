"""Random draws: the records that make elements of (seed, offset, element number), and `draw`.

In: a generator, a shape, a dtype. Out: a tensor of one draw. Called by `random`, `sampling` and
`dropout`.

Operand 0 of a record is the generator's state, int64 (seed, offset). Its attribute `offset` counts
the draws that the same program made before. Kernels compute records with an `element`; the host
computes the others, as pure functions of (seed, offset).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.memory.devices import as_device
from tracejit.core.ops import philox, shapes
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.generators import MASK, Generator, state_of
from tracejit.core.ops.pointwise_record import pointwise
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES, TensorType, dtype, get_default_dtype


def _drawn_type(state: Any, offset: int, shape: tuple, dtype: dtype, device: Any,
                **how: Any) -> TensorType:
    return TensorType(dtype, tuple(shape), device)


def key_of(state: Any, offset: int) -> tuple[int, int]:
    key, drawn = (int(x) for x in state)
    return key & MASK, (drawn + offset) & MASK


def _array(xp: Any, values: np.ndarray, shape: tuple, dtype: dtype) -> Any:
    return xp.asarray(values.astype(dtype.numpy, copy=False).reshape(shape))


def _uniform_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype,
                   device: Any) -> Any:
    values = philox.philox_uniform_numpy(*key_of(state, offset), shapes.numel(shape), dtype.numpy)
    return _array(xp, values, shape, dtype)


def _normal_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype, device: Any) -> Any:
    values = philox.philox_normal_numpy(*key_of(state, offset), shapes.numel(shape), dtype.numpy)
    return _array(xp, values, shape, dtype)


def _exponential_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype,
                       device: Any) -> Any:
    values = philox.philox_exponential_numpy(*key_of(state, offset), shapes.numel(shape),
                                             dtype.numpy)
    return _array(xp, values, shape, dtype)


def _bernoulli_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype, device: Any,
                     p: float) -> Any:
    values = philox.philox_bernoulli_numpy(*key_of(state, offset), shapes.numel(shape), p)
    return _array(xp, values, shape, dtype)


def _randint_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype, device: Any,
                   low: int, high: int) -> Any:
    values = philox.philox_randint_numpy(*key_of(state, offset), shapes.numel(shape), low, high)
    return _array(xp, values, shape, dtype)


def _permutation_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype,
                       device: Any) -> Any:
    keys = philox.philox_randint_numpy(*key_of(state, offset), shape[0], 0, 2**63 - 1)
    return _array(xp, np.argsort(keys, kind="stable"), shape, dtype)


def _element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, function: str,
             *arguments: str, **named: Any) -> Any:
    """Compute an element: `function` of seed, offset, the element's number, and arguments."""
    number: Any = 0
    for position, size in zip(index, shape):
        number = number * size + position
    key = ("uint64({seed})", f"uint64({{drawn}} + {offset})", "uint64({number})")
    state = {"seed": emit.operand(0, (0,)), "drawn": emit.operand(0, (1,))}
    return emit.call(f"philox_{function}({', '.join((*key, *arguments))})", **state, number=number,
                     **named)


def _uniform_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                     device: Any) -> Any:
    return _element(emit, index, offset, shape, f"uniform_{dtype.name}")


def _normal_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                    device: Any) -> Any:
    name = "normal_float64" if dtype.itemsize == 8 else "normal_float32"
    return _element(emit, index, offset, shape, name)


def _exponential_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                         device: Any) -> Any:
    name = "exponential_float64" if dtype.itemsize == 8 else "exponential_float32"
    return _element(emit, index, offset, shape, name)


def _bernoulli_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                       device: Any, p: float) -> Any:
    return _element(emit, index, offset, shape, "bernoulli", repr(p))


def _randint_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                     device: Any, low: int, high: int) -> Any:
    if type(low) is type(high) is int:
        return _element(emit, index, offset, shape, "randint", f"int64({low})",
                        f"uint64({high - low})")
    return _element(emit, index, offset, shape, "randint", "int64({low})", "uint64({span})",
                    low=low, span=high - low)


def _drawing(name: str, eager: Callable[..., Any],
             element: Callable[..., Any] | None = None) -> Op:
    """Make the record of an op that draws numbers of some shape."""
    return Op(name, "random", ("state",), infer=_drawn_type, eager=eager, element=element,
              sizes=("shape",))


uniform_record = _drawing("uniform", _uniform_array, _uniform_element)
normal_record = _drawing("standard_normal", _normal_array, _normal_element)
exponential_record = _drawing("standard_exponential", _exponential_array, _exponential_element)
bernoulli_record = _drawing("bernoulli", _bernoulli_array, _bernoulli_element)
randint_record = _drawing("randint", _randint_array, _randint_element)
permutation_record = _drawing("randperm", _permutation_array)


def draw(record: Op, generator: Generator | None, shape: tuple, dtype: dtype, device: Any,
         **how: Any) -> Any:
    """Draw `shape` elements. That takes an offset of the generator, on the meta device none."""
    if device is not None and as_device(device).type == "meta":
        return full_of(None, shape, 0, dtype, device)
    state, offset = state_of(generator)
    return apply(record, (state,), {"offset": offset, "shape": shape, "dtype": dtype,
                                    "device": as_device(device), **how})


affine: Op = pointwise(
    "affine", lambda xp, drawn, scale, shift: drawn * scale + shift,
    "philox_affine_{dtype}({drawn}, {scale}, {shift})", methods=(),
    operands=("drawn", "scale", "shift"))


def scaled(drawn: Any, scale: Any, shift: Any) -> Any:
    """Return drawn * scale + shift, rounded twice everywhere: the same bits in every mode."""
    return drawn if _is(scale, 1) and _is(shift, 0) else affine(drawn, scale, shift)


def _is(value: Any, number: int) -> bool:
    return type(value) in (int, float) and value == number


def floating(d: dtype | None, kernel: str) -> dtype:
    """Return `d`, or the default dtype; NotImplementedError unless it is a floating point dtype."""
    d = d or get_default_dtype()
    if d.category != FLOATING:
        raise NotImplementedError(f'"{kernel}" not implemented for \'{SCALAR_NAMES[d.name]}\'')
    return d
