"""Names of the modules that run at the moment; PyTorch's `torch.utils.module_tracker`.

In: calls of modules, and their backward passes. Out: the names of those that have begun and not
ended. Code that is called inside modules asks, such as hooks and replaced functions.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from tracejit.autograd.graph import register_multi_grad_hook
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.nn.module_global_hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from tracejit.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context: `parents` are the names of the modules that run, and "Global".

    The module called first has the name of its class, those inside it dotted names. `is_bw` is True
    while a backward pass runs. A module runs there from the gradients of its outputs to those of
    its inputs. Inside, captured functions run op by op.

    >>> import tracejit
    >>> model = tracejit.nn.Sequential(tracejit.nn.ReLU())
    >>> with ModuleTracker() as tracker:
    ...     handle = model[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
    ...     y = model(tracejit.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._task: Any = None
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """True while a backward pass runs."""
        return active.task is not None

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._begins),
                         register_module_forward_hook(self._ends)]  # fmt: skip
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _begins(self, module: Any, inputs: Any) -> None:
        if active.tracer is not None:
            active.tracer.break_graph(None, "a ModuleTracker follows which modules run")
        name = self._name(module)
        self.parents.add(name)
        self._when_there(inputs, lambda grads: self.parents.discard(name))

    def _ends(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._when_there(output, lambda grads: self._begins_backward(name))

    def _begins_backward(self, name: str) -> None:
        # Once for each backward: names that are left at its end are dropped.
        if active.task is not self._task:
            self._task = active.task
            self._task.callbacks.append(self._backward_ends)
        self.parents.add(name)

    def _backward_ends(self) -> None:
        self.parents, self._task = {"Global"}, None

    def _when_there(self, values: Any, hook: Callable[[Any], None]) -> None:
        """Call a hook when the gradients of tensors are there."""
        tensors = [x for x in tree_leaves(values) if isinstance(x, Tensor) and x.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, hook))

    def _name(self, module: Any) -> str:
        if module not in self._names:
            self._name_all([(type(module).__name__, module)])
        return self._names[module]

    def _name_all(self, named: Iterable[tuple[str, Any]]) -> None:
        for name, module in named:
            if module not in self._names:
                self._names[module] = name
                self._name_all((f"{name}.{key}", x) for key, x in module.named_children())


_sealing.seal_all(globals())
