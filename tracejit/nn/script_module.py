"""PyTorch's `torch.jit.ScriptModule`: the class of compiled modules, and of modules to compile.

In: classes of users that derive from it, compiled modules. Out: plain modules, which
`tracejit.script` compiles as it does any; answers for `isinstance`; frozen copies.
"""

from __future__ import annotations

import copy
from typing import Any

from tracejit.jit.runtime.scripted_module import ScriptedModule
from tracejit.nn.module import Module


class _Scripted(type(Module)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        compiled = cls.__dict__.get("_all_compiled") and issubclass(type(instance), ScriptedModule)
        return compiled or super().__instancecheck__(instance)


class ScriptModule(Module, metaclass=_Scripted):
    """Class of compiled modules: the results of `jit.script` and `jit.trace` are instances. Older
    programs derive from it: modules like any other, whose `script_method`s run as they are.

    >>> import tracejit
    >>> net = tracejit.nn.Linear(2, 2)
    >>> compiled = tracejit.jit.script(net)
    >>> [isinstance(m, tracejit.jit.ScriptModule) for m in (net, compiled)]
    [False, True]
    """

    _all_compiled = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # compiled modules are instances of this class alone, not of a user's subclass
        cls._all_compiled = False


def freeze(mod: Any, preserved_attrs: list[str] | None = None,
           optimize_numerics: bool = True) -> Any:
    """Return a compiled copy of a compiled module. Later changes of the module do not reach it.

    Raise RuntimeError for a module that is not compiled, and for one in training.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script "
                           "or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. "
                           "Please call .eval() on your module before freezing.")
    return copy.deepcopy(mod)


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """Return `freeze` of the module: programs are optimised anyway."""
    return freeze(mod.eval()) if hasattr(mod, "training") else mod
