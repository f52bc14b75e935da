"""Switches, questions and classes that programs take from PyTorch's core.

In: on or off. Out: what the switch was; there is nothing behind it. PyTorch's `torch._C`, as far as
programs name it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tracejit.eager.recording import active
from tracejit.ir.graph import Graph, Node, Value
from tracejit.linalg import LinAlgError as _LinAlgError

__all__ = ["Graph", "Node", "Value", "_LinAlgError"]


def _switch(on: bool = True) -> Callable[[bool], bool]:
    """A switch that remembers how it is set, and does nothing else."""
    state = [on]

    def switch(to: bool) -> bool:
        state.append(bool(to))
        return state.pop(0)

    return switch


def _set(to: bool) -> None:
    """A switch that does nothing, and does not tell what it was."""


_jit_set_profiling_executor, _jit_set_profiling_mode, _jit_set_autocast_mode = (
    _switch(), _switch(), _switch())
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _set
_jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _set


def _log_api_usage_once(event: str) -> None:
    """Nothing: nobody is told what is used."""


def _get_tracing_state() -> None:
    """None: captured code runs as the plain function does."""


def _are_functorch_transforms_active() -> bool:
    """Whether the caller runs for many samples at once, which `vmap` maps over.

    >>> _are_functorch_transforms_active()
    False
    """
    return getattr(active.recorder, "mapped", False)


def _is_sample(x: Any) -> bool:
    """False: gradients of many at once are computed one by one, or by `vmap`."""
    return False


_functorch = SimpleNamespace(is_legacy_batchedtensor=_is_sample)


def _get_privateuse1_backend_name() -> str:
    """The name of devices that PyTorch does not know itself: none are here.

    >>> _get_privateuse1_backend_name()
    'privateuseone'
    """
    return "privateuseone"
