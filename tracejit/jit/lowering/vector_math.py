"""Table of scalar functions that generated kernels may call, and how to compile them.

In: a function's name and dtype. Out: the plain Python function (for kernels run as plain Python),
or a numba callable with the same text for CPU or CUDA kernels. Called by the kernel writers. numba
is imported, and a function translated, only when a kernel first asks for it.

float16 and bfloat16 kernels compute in float32; `half` converts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.jit.lowering import (
    vector_math_error,
    vector_math_exponential,
    vector_math_inverse_trigonometric,
    vector_math_logarithm,
    vector_math_power,
    vector_math_trigonometric,
)

_FAMILIES = {
    vector_math_exponential: ("exp", "exp2", "expm1", "sigmoid", "tanh", "sinh", "cosh"),
    vector_math_logarithm: ("log", "log1p", "log2", "log10"),
    vector_math_error: ("erf", "erfc"),
    vector_math_trigonometric: ("sin", "cos", "tan"),
    vector_math_inverse_trigonometric: ("asin", "acos", "atan"),
    vector_math_power: ("pow", "sqrt", "rsqrt"),
}

FUNCTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    (name, dtype): getattr(module, f"{name}_{dtype}")
    for module, names in _FAMILIES.items()
    for name in names
    for dtype in ("float32", "float64")
}


def python_function(name: str, dtype: str) -> Callable[..., Any]:
    """Return the function as plain Python, for NumPy scalars of `dtype`; KeyError names what is
    missing.

    >>> import numpy as np
    >>> float(python_function("exp", "float32")(np.float32(0.0)))
    1.0
    """
    try:
        return FUNCTIONS[name, dtype]
    except KeyError:
        raise KeyError(f"no scalar function {name!r} for {dtype}") from None


@functools.cache
def kernel_function(name: str, dtype: str, target: str = "cpu", contract: bool = True) -> Any:
    """Return the function as a numba callable for kernels; `target` is "cpu" or "cuda".

    It is always inlined. `contract=False` keeps the products from fusing into sums.
    """
    from tracejit.jit.lowering.vector_math_intrinsics import as_intrinsic

    function = python_function(name, dtype)
    dtypes = [dtype] * function.__code__.co_argcount
    return as_intrinsic(function, dtypes, target=target, contract=contract)
