"""Memory that forked processes share, and memory that is pinned: `share_memory_`, `pin_memory`.

In: tensors. Out: the tensor in shared memory; for `pin_memory` a copy. Nothing here needs pinned
pages, so no tensor counts as pinned. Mixed into Tensor.
"""

from __future__ import annotations

import mmap
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState, of_array
from tracejit.core.eager.writing import take_memory


class SharedMemory(TensorState):
    """Part of Tensor for memory that processes share."""

    __slots__ = ()

    def share_memory_(self) -> Any:
        """Move the elements to memory that processes forked later share; returns the tensor.

        Raises NotImplementedError if other tensors or arrays look at the memory: they would not
        follow.

        >>> import tracejit
        >>> tracejit.ones(2).share_memory_().is_shared()
        True
        """
        self = resolve_identity(self)
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function calls share_memory_()")
        if self._device.type == "cuda" or self.is_shared():
            return self
        if self._view is not None or _holders(self) > _ALONE:
            raise NotImplementedError("share_memory_(): other tensors or arrays look at the memory "
                                      "of this one; share it before they are made, or a clone")
        shared: Any = shared_array(self.array.nbytes).view(self.array.dtype)
        shared = shared.reshape(self.array.shape)
        shared[...] = self.array
        take_memory(self, of_array(shared))
        return self

    def is_shared(self) -> bool:
        """Return True if processes forked later share the elements, whatever the shape. CUDA
        tensors always count as shared.

        >>> import tracejit
        >>> tracejit.ones(2).is_shared()
        False
        """
        if self._device.type == "cuda":
            return True
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function calls is_shared()")
        return is_shared_array(self.array)

    def pin_memory(self, device: Any = None) -> Any:
        """Return a tensor of the same shape; on the CPU of this package nothing is pinned."""
        return self.clone()

    def is_pinned(self, device: Any = None) -> bool:
        """Return False for a tensor of any shape: nothing is pinned.

        >>> import tracejit
        >>> tracejit.ones(2).is_pinned()
        False
        """
        return False


def _holders(x: Any) -> int:
    """Count the references to a tensor's memory, including those of this count itself."""
    return sys.getrefcount(x._storage)


_ALONE = _holders(SimpleNamespace(_storage=object()))  # versions of Python may count differently


def shared_array(nbytes: int) -> np.ndarray:
    """Make bytes that processes forked later share."""
    return np.frombuffer(mmap.mmap(-1, max(nbytes, 1)), np.uint8, nbytes)


def is_shared_array(array: Any) -> bool:
    """Return True if processes forked later share an array's memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    # the pool's own mapped blocks are private; their base is the mapping itself
    return isinstance(array, memoryview) and isinstance(array.obj, mmap.mmap)
