"""Parameters and buffers whose shape is not known yet: lazy modules find it when they are called.

In: a dtype and a device. Out: tensors that know nothing else until `materialize(shape)`, which
turns them, the same objects, into ordinary ones. Called by `lazy.py` and the state dict.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.overriding import disabled
from tracejit.nn.parameter import Parameter

_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
    "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)


class _Uninitialized:
    """Common part of parameters and buffers without a shape."""

    __slots__ = ()
    becomes: type

    @property
    def shape(self) -> Any:
        raise RuntimeError(_NO_SHAPE)

    def size(self, dim: int | None = None) -> Any:
        raise RuntimeError(_NO_SHAPE)

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape with undefined values, the same object."""
        kind = {"device": device or self.device, "dtype": dtype or self.dtype}
        # the class changes, not the object, which modules and optimizers hold
        self.__class__ = self.becomes
        self.data = tracejit.empty(tuple(shape), **kind)

    def without_shape(self: Any) -> Tensor:
        """Return an ordinary empty tensor of the same dtype and device."""
        return tracejit.empty(0, dtype=self.dtype, device=self.device)

    def __deepcopy__(self: Any, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self: Any, protocol: Any) -> tuple:
        return (type(self), (self.requires_grad, self.device, self.dtype))


class UninitializedParameter(_Uninitialized, Parameter):
    """Parameter without a shape, which a lazy layer fills in its first call.

    requires_grad  as in `Parameter`; default True
    device, dtype  of the later parameter

    `materialize(shape)` turns it, the same object, into a `Parameter` with undefined values.
    Before, `shape` and whatever needs it raise RuntimeError.

    >>> import tracejit
    >>> tracejit.nn.LazyLinear(2).weight
    <UninitializedParameter>
    """

    __slots__ = ()
    becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = tracejit.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data).requires_grad_(requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        """Do nothing: `__new__` has done it."""

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return "<UninitializedParameter>"


class UninitializedBuffer(_Uninitialized, Tensor):
    """Buffer without a shape, which a lazy layer fills in its first call.

    requires_grad  as in `Tensor`; default False
    device, dtype  of the later buffer

    `materialize(shape)` turns it, the same object, into a `Tensor` with undefined values. Before,
    `shape` raises RuntimeError.

    >>> import tracejit
    >>> buffer = tracejit.nn.UninitializedBuffer()
    >>> buffer.materialize((2, 3))
    >>> buffer.shape
    tracejit.Size([2, 3])
    """

    __slots__ = ()
    __torch_function__: Any = disabled
    becomes = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None
    ) -> UninitializedBuffer:
        data = tracejit.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data).requires_grad_(requires_grad)

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> None:
        """Do nothing: `__new__` has done it."""

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "<UninitializedBuffer>"


def is_lazy(tensor: Any) -> bool:
    """Return True if a parameter or buffer has no shape yet.

    >>> import tracejit
    >>> is_lazy(tracejit.ones(2))
    False
    """
    return isinstance(tensor, _Uninitialized)
