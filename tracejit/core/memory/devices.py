"""Devices: where bytes live, and which array library computes there; "meta" has none.

In: "cpu", "cuda", "cuda:1", a `device`, or None. Out: a `device`, and numpy or cupy for it. Called
by the allocator, by creation ops and by every front end that takes `device=`.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy

KINDS = ("cpu", "cuda", "meta")


class device:
    """Name a place for tensors, as `torch.device`: `device("cuda:0")`, `device("cuda", 0)`.

    An int alone counts accelerators. Raises RuntimeError for an unknown kind or a malformed index.

    >>> import tracejit.core.memory
    >>> tracejit.core.memory.device("cuda:1")
    device(type='cuda', index=1)
    >>> tracejit.core.memory.device("cpu") == tracejit.core.memory.device("cpu", 0)
    False

    As a context, and as a decorator, it is the place of new tensors that name no device.
    """

    __slots__ = ("type", "index", "_hash")
    type: str
    index: int | None
    _hash: int

    def __init__(self, type: str | device | int, index: int | None = None):
        kind = type
        if isinstance(kind, device):
            index = kind.index if index is None else index
            kind = kind.type
        if isinstance(kind, int) and not isinstance(kind, bool) and index is None:
            if kind >= 0:
                array_module(device("cuda"))  # raises where there is no accelerator to count
            kind, index = "cuda", int(kind)
        if not isinstance(kind, str):
            raise TypeError("device(): expected a string or a device, got "
                            f"{kind.__class__.__name__}")
        name, colon, number = kind.partition(":")
        if colon:
            if index is not None:
                raise RuntimeError(f"device(): index given twice, in {kind!r} and as {index}")
            if not number.isdecimal() or number != str(int(number)):
                raise RuntimeError(f"Invalid device string: {kind!r}")
            index = int(number)
        if not kind:
            raise RuntimeError("Device string must not be empty")
        if not name.replace("_", "a").isalpha():
            raise RuntimeError(f"Invalid device string: {kind!r}")
        if name not in KINDS:
            raise RuntimeError(f"Expected one of {', '.join(KINDS)} device type, got {kind!r}")
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise TypeError(f"device(): index must be an int, got {index!r}")
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        if index is not None and name == "cpu" and index != 0:
            raise RuntimeError(f"device(): there is no device {index} of type {name!r}")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "_hash", hash((name, index)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"device.{name} is read-only")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple:
        return (device, (self.type, self.index))

    def __enter__(self) -> device:
        asked.ever = True
        default.outer.append(default.place)
        default.place = self
        return self

    def __exit__(self, *exc: object) -> None:
        default.place = default.outer.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


CPU = device("cpu")
META = device("meta")  # tensors without values


class _Default(threading.local):
    """Default device of this thread, for tensors that name none; None is the CPU."""

    place: device | None = None

    def __init__(self) -> None:
        self.outer: list[device | None] = []


default = _Default()


class _Asked:
    """Flag: did any thread ever ask for a default device? Until then nobody need look."""

    ever = False


asked = _Asked()


def set_default_device(device: Any) -> None:
    """Make a device the place of new tensors that name none, in this thread; None is the CPU.

    >>> import tracejit
    >>> tracejit.set_default_device("cpu")
    >>> tracejit.get_default_device()
    device(type='cpu')
    >>> tracejit.set_default_device(None)
    """
    asked.ever = True
    default.place = None if device is None else as_device(device)


def get_default_device() -> device:
    """Return the place of new tensors that name no device.

    >>> import tracejit
    >>> tracejit.get_default_device()
    device(type='cpu')
    """
    return as_device(default.place)


def makes_dense(function: Any) -> Any:
    """Decorator of functions whose tensors are dense, in row-major order and in ordinary memory:
    `layout`, `memory_format` and `pin_memory` may say so. NotImplementedError for other layouts."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _DENSE.isdisjoint(kwargs):
            _must_be_dense(function.__name__, kwargs)
        return function(*args, **kwargs)

    return call


_DENSE = frozenset(("layout", "memory_format", "pin_memory"))


def _must_be_dense(name: str, kwargs: dict[str, Any]) -> None:
    """Take from `kwargs` what says how memory is laid out."""
    layout = kwargs.pop("layout", None)
    if layout is not None and not str(layout).endswith("strided"):
        raise NotImplementedError(f"{name}(): layout={layout}: only dense tensors are made")
    kwargs.pop("memory_format", None)
    kwargs.pop("pin_memory", None)


def makes_tensors(function: Any) -> Any:
    """Decorator of functions whose `device=None` means the default device; see `makes_dense`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _DENSE.isdisjoint(kwargs):
            _must_be_dense(function.__name__, kwargs)
        if not asked.ever:
            return function(*args, **kwargs)
        if default.place is not None and kwargs.get("device") is None and not _placed(kwargs):
            kwargs["device"] = default.place
        return function(*args, **kwargs)

    return call


def _placed(kwargs: dict[str, Any]) -> bool:
    """Return True if the result goes to memory that is there already."""
    return kwargs.get("out") is not None


def as_device(where: Any) -> device:
    """Return the device that an argument names. None is the CPU, an int a CUDA device, as in
    PyTorch.

    Plain "cuda" is the current device, so this raises DeviceUnavailable where there is none.

    >>> import tracejit.core.memory
    >>> tracejit.core.memory.as_device(None), tracejit.core.memory.as_device(0)
    (device(type='cpu'), device(type='cuda', index=0))
    """
    if where is None:
        return CPU
    if isinstance(where, int) and not isinstance(where, bool):
        return device("cuda", where)
    place = where if isinstance(where, device) else device(where)
    if place.type != "cuda" or place.index is not None:
        return place
    return device("cuda", int(array_module(place).cuda.runtime.getDevice()))


class DeviceUnavailable(RuntimeError, AssertionError):
    """Error: the device's library or driver is missing. The message says what to install.

    PyTorch raises AssertionError or RuntimeError for it, so this is both.

    >>> import tracejit
    >>> issubclass(tracejit.DeviceUnavailable, RuntimeError)
    True
    """


def array_module(where: device) -> ModuleType:
    """numpy for the CPU and for views of tensors without values, cupy for CUDA.

    Raises DeviceUnavailable, saying what to install, where CuPy or a working GPU is missing.
    """
    if where.type != "cuda":
        return numpy
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceUnavailable(
            f"device {str(where)!r} needs CuPy and numba-cuda, which are not installed "
            f"({error}): pip install tracejit[cuda]"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceUnavailable(
            f"device {str(where)!r}: CuPy is installed, but there is no usable GPU ({error}): "
            "check the NVIDIA driver with nvidia-smi"
        ) from error
    if (where.index or 0) >= count:
        raise DeviceUnavailable(f"device {str(where)!r}: this machine has {count} CUDA device(s)")
    return cupy
