"""Pickles of objects with PyTorch's names, and the elements of their tensors beside them.

In: an object. Out: the pickle's bytes and the storages it refers to by number. Tensors over the
same storage refer to the same number. Objects of the user's are pickled as Python pickles them.
"""

from __future__ import annotations

import codecs
import io
import pickle
from collections import OrderedDict
from typing import Any

from tracejit.core.eager.meta import is_meta
from tracejit.core.eager.metadata import layout
from tracejit.core.eager.recording import active
from tracejit.core.eager.size import Size
from tracejit.core.eager.state import TensorState, check_known, strides_of
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.typed_storage import TypedStorage
from tracejit.core.eager.untyped_storage import UntypedStorage
from tracejit.core.memory import Storage, device
from tracejit.core.ops.types import dtype, dtype_named
from tracejit.jit.runtime.scripted_module import ScriptedModule
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter
from tracejit.saving import names
from tracejit.saving.names import TorchName
from tracejit.torch_version import TorchVersion

MIXED = (
    "Cannot save multiple tensors or storages that view the same data as different types"
)


class _Reference:
    """Storage, as a pickle refers to it."""

    __slots__ = ("storage", "kind")

    def __init__(self, storage: Storage, kind: dtype) -> None:
        self.storage, self.kind = storage, kind


# Python's own pickler in Python: the one in C writes no name that it cannot import.
_PythonPickler: Any = pickle._Pickler


class Pickler(_PythonPickler):
    """Pickler of one object; `storages` are its tensors' in the order of their numbers."""

    dispatch = dict(_PythonPickler.dispatch)

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: list[Storage] = []
        self._known: dict[tuple[int, dtype | None], tuple[str, dtype]] = {}

    def kinds(self) -> list[dtype]:
        """Return the dtypes of the elements of `storages`."""
        return [kind for _, kind in self._known.values()]

    def persistent_id(self, obj: Any) -> Any:
        """Return the reference to a storage: its type, number, place and number of elements."""
        cls = type(obj)
        if cls is _Reference:
            storage, kind = obj.storage, obj.kind
        elif cls is TypedStorage:
            storage, kind = obj.untyped()._storage, obj.dtype
        elif cls is UntypedStorage:
            storage, kind = obj._storage, dtype_named("uint8")
        else:
            return None
        place = id(storage), None if storage.nbytes else kind  # what is empty is of any kind
        if place not in self._known:
            self._known[place] = str(len(self.storages)), kind
            self.storages.append(storage)
        key, known = self._known[place]
        if known is not kind:
            raise RuntimeError(MIXED)
        # PyTorch counts the elements of a typed storage, the bytes of an untyped one.
        name = names.BYTES if cls is UntypedStorage else names.STORAGE_NAMES[kind]
        count = storage.nbytes // kind.itemsize
        return "storage", name, key, str(storage.device), count

    def reducer_override(self, obj: Any) -> Any:
        """Return how to make the object again, by PyTorch's names; NotImplemented for one without
        such a name."""
        kind = type(obj)
        if issubclass(kind, TensorState):
            return _tensor(obj)
        if kind is dtype:
            return NotImplemented
        if kind is device:
            return names.DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is Size:
            return names.SIZE, (tuple(obj),)
        if kind is TorchVersion:
            return names.VERSION, (str(obj),)
        if kind is bytes and not obj and self.proto < 3:
            return codecs.encode, ("", "latin1")  # Python's `bytes()` is not allowed by PyTorch
        if kind is layout:
            return names.LAYOUT, (repr(obj).replace("tracejit", "torch"),)
        if issubclass(kind, Module):
            return _uncompiled(obj, self.proto)
        return NotImplemented

    def save_name(self, obj: TorchName) -> None:
        """Write a name, though nothing of that name can be imported."""
        if self.proto >= 4:
            self.save(obj.module)
            self.save(obj.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def save_dtype(self, obj: dtype) -> None:
        """Write a dtype as its name."""
        self.save(names.DTYPE_NAMES[obj])

    dispatch[TorchName] = save_name
    dispatch[dtype] = save_dtype


def _uncompiled(module: Any, protocol: int) -> Any:
    """Return how to make a module again without its compiled functions: files hold no programs."""
    if isinstance(module, ScriptedModule):
        module = module._scripted_original  # type: ignore[attr-defined]
    # A compiled `forward` set on the instance hides the class's: leave it out.
    elif not hasattr(module.__dict__.get("forward"), "report"):
        return NotImplemented
    make, arguments, state, *rest = module.__reduce_ex__(protocol)
    if isinstance(state, dict):
        state = {name: value for name, value in state.items()
                 if name != "forward" or not hasattr(value, "report")}
    return make, arguments, state, *rest


def _tensor(x: Any) -> tuple:
    """Return how to make a tensor again."""
    check_known(x)
    if is_meta(x) and type(x) is not Parameter:
        return names.META_TENSOR, (x._dtype, tuple(x._shape), strides_of(x), x.requires_grad)
    if type(x) is Parameter:
        data, state = _detached(x), x.__dict__
        if state:
            return names.PARAMETER_WITH_STATE, (data, x.requires_grad, OrderedDict(), dict(state))
        return names.PARAMETER, (data, x.requires_grad, OrderedDict())
    parts: tuple = (_Reference(x._storage, x._dtype), x._offset, tuple(x._shape), strides_of(x),
             x.requires_grad, OrderedDict())
    if type(x) is Tensor and not x.__dict__:
        return names.TENSOR, parts
    cls = names.TENSOR_CLASS if type(x) is Tensor else type(x)
    return names.TYPED, (names.TENSOR, cls, parts, dict(x.__dict__))


def _detached(x: Tensor) -> Tensor:
    """Return the elements of a tensor, without the tracer: the file is no part of a program."""
    tracer, active.tracer = active.tracer, None
    try:
        return x.detach()
    finally:
        active.tracer = tracer


def pickled(obj: Any, protocol: int) -> tuple[bytes, list[Storage]]:
    """Return an object's pickle, and the storages it refers to."""
    file = io.BytesIO()
    pickler = Pickler(file, protocol)
    pickler.dump(obj)
    return file.getvalue(), pickler.storages
