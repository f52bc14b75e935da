"""Functions that a saved file names: they make tensors out of storages, and small values.

In: arguments out of a file, of which nothing is believed: shapes must lie within their storage,
attributes must not hide methods. Out: objects. `CALLS` is all that a file can call by itself.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from tracejit.core.eager.metadata import strided
from tracejit.core.eager.size import Size
from tracejit.core.eager.state import contiguous_strides, make
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.typed_storage import TypedStorage
from tracejit.core.memory import META, Storage, allocate, device
from tracejit.core.ops.types import FLOATING, dtype
from tracejit.nn.parameter import Parameter
from tracejit.saving.names import VALUES
from tracejit.torch_version import TorchVersion

_MOST_DIMENSIONS = 64  # as many as NumPy's arrays have
_MOST_BYTES = 1 << 63


def refuse(condition: bool, text: str) -> None:
    """Raise UnpicklingError where a file says what cannot be."""
    if condition:
        raise UnpicklingError(text)


def rebuild_tensor(elements: Any, offset: Any, shape: Any, strides: Any) -> Any:
    refuse(type(elements) is not TypedStorage, "a tensor's storage is none")
    return _over(elements.untyped()._storage, elements.dtype, offset, shape, strides)


def rebuild_tensor_v2(elements: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any,
                      hooks: Any, metadata: Any = None) -> Any:
    made = rebuild_tensor(elements, offset, shape, strides)
    return _marked(made, requires_grad, hooks, metadata)


def rebuild_tensor_v3(elements: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any,
                      hooks: Any, kind: Any, metadata: Any = None) -> Any:
    refuse(type(elements) is not TypedStorage or type(kind) is not dtype,
           "a tensor's storage is none")
    made = _over(elements.untyped()._storage, kind, offset, shape, strides)
    return _marked(made, requires_grad, hooks, metadata)


def checked_sizes(numbers: Any) -> tuple[int, ...]:
    """Return a shape, or strides. UnpicklingError for what is none."""
    refuse(not isinstance(numbers, tuple) or len(numbers) > _MOST_DIMENSIONS
           or any(type(n) is not int or n < 0 for n in numbers),
           f"a tensor's shape and strides must be tuples of sizes, got {numbers!r:.80}")
    return tuple(numbers)


def _over(storage: Storage, kind: dtype, offset: Any, shape: Any, strides: Any) -> Any:
    """Make a tensor over a storage. UnpicklingError where it would reach out of it."""
    shape, strides = checked_sizes(shape), checked_sizes(strides)
    refuse(len(shape) != len(strides), f"shape {shape} with strides {strides}")
    refuse(type(offset) is not int or offset < 0, f"a tensor's offset is {offset!r:.80}")
    reach, count = offset, kind.itemsize
    for size, stride in zip(shape, strides):
        reach += max(size - 1, 0) * stride
        # Python's ints do not overflow, so the checks below hold for any sizes.
        count *= max(size, 1)
    held = storage.nbytes // kind.itemsize
    empty = 0 in shape
    refuse(offset > held if empty else reach >= held,
           f"a tensor of shape {shape} at {offset} with strides {strides} does not lie within its "
           f"storage of {held} elements")
    refuse(count >= _MOST_BYTES, f"a tensor of shape {shape} is too large")
    contiguous = strides == contiguous_strides(shape)
    return make(storage, offset, tuple(shape), None if contiguous else tuple(strides), kind,
                storage.device)


def _marked(made: Any, requires_grad: Any, hooks: Any, metadata: Any = None) -> Any:
    refuse(bool(hooks), "a tensor with hooks: code is not loaded")
    refuse(bool(metadata), f"a tensor with metadata {metadata!r:.80} is not supported")
    refuse(type(requires_grad) is not bool, "requires_grad is no bool")
    refuse(requires_grad and made.dtype.category < FLOATING,
           "a tensor of integers that requires grad")
    made._requires_grad = requires_grad
    return made


def rebuild_meta_tensor(kind: Any, shape: Any, strides: Any, requires_grad: Any) -> Any:
    """Make a tensor without values."""
    refuse(type(kind) is not dtype, f"a tensor of dtype {kind!r:.80}")
    sizes = checked_sizes(shape), checked_sizes(strides)
    reach = 1 + sum(max(n - 1, 0) * s for n, s in zip(*sizes))
    refuse(reach * kind.itemsize >= _MOST_BYTES, f"a tensor of shape {shape} is too large")
    made = _over(allocate(reach * kind.itemsize, META), kind, 0, shape, strides)
    return _marked(made, requires_grad, None)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Any:
    refuse(type(data) is not Tensor, "a Parameter's data is no tensor")
    _marked(data, requires_grad, hooks)
    return Parameter(data.detach(), requires_grad)


def rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    return with_attributes(rebuild_parameter(data, requires_grad, hooks), state)


def rebuild_from_type(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    """Make a tensor of a class of its own, or with attributes."""
    refuse(function not in _TENSORS or not isinstance(arguments, tuple),
           "a tensor that is not made as tensors are")
    refuse(not isinstance(cls, type) or not issubclass(cls, Tensor), f"{cls!r:.80} is no tensor")
    made = function(*arguments)
    # `_make_subclass` makes a new tensor, without the flag.
    if cls is not Tensor:
        requires_grad = made.requires_grad
        made = Tensor._make_subclass(cls, made)
        made._requires_grad = requires_grad
    return with_attributes(made, state)


def with_attributes(made: Any, state: Any) -> Any:
    """Give an object its attributes; UnpicklingError for one that would hide a method."""
    refuse(not isinstance(state, dict), f"attributes must come as a dict, not {state!r:.80}")
    for name, value in state.items():
        refuse(not isinstance(name, str) or hasattr(type(made), name),
               f"{name!r:.80} is no attribute to be set on a {type(made).__name__}")
        made.__dict__[name] = value
    return made


def _bytearray(*arguments: Any) -> bytearray:
    refuse(any(type(a) not in (bytes, bytearray, str) for a in arguments), "no bytes")
    return bytearray(*arguments)


def _bytes() -> bytes:
    """Return empty bytes, which pickles of protocol 2 make by a call."""
    return b""


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    """Return bytes, which pickles of protocol 2 make of a text."""
    refuse(encoding not in ("latin1", "latin-1"), f"bytes in the encoding {encoding!r:.80}")
    refuse(type(text) is not str, "bytes that are no text")
    return text.encode("latin1")


def _complex(*parts: Any) -> complex:
    refuse(any(type(p) not in (int, float) for p in parts), "a complex number of no numbers")
    return complex(*parts)


def _layout(name: Any) -> Any:
    refuse(name != "torch.strided", f"the layout {name!r:.80} is not supported")
    return strided


def _set(*items: Any) -> set:
    return set(_hashable(*items))


def _counter(*items: Any) -> Counter:
    return Counter(*items) if items and isinstance(items[0], dict) else Counter(_hashable(*items))


def _ordered(*pairs: Any) -> OrderedDict:
    made: OrderedDict = OrderedDict()
    for key, value in _list(*pairs):
        made[checked_key(key)] = value
    return made


def _list(items: Any = ()) -> Any:
    refuse(not isinstance(items, (list, tuple)), "no list of items")
    return items


def _hashable(items: Any = ()) -> list:
    return [checked_key(item) for item in _list(items)]


def _size(sizes: Any = ()) -> Size:
    refuse(any(type(n) is not int for n in _list(sizes)), "a Size of what is no number")
    return Size(sizes)


def checked_key(key: Any, depth: int = 0) -> Any:
    """Return a key of a dict or set. Refuse deeply nested tuples: hashing them can end the
    process."""
    refuse(depth > 50, "keys are nested too deeply")
    if isinstance(key, (tuple, frozenset)):
        for item in key:
            checked_key(item, depth + 1)
    return key


def _version(text: Any = "") -> TorchVersion:
    refuse(type(text) is not str, "a version that is no text")
    return TorchVersion(text)


_TENSORS = (rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch.serialization._get_layout": _layout,
    "_codecs.encode": _encoded,
}
KNOWN: dict[str, Any] = {
    **VALUES,
    **_FUNCTIONS,
    "torch.Size": Size,
    "torch.torch_version.TorchVersion": TorchVersion,
    "torch.device": device,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
}
# By identity: what a file may call, and what is done then.
CALLS: dict[int, Callable[..., Any]] = {
    **{id(function): function for function in _FUNCTIONS.values()},
    id(OrderedDict): _ordered,
    id(Counter): _counter,
    id(set): _set,
    id(bytearray): _bytearray,
    id(bytes): _bytes,
    id(complex): _complex,
    id(Size): _size,
    id(TorchVersion): _version,
    id(device): device,
}
