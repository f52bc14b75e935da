"""Random tensors: generators, the four records that draw, and PyTorch's functions over them.

In: sizes, a dtype, a `Generator`. Out: tensors whose element i is a function of (seed, offset, i)
alone, so that eager mode, kernels and any number of threads give the same. Called by users and by
dropout and initialisation.

A record's operand 0 is the generator's state, int64 (seed, offset); its attribute `offset` says
how many draws were made before it by the same program. `generators.py` says who
hands out the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.memory.devices import as_device
from tracejit.ops import philox, shapes
from tracejit.ops.creation import sizes_given, zeros_like
from tracejit.ops.generators import (  # noqa: F401
    MASK,
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    install_state_provider,
    manual_seed,
    seed,
    set_rng_state,
    state_of,
)
from tracejit.ops.operators import method
from tracejit.ops.pointwise_record import convert, copy, device_of, is_tensor
from tracejit.ops.record import Op, apply
from tracejit.ops.types import FLOATING, TensorType, bool_, dtype, float32, get_default_dtype, int64


# -- records ---------------------------------------------------------------------------------------
def _drawn_type(state: Any, offset: int, shape: tuple, dtype: dtype, device: Any,
                **how: Any) -> TensorType:
    return TensorType(dtype, tuple(shape), device)


def _key(state: Any, offset: int) -> tuple[int, int]:
    key, drawn = (int(x) for x in state)
    return key & MASK, (drawn + offset) & MASK


def _array(xp: Any, values: np.ndarray, shape: tuple, dtype: dtype) -> Any:
    return xp.asarray(values.astype(dtype.numpy, copy=False).reshape(shape))


def _uniform_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype,
                   device: Any) -> Any:
    values = philox.philox_uniform_numpy(*_key(state, offset), shapes.numel(shape), dtype.numpy)
    return _array(xp, values, shape, dtype)


def _normal_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype, device: Any) -> Any:
    values = philox.philox_normal_numpy(*_key(state, offset), shapes.numel(shape), dtype.numpy)
    return _array(xp, values, shape, dtype)


def _bernoulli_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype, device: Any,
                     p: float) -> Any:
    values = philox.philox_bernoulli_numpy(*_key(state, offset), shapes.numel(shape), p)
    return _array(xp, values, shape, dtype)


def _randint_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype, device: Any,
                   low: int, high: int) -> Any:
    values = philox.philox_randint_numpy(*_key(state, offset), shapes.numel(shape), low, high)
    return _array(xp, values, shape, dtype)


def _permutation_array(xp: Any, state: Any, offset: int, shape: tuple, dtype: dtype,
                       device: Any) -> Any:
    keys = philox.philox_randint_numpy(*_key(state, offset), shape[0], 0, 2**63 - 1)
    return _array(xp, np.argsort(keys, kind="stable"), shape, dtype)


def _element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, function: str,
             *arguments: str) -> Any:
    """One element: `function` of seed, offset, the element's number, and literal arguments."""
    number: Any = 0
    for position, size in zip(index, shape):
        number = number * size + position
    key = ("uint64({seed})", f"uint64({{drawn}} + {offset})", "uint64({number})")
    return emit.call(f"philox_{function}({', '.join((*key, *arguments))})",
                     seed=emit.operand(0, (0,)), drawn=emit.operand(0, (1,)), number=number)


def _uniform_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                     device: Any) -> Any:
    return _element(emit, index, offset, shape, f"uniform_{dtype.name}")


def _normal_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                    device: Any) -> Any:
    name = "normal_float64" if dtype.itemsize == 8 else "normal_float32"
    return _element(emit, index, offset, shape, name)


def _bernoulli_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                       device: Any, p: float) -> Any:
    return _element(emit, index, offset, shape, "bernoulli", repr(p))


def _randint_element(emit: Any, index: Sequence[Any], offset: int, shape: tuple, dtype: dtype,
                     device: Any, low: int, high: int) -> Any:
    return _element(emit, index, offset, shape, "randint", f"int64({low})", f"uint64({high - low})")


uniform_record = Op("uniform", "random", ("state",), infer=_drawn_type, eager=_uniform_array,
                    element=_uniform_element)
normal_record = Op("standard_normal", "random", ("state",), infer=_drawn_type, eager=_normal_array,
                   element=_normal_element)
bernoulli_record = Op("bernoulli", "random", ("state",), infer=_drawn_type, eager=_bernoulli_array,
                      element=_bernoulli_element)
randint_record = Op("randint", "random", ("state",), infer=_drawn_type, eager=_randint_array,
                    element=_randint_element)
outcome_record = Op(
    "bernoulli_outcome", "composite", ("input", "drawn"),
    infer=lambda input, drawn: TensorType(drawn.dtype, tuple(drawn.shape), drawn.device),
    body=lambda input, drawn: copy(drawn), node_name="BernoulliBackward0",
    rules={"input": lambda grad: zeros_like(grad)})
permutation_record = Op("randperm", "random", ("state",), infer=_drawn_type,
                        eager=_permutation_array)


def draw(record: Op, generator: Generator | None, shape: tuple, dtype: dtype, device: Any,
         **how: Any) -> Any:
    """One draw of `shape` elements; it takes one offset of the generator."""
    state, offset = state_of(generator)
    return apply(record, (state,), {"offset": offset, "shape": shape, "dtype": dtype,
                                    "device": as_device(device), **how})


def _floating(d: dtype | None, what: str) -> dtype:
    d = d or get_default_dtype()
    if d.category != FLOATING:
        raise NotImplementedError(f"\"{what}\" not implemented for '{d.name}': expected a floating "
                                  "point dtype")
    return d


def _marked(result: Any, requires_grad: bool) -> Any:
    return result.requires_grad_(True) if requires_grad else result


# -- new tensors -----------------------------------------------------------------------------------
def rand(*size: Any, generator: Generator | None = None, dtype: dtype | None = None,
         device: Any = None, requires_grad: bool = False) -> Any:
    """Uniform numbers in [0, 1).

    >>> import tracejit
    >>> tracejit.rand(2, 3).shape
    tracejit.Size([2, 3])
    """
    d = _floating(dtype, "rand")
    return _marked(draw(uniform_record, generator, sizes_given(size), d, device), requires_grad)


def randn(*size: Any, generator: Generator | None = None, dtype: dtype | None = None,
          device: Any = None, requires_grad: bool = False) -> Any:
    """Normal numbers of mean 0 and variance 1."""
    d = _floating(dtype, "randn")
    return _marked(draw(normal_record, generator, sizes_given(size), d, device), requires_grad)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None,
            dtype: dtype | None = None, device: Any = None) -> Any:
    """Integers in low .. high - 1; `randint(high, size)` starts at 0.

    >>> import tracejit
    >>> tracejit.randint(5, (2,)).dtype
    tracejit.int64

    RuntimeError if the range is empty.
    """
    if size is None:
        low, high, size = 0, low, high
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= "
                           f"to={high}")
    drawn = draw(randint_record, generator, sizes_given((size,)), int64, device, low=int(low),
                 high=int(high))
    return convert(drawn, dtype or int64)


def randperm(n: int, *, generator: Generator | None = None, dtype: dtype = int64,
             device: Any = None) -> Any:
    """The integers 0 .. n - 1 in random order."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    return convert(draw(permutation_record, generator, (n,), int64, device), dtype)


def rand_like(input: Any, *, dtype: dtype | None = None, device: Any = None,
              requires_grad: bool = False) -> Any:
    """`rand` in the shape, dtype and device of `input`."""
    return rand(*input.shape, dtype=dtype or input.dtype, device=device or input.device,
                requires_grad=requires_grad)


def randn_like(input: Any, *, dtype: dtype | None = None, device: Any = None,
               requires_grad: bool = False) -> Any:
    """`randn` in the shape, dtype and device of `input`."""
    return randn(*input.shape, dtype=dtype or input.dtype, device=device or input.device,
                 requires_grad=requires_grad)


def randint_like(input: Any, low: int, high: int | None = None, *,
                 dtype: dtype | None = None, device: Any = None,
                 requires_grad: bool = False) -> Any:
    """`randint` in the shape, dtype and device of `input`."""
    low, high = (0, low) if high is None else (low, high)
    drawn = randint(low, high, tuple(input.shape), dtype=dtype or input.dtype,
                    device=input.device if device is None else device)
    return drawn.requires_grad_(True) if requires_grad else drawn


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None,
           dtype: dtype | None = None, device: Any = None) -> Any:
    """Normal numbers; `mean` and `std` are numbers (with `size`) or tensors that broadcast.

    RuntimeError for a negative `std`.
    """
    if not is_tensor(std) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {float(std)}")
    tensors = [x for x in (mean, std) if is_tensor(x)]
    if tensors:
        shape = shapes.broadcast(*[tuple(x.shape) for x in tensors])
        drawn = draw(normal_record, generator, shape, tensors[0].dtype, device_of(tensors))
    elif size is None:
        raise TypeError("normal() with numbers for mean and std needs size")
    else:
        drawn = draw(normal_record, generator, sizes_given((size,)), _floating(dtype, "normal"),
                     device)
    return drawn * std + mean


@method("bernoulli")
def bernoulli(input: Any, p: float | None = None, *, generator: Generator | None = None) -> Any:
    """Ones with probability `input` (or `p`, elementwise the same), else zeros, in its dtype.

    RuntimeError if a number `p` is not in [0, 1].
    """
    d = _floating(input.dtype, "bernoulli")
    if p is not None:
        drawn = coin(tuple(input.shape), p, input.device, generator)
    else:
        drawn = draw(uniform_record, generator, tuple(input.shape), float32, input.device) < input
    return apply(outcome_record, (input, convert(drawn, d)), {})


def coin(shape: tuple, p: float, device: Any, generator: Generator | None = None) -> Any:
    """A bool tensor, True with probability `p`."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return draw(bernoulli_record, generator, shape, bool_, device, p=float(p))


# -- in place --------------------------------------------------------------------------------------
def uniform_(self: Any, *bounds: float, generator: Generator | None = None, **named: float) -> Any:
    """Overwrite with uniform numbers in [from, to), by default [0, 1)."""
    low, high = (*bounds, *(0.0, 1.0)[len(bounds):])
    low, high = named.get("from", low), named.get("to", high)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > "
                           f"to={high}")
    d = _floating(self.dtype, "uniform_")
    drawn = draw(uniform_record, generator, tuple(self.shape), d, self.device)
    return self._assign(drawn if (low, high) == (0, 1) else drawn * (high - low) + low)


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *,
            generator: Generator | None = None) -> Any:
    """Overwrite with normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {float(std)}")
    d = _floating(self.dtype, "normal_")
    drawn = draw(normal_record, generator, tuple(self.shape), d, self.device)
    return self._assign(drawn if (mean, std) == (0, 1) else drawn * std + mean)


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Generator | None = None) -> Any:
    """Overwrite with ones with probability `p` (a number or a tensor), else zeros."""
    if is_tensor(p):
        drawn = draw(uniform_record, generator, tuple(self.shape), float32, self.device) < p
    else:
        drawn = coin(tuple(self.shape), p, self.device, generator)
    return self._assign(convert(drawn, self.dtype))


def random_(self: Any, *bounds: int, generator: Generator | None = None) -> Any:
    """Overwrite with integers in from .. to - 1; without bounds, all the dtype holds exactly."""
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds or (0, _beyond(self.dtype))
    return self._assign(randint(low, high, tuple(self.shape), generator=generator,
                                dtype=self.dtype, device=self.device))


def _beyond(d: dtype) -> int:
    if d is bool_:
        return 2
    if d.category == FLOATING:
        return {"float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8}[d.name] + 1
    return min(int(np.iinfo(d.numpy).max) + 1, 2**63 - 1)


for _function in (uniform_, normal_, bernoulli_, random_):
    method()(_function)


# -- dropout ---------------------------------------------------------------------------------------
def _kept_array(xp: Any, input: Any, mask: Any, scale: float) -> Any:
    if input.dtype.itemsize == 2:
        return (input.astype(np.float32) * xp.where(mask, np.float32(scale), 0)).astype(input.dtype)
    return input * xp.where(mask, input.dtype.type(scale), input.dtype.type(0))


masked_scale: Op = Op(
    "masked_scale", "pointwise", ("input", "mask", "scale"), eager=_kept_array,
    infer=lambda input, mask, scale: TensorType(
        input.dtype, shapes.broadcast(input.shape, mask.shape), input.device),
    scalar="({input} * ({scale} if {mask} else {dtype}(0)))", node_name="NativeDropoutBackward0",
    rules={"input": lambda grad, mask, scale: masked_scale(grad, mask, scale)})


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero elements with probability `p`, scale the rest by 1 / (1 - p); identity in evaluation.

    ValueError if `p` is not in [0, 1].
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    mask = coin(tuple(input.shape), 1 - p, input.device)
    result = masked_scale(input, mask, 0.0 if p == 1 else 1 / (1 - p))
    return input._assign(result) if inplace else result
