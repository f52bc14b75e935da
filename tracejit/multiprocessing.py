"""Processes of a program; PyTorch's `torch.multiprocessing`, over Python's `multiprocessing`.

In: what Python's module takes. Out: what it says. Processes that are forked share the tensors whose
memory `share_memory_` made for it; what goes through queues, or to processes that are spawned, is
copied, so that shared tensors are refused there: a copy would not show what others write.
"""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *  # noqa: F403
from multiprocessing.reduction import ForkingPickler as _Pickler
from typing import Any, NoReturn

from tracejit.core.eager.tensor import Tensor
from tracejit.nn.parameter import Parameter

__all__ = [  # noqa: PLE0604
    *_python.__all__, "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
    "spawn",
]  # fmt: skip


def _reduced(x: Any) -> Any:
    """How a tensor is pickled for another process."""
    if x.is_shared():
        raise NotImplementedError("multiprocessing: a tensor in shared memory was to be copied to "
                                  "another process; give it to processes that are forked, as an "
                                  "argument of Process")
    return x.__reduce_ex__(2)


for _kind in (Tensor, Parameter):
    _Pickler.register(_kind, _reduced)


def spawn(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: tensors are not shared with processes that are spawned."""
    raise NotImplementedError("multiprocessing: tensors are not shared between processes that are "
                              "spawned; Process, where processes are forked, shares those of "
                              "share_memory_(), and DataLoader has num_workers")


def get_all_sharing_strategies() -> set[str]:
    """The ways by which tensors would be shared."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """By what tensors would be shared."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing to choose: memory is shared by forking. AssertionError for no strategy."""
    assert new_strategy in get_all_sharing_strategies()
