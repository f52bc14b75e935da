"""Philox random numbers inside kernels: the recipe that eager mode runs, as numba callables.

In: the name of what is drawn. Out: a plain Python function (kernels run as plain Python) or a numba
callable, inlined, for CPU or CUDA kernels. Called by the kernel writers. A function that draws
takes (seed, offset, index), all uint64, then its own arguments. An index is an element's position
in the whole logical result, so no split of the work changes a bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.core.ops import philox_recipe

_KEY = ("uint64", "uint64", "uint64")
# name -> (function, the dtypes of its arguments)
RANDOM_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "uniform_float32": (philox_recipe.uniform_float32, _KEY),
    "uniform_float64": (philox_recipe.uniform_float64, _KEY),
    "uniform_float16": (philox_recipe.uniform_float16, _KEY),
    "uniform_bfloat16": (philox_recipe.uniform_bfloat16, _KEY),
    "normal_float32": (philox_recipe.normal_float32, _KEY),
    "normal_float64": (philox_recipe.normal_float64, _KEY),
    "exponential_float32": (philox_recipe.exponential_float32, _KEY),
    "exponential_float64": (philox_recipe.exponential_float64, _KEY),
    "bernoulli": (philox_recipe.bernoulli, (*_KEY, "float64")),
    "randint": (philox_recipe.randint, (*_KEY, "int64", "uint64")),
    "affine_float32": (philox_recipe.affine_float32, ("float32",) * 3),
    "affine_float64": (philox_recipe.affine_float64, ("float64",) * 3),
    "philox_words": (philox_recipe.philox_words, _KEY),
}


def python_random_function(name: str) -> Callable[..., Any]:
    """Return the function as plain Python, for NumPy scalars; KeyError names what is missing.

    >>> import numpy as np
    >>> zero = np.uint64(0)
    >>> float(python_random_function("uniform_float32")(zero, zero, zero))
    0.3990464210510254
    """
    try:
        return RANDOM_FUNCTIONS[name][0]
    except KeyError:
        raise KeyError(f"no random function {name!r}") from None


@functools.cache
def kernel_random_function(name: str, target: str = "cpu") -> Any:
    """Return the function as a numba callable for kernels; `target` is "cpu" or "cuda".

    Its float arithmetic is never contracted, whatever the kernel's own flags.
    """
    from tracejit.jit.lowering.vector_math_intrinsics import as_intrinsic

    function = python_random_function(name)
    return as_intrinsic(function, RANDOM_FUNCTIONS[name][1], target=target)
