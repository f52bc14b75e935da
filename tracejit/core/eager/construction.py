"""Tensors from Python data, NumPy arrays, other tensors and DLPack.

In: numbers, nested lists, arrays. Out: leaves. Called by users (`tracejit.tensor` and its
relatives) and by `Tensor(...)`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tracejit.core.eager.dispatch import INFERENCE
from tracejit.core.eager.elements import common_dtype, holds_tensors, read_elements
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState, of_array, of_result
from tracejit.core.memory import CPU, as_device
from tracejit.core.memory.devices import default, makes_tensors
from tracejit.core.memory.readers import show
from tracejit.core.ops import creation, pointwise
from tracejit.core.ops.fitting import fitting
from tracejit.core.ops.joining import stack
from tracejit.core.ops.pointwise_record import beyond_int64, in_a_word
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    INTEGER,
    asked_dtype,
    complex64,
    complex128,
    dtype,
    dtype_of_number,
    dtype_of_numpy,
    float64,
    get_default_dtype,
    int64,
    rounded,
)

_WITH_DTYPE = (np.ndarray, np.generic)
NOT_FLOATING = "Only Tensors of floating point and complex dtype can require gradients"


@makes_tensors
def tensor(data: Any, *, dtype: dtype | None = None, device: Any = None,
           requires_grad: bool = False,
           pin_memory: bool = False) -> Any:
    """Make a new leaf that holds a copy of `data`: a number, nested sequences, an array or a
    tensor.

    Without `dtype`: bool, int64 or the default floating dtype for Python numbers, the data's own
    for arrays. A tensor of one element, of any shape, counts as a number of its dtype in a
    sequence. Raises ValueError for ragged sequences and tensors of more elements in them,
    RuntimeError where a dtype that cannot is to require grad.

    >>> import tracejit
    >>> tracejit.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, TensorState):
        warnings.warn("To copy construct from a tensor, it is recommended to use "
                      "sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than "
                      "tracejit.tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
    return marked(new_tensor(data, dtype, device), requires_grad)


def marked(made: Any, requires_grad: bool) -> Any:
    if requires_grad:
        if made._dtype.category < FLOATING:
            raise RuntimeError(NOT_FLOATING)
        made.requires_grad_(True)
    return made


def new_tensor(data: Any, kind: dtype | None = None, device: Any = None) -> Any:
    """Make a new tensor holding a copy of data."""
    kind = asked_dtype(kind)
    if isinstance(data, TensorState):
        return data.detach().to(kind or data._dtype).to(as_device(device or data._device)).clone()
    if holds_tensors(data):
        data, kind = read_elements(data, kind)
    tracer = active.tracer
    if type(data) is complex:
        _check_real(kind)
    if tracer is not None:
        made = _of_runtime_numbers(data, kind, device)
        if made is not None:
            return made
        data = tracer.concretize_tree(data)
    made = of_result(as_array(data, kind), kind or None, CPU)  # type: ignore[arg-type]
    if kind is None:
        made._dtype = dtype_of_numpy(made._array.dtype)
    if active.inference:
        made._view = INFERENCE
    if tracer is not None:
        made = tracer.constant(made)
    return made if device is None else made.to(as_device(device))


_PIECES = 64  # each element is an op: with more, symbolic numbers become plain


def _of_runtime_numbers(data: Any, kind: dtype | None, device: Any) -> Any:
    """Make a tensor of one number, or of nested numbers, some of which are known only when the
    program runs. Return None for other data."""
    shape: list[int] = []
    leaves = [data]
    while leaves and all(isinstance(x, (list, tuple)) for x in leaves):
        shape.append(len(leaves[0]))
        if any(len(x) != shape[-1] for x in leaves):
            return None
        leaves = [y for x in leaves for y in x]
    leaves = [in_a_word(x) for x in leaves]
    plain = (bool, int, float) if shape else (bool, int, float, complex)
    numbers = all(_is_symbolic(x) or type(x) in plain for x in leaves)
    beyond = any(map(beyond_int64, leaves))
    if not numbers or beyond or len(leaves) > _PIECES:
        return None
    if shape and not any(map(_is_symbolic, leaves)):
        return None
    floating = any(type(x) is float or getattr(x, "dtype", None) is float64 for x in leaves)
    if kind is None:
        kind = get_default_dtype() if floating else int64
        kind = kind if shape else dtype_of_number(data)
    if kind.category == INTEGER:
        if floating or type(data) is complex:
            return None
        leaves = [fitting(x, kind, kind.name) for x in leaves]
    # Numbers beyond a floating dtype become infinite here, while a fill with one refuses it.
    wide = {FLOATING: float64, COMPLEX: complex128}.get(kind.category, kind)
    made = [pointwise.convert(creation.filled((), x, wide, device, None), kind) for x in leaves]
    return stack(made).reshape(shape) if shape else made[0]


def _is_symbolic(x: Any) -> bool:
    """Return True if x stands for a number or a size that is known only when the program runs."""
    return bool(getattr(x, "is_weak", False)) or hasattr(type(x), "same_as")


def as_array(data: Any, kind: dtype | None) -> np.ndarray:
    """Make a fresh contiguous array of `data` in PyTorch's dtype for it, or in `kind`."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.array(data, order="C")
        return array if kind is None else rounded(array, kind)
    leaves = _leaves(data)
    foreign = any(issubclass(t, _WITH_DTYPE) for t in set(map(type, leaves)))
    array = _stacked(data) if foreign else _checked(data, kind, leaves)
    if kind is None:
        kind = common_dtype(data) if foreign else _default_for(array, leaves)
    if not foreign:
        if array.dtype.kind == "c":
            _check_real(kind)
        if kind.category == INTEGER:
            _check_range(array, kind)
        elif kind.category == FLOATING and array.dtype.kind in "iu":
            array = array.astype(np.float64)  # as Python's own numbers become floats
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
    with np.errstate(all="ignore"):
        return np.array(rounded(array, kind), order="C")


def _check_range(array: np.ndarray, kind: dtype) -> None:
    """Raise an error if Python numbers do not fit an integer dtype. Small negative ones wrap in
    uint8."""
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        raise ValueError("Overflow when unpacking long long")
    if array.dtype.kind in "if" and array.size:
        limits = np.iinfo(kind.numpy)
        lowest = limits.min or -limits.max  # unsigned: negative numbers wrap
        if not (lowest <= array.min() and array.max() <= limits.max):
            raise RuntimeError(
                f"value cannot be converted to type {kind.name} without overflow")


def _check_real(kind: dtype | None) -> None:
    """Raise TypeError if a complex number is to get a real dtype."""
    if kind is not None and kind.category == FLOATING:
        raise TypeError("must be real number, not complex")
    if kind is not None and kind.category == INTEGER:
        raise TypeError("'complex' object cannot be interpreted as an integer")


def _leaves(data: Any) -> list[Any]:
    """Flatten nested lists and tuples."""
    leaves = [data]
    while any(isinstance(x, (list, tuple)) for x in leaves):
        leaves = [y for x in leaves for y in (x if isinstance(x, (list, tuple)) else (x,))]
    return leaves


def _stacked(data: Any) -> np.ndarray:
    """Return nested sequences, some of whose leaves are arrays, as one array."""
    if isinstance(data, (list, tuple)):
        return np.array([_stacked(x) for x in data])
    return np.asarray(data)


def _checked(data: Any, kind: dtype | None, leaves: list[Any]) -> np.ndarray:
    try:
        array = np.array(data)
    except ValueError:
        _explain_ragged(data)
        raise
    if array.dtype.kind in "fO" and array.size:
        array = _of_huge(array, leaves, kind)
    if array.dtype.kind not in "biufc":
        leaf = leaves[0]
        if isinstance(leaf, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(leaf).__name__}'")
        raise RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")
    return array


def _of_huge(array: np.ndarray, leaves: list[Any], kind: dtype | None) -> np.ndarray:
    """Return the array, or one of floats if it holds ints beyond 64 bits.

    Raises ValueError for such ints in an integer dtype, or where all numbers are ints.
    """
    numbers = set(map(type, leaves))
    if not numbers <= {bool, int, float, complex} or int not in numbers:
        return array
    if not any(map(beyond_int64, leaves)):
        return array
    integral = numbers <= {bool, int} if kind is None else kind.category == INTEGER
    if integral:
        raise ValueError("Overflow when unpacking long long")
    return array.astype(np.complex128 if complex in numbers else np.float64)


def _explain_ragged(data: Any, dim: int = 0) -> None:
    """Raise ValueError that names the first sequence whose length differs from its siblings';
    TypeError where numbers and sequences are mixed."""
    level = [data]
    while all(isinstance(x, (list, tuple)) for x in level):
        expected = len(level[0])
        for x in level:
            if len(x) != expected:
                raise ValueError(f"expected sequence of length {expected} at dim {dim} (got "
                                 f"{len(x)})")
        level, dim = [y for x in level for y in x], dim + 1
        if not level:
            return
        if len({isinstance(y, (list, tuple)) for y in level}) > 1:
            raise TypeError(f"expected numbers or sequences at dim {dim}, got both")


def _default_for(array: np.ndarray, leaves: list[Any]) -> dtype:
    if array.size == 0 and not leaves:
        return get_default_dtype()
    if array.dtype.kind == "f":
        return get_default_dtype()
    if array.dtype.kind == "c":
        return complex128 if get_default_dtype() is float64 else complex64
    return dtype_of_numpy(np.bool_ if array.dtype.kind == "b" else np.int64)


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Any:
    """Return `data` as a tensor: itself, or over the same memory, where dtype and device allow.

    >>> import numpy as np, tracejit
    >>> a = np.zeros(2, np.float32)
    >>> tracejit.as_tensor(a)[0] = 5
    >>> a
    array([5., 0.], dtype=float32)
    """
    device = default.place if device is None else device
    if isinstance(data, TensorState):
        return data.to(as_device(device) if device is not None else data._device, dtype)
    if isinstance(data, np.ndarray):
        made = from_numpy(data) if all(s >= 0 for s in data.strides) else new_tensor(data)
        return made.to(as_device(device), dtype)
    return new_tensor(data, dtype, device)


def from_numpy(array: np.ndarray) -> Any:
    """Make a tensor over an array's memory: a write to either shows in both.

    Raises TypeError for another object than an array, or a dtype that tensors do not have.
    ValueError for negative strides.

    >>> import numpy as np, tracejit
    >>> a = np.arange(3)
    >>> t = tracejit.from_numpy(a)
    >>> a[0] = 7
    >>> t
    tensor([7, 1, 2])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.flags.writeable:
        warnings.warn("The given NumPy array is not writable: writing to this tensor will raise. "
                      "Copy the array if you "
                      "want to protect its data or write to the tensor.", UserWarning, stacklevel=2)
    return _over(array)


def _over(array: np.ndarray) -> Any:
    """Make a tensor over the memory of an array that other code may read and write later.

    That breaks the graph: reads and writes of either must happen in the program's order.
    """
    if active.tracer is not None:
        active.tracer.break_graph(None, "an array shows a tensor's memory",
                                  "use tracejit.tensor(array), which copies")
    made = of_array(array)
    show(made._storage)
    if active.tracer is not None:
        active.tracer.exposes(made)
    return made


def from_array(array: np.ndarray) -> Any:
    """Make a tensor over the memory of an array that no other code writes from now on.

    A tracer, whose ops read the memory later, gets a copy. So callers may also use it for a tensor
    that they read at once.
    """
    if active.tracer is not None:
        return active.tracer.constant(of_array(array.copy()))
    made = of_array(array)
    show(made._storage)
    return made


class _Capsule:
    """Producer that hands NumPy an existing capsule, as of the CPU. NumPy refuses other memory
    itself."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Writable:
    """Array interface that shows a read-only array's memory as writable, as PyTorch does for
    capsules.

    Capsules before DLPack 1.0 do not say if memory is read-only, and NumPy takes it to be.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._kept = array
        self.__array_interface__ = {**array.__array_interface__,
                                    "data": (array.__array_interface__["data"][0], False)}


def from_dlpack(source: Any) -> Any:
    """Make a tensor over the memory of any DLPack producer, on the CPU or on CUDA, or of a capsule
    of CPU memory.

    >>> import numpy as np, tracejit
    >>> tracejit.from_dlpack(np.array([1.0, 2.0], np.float32))
    tensor([1., 2.])
    """
    if isinstance(source, TensorState):
        return source.detach()
    if type(source).__name__ == "PyCapsule":
        return _over(np.asarray(_Writable(np.from_dlpack(_Capsule(source)))))
    where = source.__dlpack_device__()
    if isinstance(source, np.ndarray) and not source.flags.writeable:
        return _over(source.view(np.ndarray))  # NumPy 2.0 gives no array that is only to be read
    if int(where[0]) == 1:
        return _over(np.from_dlpack(source))
    from tracejit.core.memory import array_module, device

    place = device("cuda", int(where[1]))
    return of_array(array_module(place).from_dlpack(source), place)


def must_be_on(device: Any, kind: str) -> None:
    """Raise RuntimeError for a device that a type of tensors does not have."""
    if device is not None and as_device(device).type != kind:
        raise RuntimeError(f"legacy constructor expects device type: {kind} but device type: "
                           f"{as_device(device).type} was passed")


def legacy(cls: type, *args: Any, device: Any = None) -> Any:
    """Make what `Tensor(2, 3)` and `Tensor([1, 2])` make: a tensor of the default dtype, from sizes
    or data."""
    must_be_on(device, "cpu")
    if not args:
        return creation.zeros(0)
    if len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, TensorState):
            return data.detach()
        if type(data).__name__ == "Size":
            return creation.zeros(*data)
        if hasattr(data, "untyped"):  # a storage
            return creation.zeros(0).set_(data)
        return new_tensor(data, get_default_dtype())
    return creation.zeros(*args)


