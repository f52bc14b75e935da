"""Autocast: casts the arguments of front functions to the dtype that they compute in.

In: `@autocasts(cpu=..., cuda=...)` on a front function says what happens to its floating point
arguments where autocast is on. "lower": the lower precision that the user chose; "float32";
"widest": the widest of them; "unsafe": an error. Out: the function.

The switches belong to the thread. Arguments of float64, and all that are no floating point tensors,
stay as they are. Inside an op nothing is cast again. Casts are not kept: a kept one could be older
than its weight.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tracejit.core.memory.devices import device
from tracejit.core.ops import overriding
from tracejit.core.ops.types import FLOATING, bfloat16, dtype, float16, float32, float64


class State(NamedTuple):
    """Switches and lower precisions, by device. `cache` only keeps what the user set."""

    cpu: bool = False
    cuda: bool = False
    cpu_dtype: dtype = bfloat16
    cuda_dtype: dtype = float16
    cache: bool = True


class _Switches(threading.local):
    """State of a thread. `on` is True while calls of front functions may cast, False while an op
    runs."""

    on = False
    state = State()

    def __init__(self) -> None:
        self.saved: list[State] = []  # of the contexts that were entered


switches = _Switches()


class _Used:
    """Flag that is True once any thread has switched: until then calls skip the other checks."""

    ever = False


used = _Used()


def switch(state: State) -> None:
    """Make a state the thread's current one."""
    used.ever = True
    switches.state = state
    switches.on = state.cpu or state.cuda


@contextmanager
def switched_off() -> Iterator[None]:
    """Turn casts off for what runs inside an op."""
    before, switches.on = switches.on, False
    try:
        yield
    finally:
        switches.on = before


def not_cast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function part of an op: casts are off in the calls that it makes."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            if not switches.on:
                return function(*arguments, **named)
            with switched_off():
                return function(*arguments, **named)
        except Exception:
            return overriding.instead(call, arguments, named)

    return call


def autocasts(cpu: str | None = None, cuda: str | None = None) -> Callable[[Any], Any]:
    """Decorate a front function, or a record that is called directly."""
    policy = {"cpu": cpu, "cuda": cuda}

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                if used.ever and switches.on:
                    return cast_call(function, policy, arguments, named)
                return function(*arguments, **named)
            except Exception:
                return overriding.instead(call, arguments, named)

        return call

    return decorate


FLOAT32_ON_CUDA = {"cpu": None, "cuda": "float32"}
WIDEST_ON_CUDA = {"cpu": None, "cuda": "widest"}


def cast_call(function: Callable[..., Any], policy: dict[str, str | None], arguments: tuple,
              named: dict) -> Any:
    """Call a front function with its arguments cast as its policy says."""
    tensors: list[Any] = []
    _tensors((arguments, tuple(named.values())), tensors)
    kind, device = _policy(policy, tensors)
    if kind is None or named.get("out") is not None:
        return _uncast(function, arguments, named)
    if kind == "unsafe":
        name = function.__name__
        raise RuntimeError(f"torch.nn.functional.{name} and torch.nn.BCELoss are unsafe to "
                           "autocast.\nMany models use a sigmoid layer right before the binary "
                           "cross entropy layer.\nIn this case, combine the two layers using "
                           "torch.nn.functional.binary_cross_entropy_with_logits\nor "
                           "torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and "
                           "BCEWithLogits are\nsafe to autocast.")
    target = _target(kind, device, tensors)
    with switched_off():
        return function(*(_cast(a, target, device) for a in arguments),
                        **{name: _cast(a, target, device) for name, a in named.items()})


def _uncast(function: Callable[..., Any], arguments: tuple, named: dict) -> Any:
    """Make the call without a cast. A Python function's own calls may cast; a record is one op."""
    if named.get("out") is None and not hasattr(function, "casts"):
        return function(*arguments, **named)
    with switched_off():
        return function(*arguments, **named)


def _tensors(x: Any, found: list) -> None:
    if type(x) in (tuple, list):
        for y in x:
            _tensors(y, found)
    elif hasattr(x, "dtype") and hasattr(x, "device"):
        found.append(x)


def _policy(policy: dict[str, str | None], tensors: list) -> tuple[str | None, str]:
    for kind in ("cuda", "cpu"):
        if getattr(switches.state, kind) and any(x.device.type == kind for x in tensors):
            return policy[kind], kind
    return None, ""


def _eligible(x: Any, device: str) -> bool:
    return (x.dtype.category == FLOATING and x.dtype is not float64
            and x.device.type == device)


def _target(kind: str, device: str, tensors: list) -> dtype:
    lower: dtype = getattr(switches.state, f"{device}_dtype")
    if kind == "lower":
        return lower
    wide = kind == "float32" or any(
        x.dtype is float32 for x in tensors if _eligible(x, device))
    return float32 if wide else lower


def _cast(x: Any, target: dtype, device: str) -> Any:
    from tracejit.core.ops.pointwise_record import convert

    if type(x) in (tuple, list):
        return type(x)(_cast(y, target, device) for y in x)
    if hasattr(x, "dtype") and hasattr(x, "device") and _eligible(x, device):
        return convert(x, target)
    return x


# -- the questions and switches of users -----------------------------------------------------------
# PyTorch's device types that do not exist here: programs ask whether autocast is on for them.
_ELSEWHERE = dict.fromkeys(("ipu", "xpu", "mps", "mtia", "privateuseone"), float16) | dict.fromkeys(
    ("xla", "hpu", "maia"), bfloat16)


def device_kind(device_type: Any) -> str:
    """Return "cpu" or "cuda"; RuntimeError for names of no device."""
    return device(str(device_type)).type


def _set(**changes: Any) -> None:
    switch(switches.state._replace(**changes))


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return True if autocast is on for a type of device.

    >>> import tracejit
    >>> with tracejit.autocast("cpu"):
    ...     tracejit.is_autocast_enabled("cpu")
    True
    """
    if device_type in _ELSEWHERE:
        return False
    return bool(getattr(switches.state, device_kind(device_type), False))


def set_autocast_enabled(*given: Any) -> None:
    """Switch autocast of a type of device: `set_autocast_enabled(device_type, enabled)`.

    Without a device type: of CUDA.

    >>> import tracejit
    >>> tracejit.set_autocast_enabled("cpu", False)
    >>> tracejit.is_autocast_enabled("cpu")
    False
    """
    device_type, enabled = given if len(given) == 2 else ("cuda", *given)
    _set(**{device_kind(device_type): bool(enabled)})


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the lower precision of a type of device.

    >>> import tracejit
    >>> tracejit.get_autocast_dtype("cpu")
    tracejit.bfloat16
    """
    if device_type in _ELSEWHERE:
        return _ELSEWHERE[device_type]
    found: dtype | None = getattr(switches.state, f"{device_kind(device_type)}_dtype", None)
    if found is None:
        raise RuntimeError("unsupported scalarType")
    return found


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the lower precision of a type of device.

    >>> import tracejit
    >>> tracejit.set_autocast_dtype("cpu", tracejit.bfloat16)
    >>> tracejit.get_autocast_dtype("cpu")
    tracejit.bfloat16
    """
    _set(**{f"{device_kind(device_type)}_dtype": dtype})


def is_autocast_cpu_enabled() -> bool:
    """Return `is_autocast_enabled("cpu")`.

    >>> import tracejit
    >>> tracejit.is_autocast_cpu_enabled()
    False
    """
    return switches.state.cpu


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Call `set_autocast_enabled("cpu", enabled)`.

    >>> import tracejit
    >>> tracejit.set_autocast_cpu_enabled(False)
    """
    _set(cpu=bool(enabled))


def get_autocast_cpu_dtype() -> dtype:
    """Return `get_autocast_dtype("cpu")`.

    >>> import tracejit
    >>> tracejit.get_autocast_cpu_dtype()
    tracejit.bfloat16
    """
    return switches.state.cpu_dtype


def get_autocast_gpu_dtype() -> dtype:
    """Return `get_autocast_dtype("cuda")`.

    >>> import tracejit
    >>> tracejit.get_autocast_gpu_dtype()
    tracejit.float16
    """
    return switches.state.cuda_dtype


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Call `set_autocast_dtype("cpu", dtype)`.

    >>> import tracejit
    >>> tracejit.set_autocast_cpu_dtype(tracejit.bfloat16)
    """
    _set(cpu_dtype=dtype)


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Call `set_autocast_dtype("cuda", dtype)`.

    >>> import tracejit
    >>> tracejit.set_autocast_gpu_dtype(tracejit.float16)
    """
    _set(cuda_dtype=dtype)


def is_autocast_cache_enabled() -> bool:
    """Return what the user set. Casts of weights are never kept.

    >>> import tracejit
    >>> tracejit.is_autocast_cache_enabled()
    True
    """
    return switches.state.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Accept PyTorch's switch. Casts of weights are never kept.

    >>> import tracejit
    >>> tracejit.set_autocast_cache_enabled(True)
    """
    _set(cache=bool(enabled))


def clear_autocast_cache() -> None:
    """Do nothing: casts of weights are never kept.

    >>> import tracejit
    >>> tracejit.clear_autocast_cache()
    """
