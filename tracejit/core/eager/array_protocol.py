"""NumPy functions that get tensors: `Tensor.__array_ufunc__` and `Tensor.__array_function__`.

In: `np.exp(tensor)`, `array * tensor`, `np.mean(tensor)`. Out: what PyTorch returns. Ufuncs give a
tensor of NumPy's dtype. Functions for which PyTorch's tensors have a method give a tensor, the
others an array. If there is an op, it runs, so a recording goes on. Else the tensors become arrays,
which ends a segment and names the function.

An operator between an array and a tensor looks like the ufunc of the same name. It follows the
tensor's rules (its dtypes, the tape), whichever comes first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.eager.construction import from_array
from tracejit.core.eager.interchange import array_for
from tracejit.core.eager.state import TensorState
from tracejit.core.ops import linalg, moments, movement, pointwise, reduction, scan, sorting
from tracejit.core.ops.types import dtype

OPERATORS = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.true_divide: operator.truediv, np.floor_divide: operator.floordiv,
    np.remainder: operator.mod, np.power: operator.pow, np.matmul: operator.matmul,
    np.equal: operator.eq, np.not_equal: operator.ne, np.less: operator.lt,
    np.less_equal: operator.le, np.greater: operator.gt, np.greater_equal: operator.ge,
    np.bitwise_and: operator.and_, np.bitwise_or: operator.or_, np.bitwise_xor: operator.xor,
}  # fmt: skip
# NumPy's name of a ufunc: the op's, where it has another
_RENAMED = {
    "absolute": "abs", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2",
    "equal": "eq", "greater": "gt", "greater_equal": "ge", "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift", "less": "lt", "less_equal": "le", "multiply": "mul",
    "negative": "neg", "not_equal": "ne", "power": "pow", "right_shift": "bitwise_right_shift",
    "rint": "round", "subtract": "sub", "divide": "div", "conjugate": "resolve_conj",
    "positive": "clone",
}  # fmt: skip
_SAME = (
    "add bitwise_and bitwise_or bitwise_xor ceil cos cosh exp exp2 expm1 float_power floor fmod "
    "hypot isfinite isinf isnan log log10 log1p log2 logical_and logical_not logical_or "
    "logical_xor maximum minimum reciprocal remainder sin sinh sqrt square tan tanh trunc "
    "floor_divide"
).split()


def _sign(x: Any) -> Any:
    """Return the sign; NaN for NaN, as NumPy does."""
    return pointwise.where(pointwise.isnan(x), x, pointwise.sign(x))


UFUNCS: dict[Any, Callable[..., Any]] = {
    getattr(np, name): getattr(pointwise, _RENAMED.get(name, name)) for name in (*_SAME, *_RENAMED)
} | {np.matmul: linalg.matmul, np.sign: _sign}
# Integers by zero are an error in an op and 0 in NumPy, negative powers the other way round, and
# bools have no fraction for NumPy alone.
_FLOATING_ONLY = {np.floor_divide, np.remainder, np.fmod, np.power, np.left_shift, np.right_shift,
                  np.ceil, np.floor, np.trunc}  # fmt: skip
_NUMBERS_ONLY = {np.absolute}  # which refuse bools as ops
_PLAIN_NUMBERS = (bool, int, float, complex)


def array_ufunc(self: TensorState, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Run a ufunc as the op of its name, else on arrays. Arrays that it returns become tensors, but
    for `outer` and `out=`."""
    if method == "__call__" and not kwargs:
        made = _by_operator(ufunc, inputs) if len(inputs) == 2 else NotImplemented
        if made is NotImplemented:
            made = _by_op(ufunc, inputs)
        if made is not NotImplemented:
            return made
    if any(isinstance(x, TensorState) for x in kwargs.get("out", ())):
        raise TypeError("return arrays must be of ArrayType")
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    found = getattr(ufunc, method)(*as_arrays(inputs, name), **as_arrays(kwargs, name))
    return found if "out" in kwargs or method == "outer" else _as_tensors(found)


def _by_operator(ufunc: Any, inputs: tuple) -> Any:
    """Run the operator between an array, or a NumPy number, and a tensor."""
    function = OPERATORS.get(ufunc)
    if function is None or not any(isinstance(x, (np.ndarray, np.generic)) for x in inputs):
        return NotImplemented
    return function(*[_operand(x) for x in inputs])


def _operand(x: Any) -> Any:
    if isinstance(x, np.generic):
        return x.item()
    return from_array(x) if isinstance(x, np.ndarray) else x


def _by_op(ufunc: Any, inputs: tuple) -> Any:
    """Run the op of a ufunc, in the dtypes that NumPy computes in."""
    op = UFUNCS.get(ufunc)
    if op is None or not all(_takes_part(x) for x in inputs):
        return NotImplemented
    kinds = [x._dtype.numpy if isinstance(x, TensorState) else type(x) for x in inputs]
    try:
        *computed, result = ufunc.resolve_dtypes((*kinds, None))
    except TypeError:  # NumPy has the words for it
        return NotImplemented
    if not all(d.name in dtype._by_name for d in (*computed, result)):
        return NotImplemented
    if ufunc in _FLOATING_ONLY and computed[0].kind != "f":
        return NotImplemented
    if ufunc in _NUMBERS_ONLY and computed[0].kind == "b":
        return NotImplemented
    like: Any = next(x for x in inputs if isinstance(x, TensorState))
    operands = [
        _converted(x, d) if isinstance(x, TensorState)
        else like.new_full((), x, dtype=dtype._by_name[d.name])
        for x, d in zip(inputs, computed)
    ]
    return _converted(op(*operands), result)


def _takes_part(x: Any) -> bool:
    """Return True for a tensor whose elements NumPy could see, or a number."""
    if isinstance(x, TensorState):
        return x._device.type == "cpu" and not x.requires_grad and x._dtype.name != "bfloat16"
    return type(x) in _PLAIN_NUMBERS


def _converted(x: Any, wanted: np.dtype) -> Any:
    if not isinstance(x, TensorState):
        return x
    return pointwise.convert(x, dtype._by_name[wanted.name])


# -- functions -------------------------------------------------------------------------------------
def _reduce(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
        extra = {} if dtype is None else {"dtype": _dtype_named(dtype)}
        return op(a, dim=axis, keepdim=keepdims, **extra)

    return call


def _reduce_plainly(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return op(a, dim=axis, keepdim=keepdims) if axis is not None or keepdims else op(a)

    return call


def _spread(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
        return op(a, dim=axis, correction=ddof, keepdim=keepdims)

    return call


def _extreme(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return op(a, dim=() if axis is None else axis, keepdim=keepdims)

    return call


def _product(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    extra = {} if dtype is None else {"dtype": _dtype_named(dtype)}
    if axis is None:
        return reduction.prod(a, **extra)
    return reduction.prod(a, axis, keepdim=keepdims, **extra)


def _running(op: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        x, k = (a.reshape(-1), 0) if axis is None else (a, axis)
        return op(x, k, **({} if dtype is None else {"dtype": _dtype_named(dtype)}))

    return call


def _dtype_named(wanted: Any) -> dtype:
    return wanted if isinstance(wanted, dtype) else dtype._by_name[np.dtype(wanted).name]


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    return a.clamp(a_min, a_max)


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.permute(*(range(len(a.shape))[::-1] if axes is None else axes))


def _squeeze(a: Any, axis: Any = None) -> Any:
    return a.squeeze() if axis is None else a.squeeze(axis)


def _round(a: Any, decimals: int = 0) -> Any:
    return a.round(decimals=decimals) if decimals else a.round()


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return list(ary.tensor_split(indices_or_sections, axis))


def _size(a: Any, axis: Any = None) -> Any:
    return a.numel() if axis is None else a.shape[axis]


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.mean: _reduce(moments.mean), np.sum: _reduce(reduction.sum), np.prod: _product,
    np.max: _extreme(reduction.amax), np.amax: _extreme(reduction.amax),
    np.min: _extreme(reduction.amin), np.amin: _extreme(reduction.amin),
    np.std: _spread(moments.std), np.var: _spread(moments.var),
    np.all: _reduce_plainly(reduction.all), np.any: _reduce_plainly(reduction.any),
    np.argmax: lambda a, axis=None: a.argmax(axis), np.argmin: lambda a, axis=None: a.argmin(axis),
    np.argsort: lambda a, axis=-1: sorting.argsort(a, axis),
    np.cumsum: _running(scan.cumsum), np.cumprod: _running(scan.cumprod), np.clip: _clip,
    np.round: _round, np.around: _round, np.reshape: lambda a, shape: a.reshape(shape),
    np.transpose: _transpose, np.squeeze: _squeeze,
    np.swapaxes: lambda a, axis1, axis2: movement.transpose(a, axis1, axis2),
    np.split: _split, np.array_split: _split,
    np.nonzero: lambda a: a.nonzero(), np.shape: lambda a: a.shape,
    np.ndim: lambda a: len(a.shape), np.size: _size,
    np.iscomplexobj: lambda x: x.dtype.is_complex,
}  # fmt: skip
# Functions that ask their argument to wrap the array they made, in NumPy's own words.
_WRAPPING = {np.repeat, np.take, np.compress, np.searchsorted, np.ptp, np.linspace, np.linalg.inv,
             *FUNCTIONS}  # fmt: skip


def array_function(self: TensorState, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """Run a function as the method of PyTorch's tensors does, else on arrays."""
    run = FUNCTIONS.get(func)
    if run is not None and _of_tensors_alone(args, kwargs):
        try:
            return run(*args, **kwargs)
        except TypeError as error:  # arguments that only NumPy has, or its own words for bad ones
            if "argument" not in str(error):
                raise
    name = f"{func.__module__.replace('numpy', 'np')}.{func.__name__}"
    found = func(*as_arrays(args, name), **as_arrays(kwargs, name))
    return _as_tensors(found) if func in _WRAPPING else found


def _of_tensors_alone(args: tuple, kwargs: dict) -> bool:
    """Return True if the first argument is a tensor and no other argument is an array."""
    rest = (*args[1:], *kwargs.values())
    first = args[0] if args else next(iter(kwargs.values()), None)
    return isinstance(first, TensorState) and not any(isinstance(x, np.ndarray) for x in rest)


def as_arrays(x: Any, name: str) -> Any:
    """Replace every tensor in nested arguments by the array over its memory."""
    if isinstance(x, TensorState):
        return array_for(x, f"tracejit has no op for {name}",
                         "use tracejit's own function")
    if isinstance(x, (list, tuple)):
        return type(x)(as_arrays(y, name) for y in x)
    return {k: as_arrays(y, name) for k, y in x.items()} if isinstance(x, dict) else x


def _as_tensors(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(map(_as_tensors, found))
    if isinstance(found, (np.ndarray, np.generic)) and found.dtype.name in dtype._by_name:
        return from_array(np.asarray(found))
    return found
