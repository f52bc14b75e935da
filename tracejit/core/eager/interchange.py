"""Elements out of a tensor: Python numbers, lists, NumPy, DLPack, pickles and copies.

In: tensors. Out: values. Each breaks the graph first, as the elements must be known. Mixed into
Tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.meta import check_item
from tracejit.core.eager.nodes import grad_fn_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import alias
from tracejit.core.eager.state import TensorState, check_known, make, shape_of
from tracejit.core.memory import Storage, allocate, device
from tracejit.core.memory.readers import copied, show
from tracejit.core.ops import joining
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import bfloat16, dtype

NOT_A_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
    "the moment."
)


def host_array(x: TensorState, reason: str, hint: str = "") -> np.ndarray:
    """Return the elements as a NumPy array: over the tensor's memory, or a copy if it is not on the
    CPU."""
    if active.tracer is not None:
        active.tracer.break_graph(x, reason, hint)
    return _on_host(x)


def elements(x: TensorState, reason: str) -> np.ndarray:
    """Return the elements like `host_array`, for a caller that reads them at once. Elements that
    depend on constants only do not break the graph."""
    known = None if active.tracer is None else active.tracer.fold_constant(x)
    return host_array(x, reason) if known is None else _on_host(known)


def _on_host(x: TensorState) -> np.ndarray:
    return x.array if x._device.type == "cpu" else x.array.get()


def array_for(x: TensorState, reason: str, hint: str = "") -> np.ndarray:
    """Make a NumPy array over the tensor's memory.

    Raises RuntimeError for a tensor that requires grad in grad mode, TypeError for one that is not
    on the CPU.
    """
    if x.requires_grad and active.grad_enabled:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use "
                           "tensor.detach().numpy() instead.")
    if x._device.type != "cpu":
        raise TypeError(f"can't convert {x._device} device type tensor to numpy. Use Tensor.cpu() "
                        "to copy the tensor to host memory first.")
    return host_array(x, reason, hint).view()


def _given(x: TensorState, array: np.ndarray) -> np.ndarray:
    """Register that the user gets an array over the tensor's memory; return the array."""
    if active.tracer is not None:
        active.tracer.exposes(x)
    if x._storage is not None:
        show(x._storage)
    return array


def wide(array: np.ndarray) -> np.ndarray:
    """Return a bfloat16 array as float32, which Python and DLPack know; others as they are."""
    return array.astype(np.float32) if array.dtype == bfloat16.numpy else array


def number_of(x: TensorState) -> Any:
    """Return the only element of a concrete tensor."""
    check_item(x)
    array = x.array if x._device.type == "cpu" else x.array.get()
    return wide(array).item()


def _real_number(number: Any, kind: str) -> Any:
    """Return the real number. Raises RuntimeError if it has an imaginary part."""
    if not isinstance(number, complex):
        return number
    if number.imag != 0:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return number.real


_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def _capsule(array: np.ndarray, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Return a DLPack capsule. Before 2.1 NumPy makes only version 0 capsules, over its own
    memory."""
    if _VERSIONED:
        return array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
    if dl_device not in (None, (1, 0)):
        raise BufferError("unsupported device requested")
    return (array.copy() if copy else array).__dlpack__()


_item_direct = Direct("number", "item")


class Interchange(TensorState):
    """Part of Tensor for conversions to other objects."""

    __slots__ = ()

    def item(self) -> Any:
        """Return the only element as a Python number. Raises RuntimeError if there are more or
        none.

        >>> import tracejit
        >>> tracejit.tensor([2.5]).item()
        2.5
        """
        found = _item_direct.direct(self)
        if found is not NotImplemented:
            return found
        count = numel(shape_of(self))
        if count != 1:
            raise RuntimeError(f"a Tensor with {count} elements cannot be converted to Scalar")
        return number_of(self) if active.tracer is None else active.tracer.item(self)

    def tolist(self) -> Any:
        """Return the elements as nested lists, one level for each dimension (a number for a 0-dim
        tensor).

        >>> import tracejit
        >>> tracejit.tensor([[1, 2]]).tolist()
        [[1, 2]]
        """
        return wide(elements(self, "the function calls tolist()")).tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Make a NumPy array of the same shape over the same memory.

        `force=True` detaches and copies to the CPU as needed. Without it, raises RuntimeError for a
        tensor that requires grad and TypeError for one that is not on the CPU.

        >>> import tracejit
        >>> tracejit.tensor([1., 2.]).numpy().sum().item()
        3.0
        """
        if not force:
            return _given(self, array_for(self, "the function calls numpy()"))
        array = _given(self, host_array(self, "the function calls numpy()"))
        return array.view() if self._device.type == "cpu" else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = _given(self, array_for(self, "NumPy makes an array from a tensor"))
        if dtype is not None and array.dtype != np.dtype(dtype):
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """Return the memory as a DLPack capsule.

        Raises BufferError for a tensor that requires grad, TypeError for a stream that is no
        number.
        """
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if stream is not None and not isinstance(stream, int):
            raise TypeError("stream must be ``int`` or ``none``")
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function exports a tensor by DLPack")
            active.tracer.exposes(self)
        array = self.array
        show(self._storage)  # type: ignore[arg-type]
        if self._device.type == "cpu":
            return _capsule(array, max_version, dl_device, copy)
        return array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple:
        return (1, 0) if self._device.type == "cpu" else (2, self._device.index or 0)

    def __bool__(self) -> bool:
        count = numel(shape_of(self))
        if count != 1:
            raise RuntimeError("Boolean value of Tensor with "
                               f"{'no values' if count == 0 else 'more than one value'} is "
                               "ambiguous")
        check_item(self)
        return bool(elements(self, "Python needs to know if a tensor is true").item())

    def __int__(self) -> int:
        return int(_real_number(self._only(), "int64_t"))

    def __float__(self) -> float:
        return float(_real_number(self._only(), "double"))

    def __complex__(self) -> complex:
        return complex(self._only())

    def _only(self) -> Any:
        """Return the only element, for Python's own conversions. Raises ValueError if there are
        more or none."""
        if numel(shape_of(self)) != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    def __index__(self) -> int:
        if self._dtype.is_floating_point or self._dtype.is_complex or numel(shape_of(self)) != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __iter__(self) -> Iterator[Any]:
        if not shape_of(self):
            raise TypeError("iteration over a 0-d tensor")
        return iter(joining.unbind(self))

    def __reversed__(self) -> Any:
        return self.flip(0) if shape_of(self) else self

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (TensorState, int, float, complex)):
            return bool((self == element).any().item())  # type: ignore[attr-defined]
        raise RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in "
                           f"a {type(element)}.")

    def __format__(self, spec: str) -> str:
        one = not shape_of(self) and self._device.type != "meta"
        return format(self.item(), spec) if one else object.__format__(self, spec)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        self = resolve_identity(self)
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function pickles a tensor")
        check_known(self)
        state = (self._storage, self._offset, self._shape, self._strides, self._dtype, self._device,
                 self._requires_grad, self.__dict__)
        return (rebuild, (type(self), *state))

    def __copy__(self) -> Any:
        self = resolve_identity(self)
        made = alias(self)
        made.__class__ = type(self)
        made._requires_grad = self._requires_grad and grad_fn_of(self) is None
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict) -> Any:
        from copy import deepcopy

        self = resolve_identity(self)
        if grad_fn_of(self) is not None:
            raise RuntimeError(NOT_A_LEAF)
        if id(self) in memo:
            return memo[id(self)]
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function copies a tensor by deepcopy")
        check_known(self)
        storage = memo.get(id(self._storage))
        if storage is None:
            storage = memo[id(self._storage)] = copied(self._storage)  # type: ignore[arg-type]
        made = rebuild(type(self), storage, self._offset, self._shape, self._strides, self._dtype,
                       self._device,
                       self._requires_grad, {})
        memo[id(self)] = made
        made._grad = deepcopy(self._grad, memo)
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made


def rebuild(cls: type, storage: Storage, offset: int, shape: tuple, strides: tuple | None,
            kind: dtype, place: device,
            requires_grad: bool, attributes: dict) -> Any:
    """Make a leaf from its fields. Pickles and deep copies call it."""
    made = make(storage, offset, shape, strides, kind, place)
    made.__class__ = cls  # without its `__new__`, whose arguments nobody knows
    made._requires_grad = requires_grad
    made.__dict__.update(attributes)
    return made


def storage_of_bytes(data: bytes, place: device) -> Storage:
    """Make a Storage of the bytes that a pickle holds."""
    made = allocate(len(data), device("cpu") if place.type == "cpu" else place)
    source: Any = np.frombuffer(data, np.uint8)
    if place.type != "cpu":
        from tracejit.core.memory import array_module

        source = array_module(place).asarray(source)
    made.block[: len(data)] = source
    return made


# Pickles made before 2026-11-27 name it so.
_storage_of_bytes = storage_of_bytes
