"""DataParallel, on the one device there is: a module around a module.

In: a module. Out: one whose calls go to it, and whose state has `module.` before its names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.nn.module import Module


class DataParallel(Module):
    """A module under the attribute `module`; a call is a call of it. Batches are not split.

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
