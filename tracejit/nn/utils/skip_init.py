"""Modules whose parameters are to be overwritten anyway: no random numbers are taken for them."""

from __future__ import annotations

import inspect
from typing import Any

import tracejit
from tracejit.nn.module import Module


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """Call `module_cls(*args, **kwargs)`. Its values are any, and the random generator stays as it
    was.

    >>> import tracejit
    >>> tracejit.nn.utils.skip_init(tracejit.nn.Linear, 3, 2)
    Linear(in_features=3, out_features=2, bias=True)

    Raises RuntimeError for what is no class of modules that takes a device.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    # PyTorch makes the module on the meta device, where nothing is drawn
    state = tracejit.get_rng_state()
    made = module_cls(*args, **kwargs)
    tracejit.set_rng_state(state)
    return made
