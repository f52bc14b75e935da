"""Activation functions that write their result to their argument: `elu_(x)` is
`elu(x, inplace=True)`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.core.ops import activations, hard_activations


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        return function(input, *args, inplace=True, **kwargs)

    call.__name__ = call.__qualname__ = f"{function.__name__}_"
    call.__doc__ = f"""Write `{function.__name__}` of `input` into `input`, and return it.

    Arguments are those of `{function.__name__}` but `inplace`. Shape and dtype stay the same.
    """
    return call


celu_ = _in_place(hard_activations.celu)
elu_ = _in_place(activations.elu)
hardtanh_ = _in_place(activations.hardtanh)
leaky_relu_ = _in_place(activations.leaky_relu)
rrelu_ = _in_place(hard_activations.rrelu)
selu_ = _in_place(activations.selu)
threshold_ = _in_place(hard_activations.threshold)
