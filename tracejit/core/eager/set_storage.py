"""`set_`: give a tensor other memory.

In: a tensor, and a tensor or a storage with a layout. Out: the same tensor over that memory. In a
recording this breaks the graph.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.inplace_views import detached_from_views
from tracejit.core.eager.nodes import grad_fn_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import version_of
from tracejit.core.eager.state import TensorState, contiguous_strides, make
from tracejit.core.eager.storage_size import extent, resize
from tracejit.core.eager.type_names import scalar_name
from tracejit.core.eager.typed_storage import TypedStorage
from tracejit.core.eager.untyped_storage import UntypedStorage
from tracejit.core.eager.views import AliasFamily, View
from tracejit.core.eager.writing import LEAF, bump_version, set_data, take_memory
from tracejit.core.ops.operators import method


@method()
def set_(self: Any, source: Any = None, storage_offset: Any = None, size: Any = None,
         stride: Any = None) -> Any:
    """Look at the memory of `source`: at what a tensor shows, or at a storage.

    source          a tensor of this dtype, a storage, or nothing: the tensor becomes empty
    storage_offset  in elements, with `size`, and `stride` (default: contiguous)

    >>> import tracejit
    >>> memory = tracejit.arange(6.0).untyped_storage()
    >>> tracejit.empty(0).set_(memory, 1, (2, 2), (2, 1))
    tensor([[1., 2.],
            [3., 4.]])

    A storage that is too small grows. Raises RuntimeError for tensors that require grad in grad
    mode, another dtype, negative offsets or strides; TypeError for other sources.
    """
    laid_out = storage_offset is not None and size is not None
    known = source is None or isinstance(source, (TensorState, UntypedStorage, TypedStorage))
    if not known or (storage_offset is None) != (size is None) or source is None and laid_out:
        raise TypeError("set_() takes nothing, a tensor or a storage, or one of these with "
                        "storage_offset and size, and stride if need be - got ("
                        f"{', '.join(type(x).__name__ for x in (source, storage_offset, size))})")
    if isinstance(source, TypedStorage) and source.dtype is not self._dtype:
        raise RuntimeError(f"Expected a Storage of type {scalar_name(self._dtype)} or an "
                           f"UntypedStorage, but got type {scalar_name(source.dtype)}")
    if isinstance(source, TensorState) and source._dtype is not self._dtype:
        raise RuntimeError(f"Could not set tensor of type {scalar_name(source._dtype)} to a tensor "
                           f"of type {scalar_name(self._dtype)}")
    self = resolve_identity(self)
    if self._requires_grad and active.grad_enabled:
        raise RuntimeError(LEAF if grad_fn_of(self) is None
                           else "set_(): the derivative of it is not implemented")
    version = version_of(self) + 1
    if isinstance(source, TensorState) and not laid_out:
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function calls set_()")
        bump_version(self)
        set_data(self, source)
        _count(self, version)
        return self
    if active.tracer is not None:
        active.tracer.break_graph(self, "the function calls set_()")
    found = make(None, 0, (0,), None, self._dtype, self._device)
    if isinstance(source, TensorState):
        source = source.untyped_storage()
    if source is None:
        source = UntypedStorage(0, device=self._device)
    found._storage = storage = source.untyped()._storage
    found._device = storage.device
    found._offset, found._shape, found._strides = (
        _layout(storage_offset, size, stride) if laid_out
        else (0, (storage.nbytes // self._dtype.itemsize,), None))
    if extent(found) > storage.nbytes:
        resize(storage, extent(found))
    bump_version(self)
    detached_from_views(self)
    take_memory(self, found)
    _count(self, version)
    return self


def _count(self: Any, version: int) -> None:
    """Let the tensor count its own writes from `version` on, for nodes that saved it.

    The version of its new memory counts the writes of others.
    """
    if type(self._view) is not View:
        inference = self._view is not None and self._view.inference
        self._view = AliasFamily(version, inference)


def _layout(offset: Any, size: Any, stride: Any) -> tuple[int, tuple, tuple | None]:
    """Return offset, shape and strides; strides None if they are contiguous."""
    offset = int(offset)
    shape = (int(size),) if isinstance(size, int) else tuple(map(int, size))
    strides = contiguous_strides(shape) if stride is None else tuple(map(int, stride))
    if len(shape) != len(strides):
        raise RuntimeError(f"unequal size length ({len(shape)}) and stride length "
                           f"({len(strides)})")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in (*shape, *strides)):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and "
                           f"strides={list(strides)}")
    return offset, shape, None if strides == contiguous_strides(shape) else strides
