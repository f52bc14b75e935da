"""Processes of a program; PyTorch's `torch.multiprocessing`, over Python's `multiprocessing`.

In: arguments of Python's module. Out: its results. Forked processes share the tensors whose memory
`share_memory_` made for it. Tensors that go through queues, or to spawned processes, are copied.
Shared tensors are refused there: a copy would not show what others write.
"""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *  # noqa: F403
from multiprocessing.reduction import ForkingPickler as _Pickler
from typing import Any

from tracejit.core.eager.array_storage import ArrayStorage
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import Storage
from tracejit.multiprocessing.spawn import ProcessContext as ProcessContext
from tracejit.multiprocessing.spawn import ProcessException as ProcessException
from tracejit.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from tracejit.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from tracejit.multiprocessing.spawn import SpawnContext as SpawnContext
from tracejit.multiprocessing.spawn import spawn
from tracejit.multiprocessing.spawn import start_processes as start_processes
from tracejit.nn.parameter import Parameter
from tracejit.storage import reduced_for_processes

__all__ = [  # noqa: PLE0604
    *_python.__all__, "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
    "spawn",
]  # fmt: skip


def _reduced(x: Any) -> Any:
    """Pickle a tensor for another process."""
    if x.is_shared():
        raise NotImplementedError("multiprocessing: a tensor in shared memory was to be copied to "
                                  "another process; give it to processes that are forked, as an "
                                  "argument of Process")
    return x.__reduce_ex__(2)


for _kind in (Tensor, Parameter):
    _Pickler.register(_kind, _reduced)
for _memory in (Storage, ArrayStorage):
    _Pickler.register(_memory, reduced_for_processes)


def get_all_sharing_strategies() -> set[str]:
    """Return the names of ways to share tensors."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the name of the way to share tensors."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Do nothing: memory is shared by forking. AssertionError for an unknown strategy."""
    assert new_strategy in get_all_sharing_strategies()
