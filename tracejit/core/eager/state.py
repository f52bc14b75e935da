"""Fields of a tensor, and the cheapest way to make one.

In: a Storage and a layout. Out: Tensors. `make` only fills slots: every result of every op calls
it, and so do compiled programs. Strides of contiguous tensors and the NumPy array are rarely needed
and computed on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit.core.eager.array_storage import ArrayStorage
from tracejit.core.eager.recording import active
from tracejit.core.eager.size import Size
from tracejit.core.memory import CPU, Storage, array_module, storage_of_array
from tracejit.core.memory.storage import RELEASED
from tracejit.core.ops.operators import Operators
from tracejit.core.ops.types import dtype, dtype_of_numpy, require_cpu

CUT = -1  # output number of a tensor whose node `detach_` took
NO_DATA = "Cannot copy out of meta tensor; no data!"


class TensorState(Operators):
    """Fields of a tensor.

    _storage, _offset, _shape, _strides, _dtype, _device
                    where and how its elements lie; offset and strides count elements; strides None:
                    contiguous. _storage None: deferred, `_traced` is the tracer's state for it
    _requires_grad  also of results; those have a `_node` (grad_fn) and `_output_nr`, which is CUT
                    where `detach_` took the node
    _node           of a leaf: None, or a LeafSink, which finds its AccumulateGrad node
    _view           None; an `AliasFamily` if views of this tensor exist; a `View` if it is one
                    itself (views.py)
    _hooks          None or `TensorHooks` (hooks.py)
    _array          None, or the NumPy (CuPy) array over the storage
    """

    __slots__ = ("_storage", "_offset", "_shape", "_strides", "_dtype", "_device",
                 "_requires_grad", "_grad", "_node",
                 "_output_nr", "_view", "_hooks", "_array", "_traced", "__dict__", "__weakref__")

    _storage: Storage | None
    _offset: int
    _shape: tuple
    _strides: tuple | None
    _dtype: dtype
    _device: Any
    _requires_grad: bool
    _grad: Any
    _node: Any
    _output_nr: int
    _view: Any
    _hooks: Any
    _array: Any
    _traced: Any

    if TYPE_CHECKING:  # the other files of this room, and ops, hang their methods on subclasses

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __invert__(self) -> Any: ...
        def __and__(self, other: Any) -> Any: ...

    @property
    def array(self) -> Any:
        """Elements as an array over the tensor's own memory (NumPy; CuPy for CUDA)."""
        array = self._array
        if array is None:
            check_known(self)
            if self._device.type == "meta":
                raise NotImplementedError(NO_DATA)
            array = self._array = _array_over(self)
        return array


_class: list[type] = [TensorState]
_new = object.__new__


def install_class(tensor_class: type) -> None:
    """Set the class that `make` makes instances of; `tensor.py` calls this once."""
    _class[0] = tensor_class


def is_ordinary(x: Any) -> bool:
    """Return True if `x` is a tensor of the class that `make` makes instances of."""
    return type(x) is _class[0]


def make(storage: Storage | None, offset: int, shape: tuple, strides: tuple | None, dtype: dtype,
         device: Any) -> Any:
    """Make a tensor over `storage`. Offset and strides count elements; strides None: contiguous."""
    t: Any = _new(_class[0])
    t._storage = storage
    t._offset = offset
    t._shape = shape
    t._strides = strides
    t._dtype = dtype
    t._device = device
    t._requires_grad = False
    t._grad = None
    t._node = None
    t._output_nr = 0
    t._view = None
    t._hooks = None
    t._array = None
    t._traced = None
    return t


def of_result(array: Any, dtype: dtype, device: Any) -> Any:
    """Make the tensor that owns a fresh contiguous array."""
    if device is not CPU and dtype.is_complex:
        require_cpu(device)
    t = make(ArrayStorage(array, device), 0, array.shape, None, dtype, device)
    t._array = array
    return t


def of_array(array: Any, device: Any = CPU) -> Any:
    """Make a tensor over an existing array's memory. Raises ValueError for negative strides."""
    kind = dtype_of_numpy(array.dtype)
    if array.flags.c_contiguous:
        return of_result(array, kind, device)
    storage = storage_of_array(array, device)
    strides = tuple(s // array.itemsize for s in array.strides)
    if any(s < 0 for s in strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors "
                         "with negative "
                         "strides are not currently supported. (You can probably work around this "
                         "by making a "
                         "copy of your array with array.copy().)")
    t = make(storage, 0, array.shape, strides, kind, device)
    t._array = array
    return t


def shape_of(x: TensorState) -> tuple:
    """Return the sizes: those that the active tracer gives, else ints."""
    tracer = active.tracer
    return x._shape if tracer is None else tracer.shape(x)


def contiguous_strides(shape: tuple) -> tuple:
    """Return the strides, in elements, of a contiguous tensor of this shape.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step = step * (1 if type(size) is int and size == 0 else size)
    return tuple(reversed(strides))


def strides_of(x: TensorState) -> tuple:
    """Return the strides of a concrete tensor, in elements."""
    return contiguous_strides(x._shape) if x._strides is None else x._strides


def is_contiguous(x: TensorState) -> bool:
    """Return True if elements lie in row-major order without gaps; the stride of a size 1 is
    free."""
    if x._strides is None:
        return True
    step = 1
    for size, stride in zip(reversed(x._shape), reversed(x._strides)):
        if size == 0:
            return True
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def check_known(x: TensorState) -> None:
    """Raise RuntimeError for a deferred tensor that left its recording."""
    if x._storage is None:
        raise RuntimeError(x._traced.escaped())


def laid_out(x: TensorState) -> Any:
    """Return an array with the tensor's layout. That of a tensor without values must not be
    read."""
    return _array_over(x) if x._device.type == "meta" else x.array


def _array_over(x: TensorState) -> Any:
    storage, itemsize, kind = x._storage, x._dtype.itemsize, x._dtype.numpy
    assert storage is not None
    if not storage.nbytes and 0 not in x._shape:
        raise RuntimeError(RELEASED.text)
    strides = None if x._strides is None else tuple(s * itemsize for s in x._strides)
    if x._device.type == "cuda":
        cupy = array_module(x._device)
        pointer = storage.block.data + x._offset * itemsize
        return cupy.ndarray(x._shape, kind, pointer, strides=strides)
    if 0 in x._shape:
        return np.empty(x._shape, kind)
    return np.ndarray(x._shape, kind, storage.block, x._offset * itemsize, strides)


def public_shape(x: TensorState) -> Size:
    """Sizes of the dimensions, a `Size`, which is a tuple of ints.

    >>> import tracejit
    >>> tracejit.ones(2, 3).shape
    tracejit.Size([2, 3])
    """
    return tuple.__new__(Size, shape_of(x))
