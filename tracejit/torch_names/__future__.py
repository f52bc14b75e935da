"""Switches for a module's parameters when it is converted or loaded; PyTorch's `torch.__future__`.

In: two switches, both off at first. Out: `nn.Module` asks for them. Off: parameters stay the same
objects and get new elements.
"""

from __future__ import annotations

from tracejit.core.eager.recording import active

_switches = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set if `module.to()` and its like put new parameters into the module.

    >>> import tracejit
    >>> layer = tracejit.nn.Linear(1, 1)
    >>> before = layer.weight
    >>> tracejit.__future__.set_overwrite_module_params_on_conversion(True)
    >>> layer.double().weight is before
    False
    >>> tracejit.__future__.set_overwrite_module_params_on_conversion(False)
    """
    _set("overwrite", value)


def get_overwrite_module_params_on_conversion() -> bool:
    """Return the last value of `set_overwrite_module_params_on_conversion`."""
    return _asked("overwrite")


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set if `module.to()` and its like, and `load_state_dict`, exchange parameters with new ones
    (`utils.swap_tensors`). This switch goes before the other one."""
    _set("swap", value)


def get_swap_module_params_on_conversion() -> bool:
    """Return the last value of `set_swap_module_params_on_conversion`."""
    return _asked("swap")


def _set(name: str, value: bool) -> None:
    if active.tracer is not None:
        active.tracer.break_graph(
            None, "the function sets a switch of module conversion", "set it outside")
    _switches[name] = value


def _asked(name: str) -> bool:
    if active.tracer is not None:
        active.tracer.asks(_is_on, name)
        # New parameters would have to replace the caller's in each replay.
        if _is_on(name):
            active.tracer.break_graph(
                None, "a switch of module conversion is on", "convert outside")
    return _is_on(name)


def _is_on(name: str) -> bool:
    return _switches[name]
