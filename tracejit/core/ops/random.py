"""New random tensors: PyTorch's functions over the draws of `random_record`.

In: sizes, a dtype, a `Generator`. Out: tensors. Element i is a function of (seed, offset, i) alone,
so that eager mode, kernels and any number of threads give the same. Called by users and by
initialisation. Functions that overwrite a tensor, or sample by weights, are in `sampling`.

Every function takes PyTorch's `generator=`, `out=`, `dtype=`, `device=` and `requires_grad=`;
`layout` and `pin_memory` are accepted and mean nothing here.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.memory.devices import default, makes_tensors
from tracejit.core.ops import shapes
from tracejit.core.ops.creation import sizes_given, zeros_of
from tracejit.core.ops.generators import (  # noqa: F401
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
from tracejit.core.ops.operators import method
from tracejit.core.ops.out import written_to
from tracejit.core.ops.pointwise_record import convert, copy, device_of, is_number
from tracejit.core.ops.random_record import (
    bernoulli_record,
    draw,
    floating,
    normal_record,
    permutation_record,
    randint_record,
    scaled,
    uniform_record,
)
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import (
    BOOL,
    INTEGER,
    TensorType,
    asked_dtype,
    bool_,
    complex64,
    dtype,
    float32,
    float64,
    get_default_dtype,
    int64,
)

_C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int",
            "int64": "long", "bool": "bool"}  # fmt: skip


def _sizes(given: tuple, size: Any, function: str) -> tuple:
    if size is not None:
        given = (*given, size)
    if not given:
        raise TypeError(f"{function}() received an invalid combination of arguments - got (), but "
                        "expected sizes")
    return sizes_given(given)


def delivered(result: Any, out: Any = None, requires_grad: bool = False) -> Any:
    """Return the result as the caller wants it: written to `out`, or marked `requires_grad`."""
    if out is not None:
        return written_to(out, result)
    if not requires_grad:
        return result
    if result.dtype.category in (BOOL, INTEGER):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_(True)


def _kind(d: dtype | None, out: Any) -> dtype:
    return asked_dtype(d) or (out.dtype if out is not None else get_default_dtype())


def _drawn(record: Op, generator: Generator | None, shape: tuple, d: dtype, device: Any,
           kernel: str) -> Any:
    """Draw numbers of a floating point or complex dtype."""
    if not d.is_complex:
        return draw(record, generator, shape, floating(d, kernel), device)
    part = float32 if d is complex64 else float64
    both = draw(record, generator, (*shape, 2), part, device)
    if record is normal_record:
        both = both * math.sqrt(0.5)  # the variances of both parts add up to 1
    return convert(both.select(-1, 0), d) + convert(both.select(-1, 1), d) * 1j


@makes_tensors
def rand(*sizes: Any, size: Any = None, generator: Generator | None = None, out: Any = None,
         dtype: dtype | None = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Draw uniform numbers in [0, 1).

    >>> import tracejit
    >>> tracejit.rand(2, 3).shape
    tracejit.Size([2, 3])
    """
    shape = _sizes(sizes, size, "rand")
    drawn = _drawn(uniform_record, generator, shape, _kind(dtype, out), device,
                   "check_uniform_bounds")
    return delivered(drawn, out, requires_grad)


@makes_tensors
def randn(*sizes: Any, size: Any = None, generator: Generator | None = None, out: Any = None,
          dtype: dtype | None = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Draw normal numbers of mean 0 and variance 1.

    >>> import tracejit
    >>> tracejit.randn(2, 3).shape
    tracejit.Size([2, 3])
    """
    shape = _sizes(sizes, size, "randn")
    drawn = _drawn(normal_record, generator, shape, _kind(dtype, out), device, "normal_kernel_cpu")
    return delivered(drawn, out, requires_grad)


def _bad(function: str, name: str, position: int, wanted: str, value: Any) -> TypeError:
    place = f" (position {position})" if position else ""
    return TypeError(f"{function}(): argument '{name}'{place} must be {wanted}, not "
                     f"{type(value).__name__}")


def _integer(function: str, name: str, position: int, value: Any) -> Any:
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise _bad(function, name, position, "int", value)
    return as_size(value)


def checked_range(low: Any, high: Any, d: dtype) -> None:
    """Raise RuntimeError if low .. high - 1 is empty or does not fit the dtype."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got "
                           f"from={shapes.hint(low)} >= to={shapes.hint(high)}")
    if d.category not in (INTEGER, BOOL):
        return
    bits = 1 if d is bool_ else 8 * d.itemsize - d.is_signed
    lowest = -(1 << bits) if d.is_signed else 0
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not (value >= lowest and value <= (1 << bits) - 1):
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[d.name]}")


def integers(low: Any, high: Any, shape: tuple, d: dtype, device: Any,
             generator: Generator | None) -> Any:
    """Draw integers in low .. high - 1. RuntimeError if the range is empty or unfit for the
    dtype."""
    checked_range(low, high, d)
    return convert(draw(randint_record, generator, shape, int64, device, low=low, high=high), d)


def _randint_arguments(given: tuple, low: Any, high: Any, size: Any) -> dict[str, tuple[int, Any]]:
    """Return name -> (position, value), position 0 for keywords; without low there are only two."""
    keywords = {"low": low, "high": high, "size": size}
    found = {name: (0, value) for name, value in keywords.items() if value is not None}
    names = ("low", "high", "size")[3 - min(3, max(2, len(given) + len(found))):]
    free = [name for name in names if name not in found]
    if len(free) != len(given):
        raise TypeError("randint() received an invalid combination of arguments, expected (high, "
                        "size) or (low, high, size)")
    return found | {name: (k + 1, value) for k, (name, value) in enumerate(zip(free, given))}


@makes_tensors
def randint(*bounds: Any, low: Any = None, high: Any = None, size: Any = None,
            generator: Generator | None = None, out: Any = None, dtype: dtype | None = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False,
            pin_memory: bool = False) -> Any:
    """Draw integers of shape `size` in low .. high - 1: `randint(high, size)` or `randint(low,
    high, size)`.

    >>> import tracejit
    >>> tracejit.randint(5, (2,)).dtype
    tracejit.int64

    RuntimeError if the range is empty or does not fit the dtype.
    """
    found = _randint_arguments(bounds, low, high, size)
    kind = asked_dtype(dtype) or (out.dtype if out is not None else int64)
    if kind.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean "
                           "types")
    first = _integer("randint", "low", *found["low"]) if "low" in found else 0
    last = _integer("randint", "high", *found["high"])
    position, sizes = found["size"]
    if not isinstance(sizes, (tuple, list)):
        raise _bad("randint", "size", position, "tuple of ints", sizes)
    drawn = integers(first, last, sizes_given((sizes,)), kind, device, generator)
    return delivered(drawn, out, requires_grad)


@makes_tensors
def randperm(n: Any, *, generator: Generator | None = None, out: Any = None,
             dtype: dtype | None = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Return the integers 0 .. n - 1 in random order.

    >>> import tracejit
    >>> sorted(tracejit.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    count = _integer("randperm", "n", 1, n)
    kind = asked_dtype(dtype) or (out.dtype if out is not None else int64)
    if kind is bool_:
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'")
    shape = sizes_given((count,))
    if kind.category == INTEGER and kind is not int64 and shape[0] > 0:
        if shape[0] - 1 >= 1 << (8 * kind.itemsize - kind.is_signed):
            name = "int" if kind.name == "int32" else f"{kind.name}_t"
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    drawn = draw(permutation_record, generator, shape, int64, device)
    return delivered(convert(drawn, kind), out, requires_grad)


def rand_like(input: Any, *, generator: Generator | None = None, dtype: dtype | None = None,
              layout: Any = None, device: Any = None, requires_grad: bool = False,
              pin_memory: bool = False, memory_format: Any = None) -> Any:
    """Call `rand` with the shape, dtype and device of `input`.

    >>> import tracejit
    >>> tracejit.rand_like(tracejit.ones(2, 3)).shape
    tracejit.Size([2, 3])
    """
    return rand(tuple(input.shape), generator=generator, dtype=dtype or input.dtype,
                device=device or input.device, requires_grad=requires_grad)


def randn_like(input: Any, *, generator: Generator | None = None, dtype: dtype | None = None,
               layout: Any = None, device: Any = None, requires_grad: bool = False,
               pin_memory: bool = False, memory_format: Any = None) -> Any:
    """Call `randn` with the shape, dtype and device of `input`.

    >>> import tracejit
    >>> tracejit.randn_like(tracejit.ones(2, 3)).shape
    tracejit.Size([2, 3])
    """
    return randn(tuple(input.shape), generator=generator, dtype=dtype or input.dtype,
                 device=device or input.device, requires_grad=requires_grad)


def randint_like(input: Any, low: Any, high: Any = None, *, generator: Generator | None = None,
                 dtype: dtype | None = None, layout: Any = None, device: Any = None,
                 requires_grad: bool = False, pin_memory: bool = False,
                 memory_format: Any = None) -> Any:
    """Call `randint` with the shape, dtype and device of `input`.

    >>> import tracejit
    >>> tracejit.randint_like(tracejit.ones(2, 3), 5).shape
    tracejit.Size([2, 3])
    """
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, tuple(input.shape), generator=generator, dtype=dtype or input.dtype,
                   device=device or input.device, requires_grad=requires_grad)


# -- by tensors ------------------------------------------------------------------------------------
def _within(xp: Any, values: Any, low: float, high: float, message: str) -> Any:
    if not bool(((values >= low) & (values <= high)).all()):
        raise RuntimeError(message)
    return values


within_record = Op(
    "within", "extern", ("input",), may_fail=True, eager=_within,
    infer=lambda input, low, high, message: TensorType(
        input.dtype, tuple(input.shape), input.device),
    rules={"input": lambda grad: grad})
outcome_record = Op(
    "bernoulli_outcome", "composite", ("input", "drawn"),
    infer=lambda input, drawn: TensorType(drawn.dtype, tuple(drawn.shape), drawn.device),
    body=lambda input, drawn: copy(drawn), node_name="BernoulliBackward0",
    rules={"input": lambda grad, input_type: zeros_of(grad, input_type)})
normal_outcome_record = Op(
    "normal_outcome", "composite", ("mean", "std", "drawn"),
    infer=lambda mean, std, drawn: TensorType(drawn.dtype, tuple(drawn.shape), drawn.device),
    body=lambda mean, std, drawn: convert(scaled(drawn, std, mean), drawn.dtype),
    node_name="NormalBackward3",
    rules={"mean": lambda grad, mean_type: zeros_of(grad, mean_type),
           "std": lambda grad, std_type: zeros_of(grad, std_type)})


def checked_std(std: Any) -> Any:
    """Return `std`; RuntimeError if it, or one of its elements, is negative."""
    if not is_number(std):
        return within_record(std, low=0.0, high=math.inf,
                             message="normal expects all elements of std >= 0.0")
    if not std >= 0:  # refuses NaN, too
        raise RuntimeError(f"normal expects std >= 0.0, but found std {float(std):g}")
    return std


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None,
           out: Any = None, dtype: dtype | None = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Draw normal numbers; `mean` and `std` are numbers (with `size`) or tensors that broadcast.

    >>> import tracejit
    >>> tracejit.normal(0.0, 1.0, (2, 3)).shape
    tracejit.Size([2, 3])

    The gradients of `mean` and `std` are 0, as in PyTorch. RuntimeError for a negative `std`.
    """
    tensors = [x for x in (mean, std) if not is_number(x)]
    device = default.place if device is None and out is None and not tensors else device
    if bool(tensors) == (size is not None):
        raise TypeError("normal() received an invalid combination of arguments, expected size with "
                        "numbers for mean and std, and no size with tensors")
    std = checked_std(std)
    if not tensors:
        shape, kind = sizes_given((size,)), _kind(dtype, out)
        drawn = _drawn(normal_record, generator, shape, kind, device, "normal_kernel_cpu")
        return delivered(scaled(drawn, std, mean), out, requires_grad)
    shape = shapes.broadcast(*[tuple(x.shape) for x in tensors])
    kind = floating(tensors[0].dtype, "normal_kernel_cpu")
    drawn = draw(normal_record, generator, shape, kind, device_of(tensors))
    return delivered(normal_outcome_record(mean, std, drawn), out)


def checked_chances(p: Any) -> Any:
    """Return `p`; RuntimeError if an element is not in [0, 1], NotImplementedError for integers."""
    floating(p.dtype, "bernoulli_tensor_cpu_p_")
    message = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    return within_record(p, low=0.0, high=1.0, message=message)


@method("bernoulli")
def bernoulli(input: Any, p: float | None = None, *, generator: Generator | None = None,
              out: Any = None) -> Any:
    """Draw ones with probability `input` (or `p`, elementwise the same), else zeros, in its dtype.

    >>> import tracejit
    >>> tracejit.bernoulli(tracejit.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]

    RuntimeError for a probability that is not in [0, 1].
    """
    if p is not None:
        drawn = coin(tuple(input.shape), p, input.device, generator)
    else:
        drawn = chances(tuple(input.shape), checked_chances(input), input.device, generator)
    outcomes = outcome_record(input, convert(drawn, input.dtype))
    return delivered(outcomes if out is None else convert(outcomes, out.dtype), out)


def coin(shape: tuple, p: float, device: Any, generator: Generator | None = None) -> Any:
    """Draw a bool tensor, True with probability `p`."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={float(p):g}")
    return draw(bernoulli_record, generator, shape, bool_, device, p=float(p))


def chances(shape: tuple, p: Any, device: Any, generator: Generator | None = None) -> Any:
    """Draw a bool tensor, True with the probabilities of a tensor."""
    kind = float64 if p.dtype is float64 else float32
    return draw(uniform_record, generator, shape, kind, device) < p
