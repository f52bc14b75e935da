"""Switches, questions and classes that programs take from PyTorch's core.

In: on or off. Out: the former state of the switch; nothing depends on it. PyTorch's `torch._C`, as
far as programs name it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.conversion import parse_module_to
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.overriding import asking
from tracejit.core.ops.overriding import disabled as _disabled_torch_function_impl
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.linalg import LinAlgError as _LinAlgError

__all__ = ["Graph", "Node", "Value", "_LinAlgError", "_TensorMeta",
           "_disabled_torch_function_impl"]

_TensorMeta = type(Tensor)  # the class of classes of tensors, as annotations name it


class _NamesOfTorch(type):
    """Class of a class whose attributes are the package's functions."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(importlib.import_module("tracejit"), name)


class _VariableFunctionsClass(metaclass=_NamesOfTorch):
    """Place where PyTorch's pickles find functions such as `relu`."""


class _functorch:
    """Questions about `vmap`, as far as programs name them."""

    @staticmethod
    def is_legacy_batchedtensor(x: Any) -> bool:
        """Return False: gradients of many at once are computed one by one, or by `vmap`."""
        return False


class _nn:
    """Parts of modules' methods, as far as programs name them."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple:
        """Return the arguments of `Module.to` as (device, dtype, non_blocking, memory_format), each
        None or False where it is not given.

        >>> _nn._parse_to("cpu", non_blocking=True)
        (device(type='cpu'), None, True, None)
        """
        where, kind = parse_module_to(args, kwargs)
        return where, kind, bool(kwargs.get("non_blocking")), kwargs.get("memory_format")


def _get_privateuse1_backend_name() -> str:
    """Return PyTorch's name of devices that it does not know itself: none are here.

    >>> _get_privateuse1_backend_name()
    'privateuseone'
    """
    return "privateuseone"


def _switch(on: bool = True) -> Callable[[bool], bool]:
    """Return a switch that remembers how it is set, and does nothing else."""
    state = [on]

    def switch(to: bool) -> bool:
        # The new state goes in before the old one, which is returned, comes out.
        state.append(bool(to))
        return state.pop(0)

    return switch


def _set(to: bool) -> None:
    """Do nothing, and return None: a switch without a state."""


# Programs restore these three from the returned state.
_jit_set_profiling_executor, _jit_set_profiling_mode, _jit_set_autocast_mode = (
    _switch(), _switch(), _switch())
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _set
_jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _set


def _log_api_usage_once(event: str) -> None:
    """Do nothing: no use is logged."""


def _get_default_device() -> str:
    """Return the kind of device on which tensors are made.

    >>> _get_default_device()
    'cpu'
    """
    from tracejit.core.memory.devices import get_default_device

    return str(get_default_device().type)


def _get_tracing_state() -> None:
    """Return None: no graph of TorchScript's is being made."""


def _are_functorch_transforms_active() -> bool:
    """Return True inside of `vmap`.

    >>> import tracejit
    >>> _are_functorch_transforms_active()
    False
    """
    from tracejit.func.mapping import Mapping

    tracer: Any = active.tracer
    while tracer is not None and not isinstance(tracer, Mapping):
        tracer = getattr(tracer, "below", None)
    return tracer is not None


class DisableTorchFunctionSubclass:
    """Context in which no class replaces functions; modes do.

    >>> import tracejit
    >>> class Named(tracejit.Tensor): pass
    >>> with DisableTorchFunctionSubclass():
    ...     x = tracejit.ones(2).as_subclass(Named) + 1
    >>> type(x).__name__
    'Tensor'
    """

    def __enter__(self) -> None:
        self._before = asking.classes, asking.modes
        asking.classes = False

    def __exit__(self, *exc: Any) -> None:
        asking.classes, asking.modes = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Context in which neither classes nor modes replace functions."""

    def __enter__(self) -> None:
        super().__enter__()
        # `__exit__` of the base class restores both.
        asking.modes = ()


def _is_torch_function_enabled() -> bool:
    """Return True if functions ask classes.

    >>> _is_torch_function_enabled()
    True
    """
    return asking.classes


def _is_torch_function_mode_enabled() -> bool:
    """Return True within a mode that functions ask."""
    return bool(asking.modes)


def _len_torch_function_stack() -> int:
    """Return the number of open modes."""
    return len(asking.modes)


def _get_function_stack_at(level: int) -> Any:
    """Return the open mode of a level, the outermost at 0."""
    return asking.modes[level]


class DispatchKey:
    """Name of PyTorch's dispatcher, which has nothing to dispatch here.

    >>> DispatchKey.AutocastCPU
    DispatchKey.AutocastCPU
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"


for _key in ("CPU", "CUDA", "Meta", "Autograd", "AutogradCPU", "AutogradCUDA", "AutocastCPU",
             "AutocastCUDA", "Autocast", "BackendSelect", "CompositeImplicitAutograd",
             "CompositeExplicitAutograd", "FuncTorchBatched", "Functionalize", "Python",
             "PythonTLSSnapshot", "Sparse", "SparseCPU", "Undefined", "ADInplaceOrView"):
    setattr(DispatchKey, _key, DispatchKey(_key))


class DispatchKeySet:
    """Set of names of PyTorch's dispatcher.

    >>> print(DispatchKeySet(DispatchKey.AutocastCPU))
    DispatchKeySet(AutocastCPU)
    """

    def __init__(self, *keys: DispatchKey) -> None:
        self.keys = tuple(dict.fromkeys(keys))

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """Return the set with one more."""
        return DispatchKeySet(*self.keys, key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """Return the set without one."""
        return DispatchKeySet(*(k for k in self.keys if k is not key))

    def has(self, key: DispatchKey) -> bool:
        """Return True if the name is in the set."""
        return key in self.keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self.keys)})"


class _ExcludeDispatchKeyGuard:
    """Context that keeps ops from being cast or recorded by a name of the dispatcher. No name
    stands for anything, so nothing changes."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self.keys = keys

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass
