"""NumPy functions that meet tensors.

In: `np.exp(tensor)`, `array * tensor`. Out: arrays from functions; a tensor where an array and a
tensor meet in an operator, whichever comes first, since then the tensor's rules and the tape must
apply. `Tensor.__array_ufunc__`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tracejit.eager.construction import from_array
from tracejit.eager.state import TensorState

OPERATORS = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.true_divide: operator.truediv, np.floor_divide: operator.floordiv,
    np.remainder: operator.mod, np.power: operator.pow, np.matmul: operator.matmul,
    np.equal: operator.eq, np.not_equal: operator.ne, np.less: operator.lt,
    np.less_equal: operator.le, np.greater: operator.gt, np.greater_equal: operator.ge,
    np.bitwise_and: operator.and_, np.bitwise_or: operator.or_, np.bitwise_xor: operator.xor,
}  # fmt: skip


def array_ufunc(self: TensorState, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Run an operator between array and tensor on tensors, everything else on arrays."""
    function = OPERATORS.get(ufunc)
    mixed = len(inputs) == 2 and any(isinstance(x, (np.ndarray, np.generic)) for x in inputs)
    if function is not None and method == "__call__" and mixed and not kwargs:
        return function(*[_operand(x) for x in inputs])
    return getattr(ufunc, method)(*as_arrays(inputs), **as_arrays(kwargs))


def array_function(self: TensorState, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """Run any other NumPy function on arrays."""
    return func(*as_arrays(args), **as_arrays(kwargs))


def as_arrays(x: Any) -> Any:
    """Nested arguments with every tensor replaced by the array over its memory."""
    if isinstance(x, TensorState):
        return x.numpy()
    if isinstance(x, (list, tuple)):
        return type(x)(as_arrays(y) for y in x)
    return {k: as_arrays(y) for k, y in x.items()} if isinstance(x, dict) else x



def _operand(x: Any) -> Any:
    if isinstance(x, np.generic):
        return x.item()
    return from_array(x) if isinstance(x, np.ndarray) else x
