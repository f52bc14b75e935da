"""`autocast`: products in a lower precision, sums and losses in float32, by context.

In: a type of device. Out: the switches of `core/ops/autocast.py`, which front functions ask. Called
by users as `with autocast("cpu"):` or `@autocast("cpu")`. Contexts keep nothing of the thread: each
may be entered many times, in any thread.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.recording import as_captured
from tracejit.core.ops.autocast import (
    device_kind,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    switch,
    switches,
)
from tracejit.core.ops.types import bfloat16, dtype, float16

_SUPPORTED = {"cpu": (bfloat16, float16), "cuda": (bfloat16, float16)}


def is_autocast_available(device_type: str) -> bool:
    """Return True if autocast knows a type of device.

    >>> is_autocast_available("cpu")
    True
    """
    return device_kind(device_type) in _SUPPORTED


class autocast:
    """Ops inside compute in the dtype that suits them. Products and convolutions use `dtype`,
    losses and ops that lose precision float32, all others the dtypes of their arguments.

    dtype  None: bfloat16 on the CPU, float16 on CUDA devices

    >>> import tracejit
    >>> x = tracejit.ones(2, 2)
    >>> with tracejit.autocast("cpu"):
    ...     (x @ x).dtype
    tracejit.bfloat16

    Raises ValueError for a device type that is no string, RuntimeError for one that is unknown.
    Warns, and stays off, where the device or the dtype is not supported.
    """

    def __init__(self, device_type: str, dtype: dtype | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_kind(device_type)
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        cached = is_autocast_cache_enabled()
        self._cache_enabled = cached if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._supported()

    def _supported(self) -> bool:
        from tracejit import cuda

        if self.device == "cuda" and not cuda.is_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.",
                          stacklevel=4)
            return False
        if self.fast_dtype not in _SUPPORTED[self.device]:
            warnings.warn(f"In {self.device.upper()} autocast, but the target dtype is not "
                          f"supported. Disabling autocast.\n{self.device.upper()} Autocast only "
                          "supports dtypes of torch.bfloat16, torch.float16 currently.",
                          stacklevel=4)
            return False
        return True

    def __enter__(self) -> autocast:
        before = switches.state
        switches.saved.append(before)
        switch(before._replace(**{
            self.device: self._enabled, f"{self.device}_dtype": self.fast_dtype,
            "cache": self._cache_enabled}))
        return self

    def __exit__(self, *exc: object) -> bool:
        switch(switches.saved.pop())
        return False

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return as_captured(func)(*args, **kwargs)

        return inside


def _cast(value: Any, device_type: str, dtype: dtype) -> Any:
    """Cast floating point tensors of a device to a dtype, within containers too. float64 stays."""
    from tracejit.core.eager.tensor import Tensor
    from tracejit.core.ops.types import float64

    if isinstance(value, Tensor):
        # float64 was chosen for its precision: it stays, as in PyTorch
        fits = (value.is_floating_point() and value.device.type == device_type
                and value.dtype is not float64)
        return value.to(dtype) if fits else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype)
                for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(v, device_type, dtype) for v in value]
        return type(value)(made)
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorator of the forward of an `autograd.Function`: it runs in the state of autocast that the
    backward will run in (`custom_bwd`). `cast_inputs`: within autocast, tensors are cast to this
    dtype, and autocast is off inside.

    ValueError for a device type that is no string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = get_autocast_dtype(device_type)
        on = getattr(switches.state, device_kind(device_type))
        if cast_inputs is None:
            context._fwd_used_autocast = on
            return fwd(*args, **kwargs)
        # the inputs are cast once: backward runs in their dtype, without autocast
        context._fwd_used_autocast = False
        if not on:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs),
                       **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorator of the backward of an `autograd.Function` whose forward has `custom_fwd`.

    ValueError for a device type that is no string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type=device_type, enabled=context._fwd_used_autocast,
                      dtype=context._dtype):
            return bwd(*args, **kwargs)

    return backward

