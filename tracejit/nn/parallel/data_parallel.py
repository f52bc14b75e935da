"""Modules on several devices, on the one there is: DataParallel calls the module it is given.

In: a module. Out: one whose calls go to it, and whose state has `module.` before its names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Wrapper that holds a module as `module` and calls it. Batches are not split: there is one
    device.

    module            the module that is called
    device_ids, output_device, dim  taken for PyTorch's programs, and without effect

    Input and output are those of the module. Its state dict has the prefix "module.", as PyTorch's
    has.

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> list(nn.DataParallel(nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call the module with the inputs, one or a tuple.

    >>> import tracejit
    >>> data_parallel(tracejit.nn.ReLU(), tracejit.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*arguments, **(module_kwargs or {}))
