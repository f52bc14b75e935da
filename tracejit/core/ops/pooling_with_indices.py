"""Max pooling whose names say that positions come along.

`max_pool2d_with_indices` is `max_pool2d(..., return_indices=True)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.core.ops import adaptive_pooling, fractional_pooling, pooling


def _with_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, return_indices: bool = False, **kwargs: Any) -> Any:
        return function(*args, return_indices=True, **kwargs)

    call.__name__ = call.__qualname__ = f"{function.__name__}_with_indices"
    call.__doc__ = f"""Return (maxima, where they are), `{function.__name__}` with `return_indices`.

    Arguments and errors are those of `{function.__name__}`. Both results have the same shape.
    Places are int64.
    """
    return call


adaptive_max_pool1d_with_indices = _with_indices(adaptive_pooling.adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_pooling.adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_pooling.adaptive_max_pool3d)
fractional_max_pool2d_with_indices = _with_indices(fractional_pooling.fractional_max_pool2d)
fractional_max_pool3d_with_indices = _with_indices(fractional_pooling.fractional_max_pool3d)
max_pool1d_with_indices = _with_indices(pooling.max_pool1d)
max_pool2d_with_indices = _with_indices(pooling.max_pool2d)
max_pool3d_with_indices = _with_indices(pooling.max_pool3d)
