"""`Tensor`: the class that users see, put together from the parts in the other files of this room.

In: a Storage and a layout (`state.make`), data (`construction.py`), or a tracer's state
(`Tensor.deferred`). Out: a tensor with PyTorch's names. Ops reach it through `Tensor.dispatch`, and
write through `_assign`.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.core.eager import element_calls, origins, subclasses, writing
from tracejit.core.eager.array_protocol import array_function, array_ufunc
from tracejit.core.eager.construction import from_array, legacy, new_tensor
from tracejit.core.eager.conversion import Conversion
from tracejit.core.eager.differentiable import Differentiable
from tracejit.core.eager.dispatch import dispatch
from tracejit.core.eager.foreign_layouts import ForeignLayouts
from tracejit.core.eager.interchange import Interchange
from tracejit.core.eager.metadata import Metadata
from tracejit.core.eager.nodes import next_number
from tracejit.core.eager.printing import text
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import alias
from tracejit.core.eager.shared_memory import SharedMemory
from tracejit.core.eager.state import install_class, make, of_array
from tracejit.core.memory import CPU
from tracejit.core.ops import overriding
from tracejit.core.ops.operators import Operators


class Tensor(Metadata, Differentiable, Conversion, Interchange, SharedMemory, ForeignLayouts):
    """Multi-dimensional array with autograd; PyTorch's names and semantics.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ()
    _keeps_windows = False  # of a `Parameter`: sizes behind the first two stay as they are

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = legacy(cls, *args, **kwargs) if cls is Tensor else legacy(cls, *args)
        return made if cls is Tensor else cls._make_subclass(cls, made)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        subclasses.watch(cls)

    __torch_function__: Any = subclasses.torch_function
    dispatch = staticmethod(dispatch)
    _assign = writing.assign
    _shared_dims = writing.shared_dims
    _next_number = staticmethod(next_number)  # of the tape's nodes
    __array_ufunc__ = array_ufunc
    __array_function__ = array_function
    copy_ = writing.copy_
    fill_ = writing.fill_
    apply_, map_, map2_ = element_calls.apply_, element_calls.map_, element_calls.map2_
    # `2 + x` is x + 2: the edges of the node show the tensor as its first operand.
    __radd__, __rmul__ = Operators.__add__, Operators.__mul__  # type: ignore[operator]

    __rdiv__ = Operators.__rtruediv__  # type: ignore[attr-defined]

    def _is_output_of(self, name: str, number: int) -> None:
        origins.piece(self, name, number)

    def zero_(self) -> Any:
        """Fill a tensor of any shape with zeros.

        >>> import tracejit
        >>> tracejit.ones(2).zero_()
        tensor([0., 0.])
        """
        return writing.fill_(self, 0)

    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Any:
        """Make a new leaf from data, in its shape, of this tensor's dtype and on its device.

        >>> import tracejit
        >>> tracejit.ones(1).new_tensor([2, 3])
        tensor([2., 3.])
        """
        if isinstance(data, Tensor):
            warnings.warn(
                "To copy construct from a tensor, it is recommended to use "
                "sourceTensor.detach().clone() or "
                "sourceTensor.detach().clone().requires_grad_(True), rather than "
                "tensor.new_tensor(sourceTensor).", stacklevel=2)
        made = new_tensor(data, dtype or self._dtype, device or self._device)
        return made.requires_grad_(requires_grad)

    @staticmethod
    def _make_subclass(cls: type, data: Any, require_grad: bool = False) -> Any:
        """Make a leaf of a subclass over the memory of `data`."""
        made = alias(data)
        made.__class__ = cls
        made._requires_grad = require_grad
        return made

    def as_subclass(self, cls: type) -> Any:
        """Return the same memory and shape as an instance of a subclass, with the tensor's history.

        >>> import tracejit
        >>> class Mine(tracejit.Tensor):
        ...     pass
        >>> isinstance(tracejit.ones(2).as_subclass(Mine), Mine)
        True
        """
        with overriding.asked(classes=False):
            made = self.view_as(self)
        made.__class__ = cls
        return made

    @staticmethod
    def of_array(array: Any, device: Any = CPU) -> Any:
        """Make a tensor over an array's memory. A tracer gets a copy, as its ops run later."""
        return of_array(array, device) if active.tracer is None else from_array(array)

    @staticmethod
    def of_data(data: Any) -> Any:
        """Make a tensor of nested Python numbers, some of which may be known only when the program
        runs."""
        return new_tensor(data)

    @staticmethod
    def deferred(traced: Any, dtype: Any, device: Any) -> Any:
        """Make a tensor whose elements a tracer will compute. `traced`: the tracer's state for
        it."""
        made = make(None, 0, (), None, dtype, device)
        made._traced = traced
        return made

    def become(self, other: Any) -> None:
        """Give a deferred tensor the memory of a concrete one; its history stays."""
        writing.take_memory(self, other)

    def is_set_to(self, tensor: Any) -> bool:
        """Return True if both tensors look at the same memory in the same shape and strides; False
        without elements.

        >>> import tracejit
        >>> x = tracejit.ones(2)
        >>> x.is_set_to(x.view(2))
        True
        """
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function calls is_set_to()")
            active.tracer.break_graph(tensor, "the function calls is_set_to()")
        if self._storage is not tensor._storage or not self.numel():
            return False
        return (self._offset, self.shape, self.stride()) == (tensor._offset, tensor.shape,
                                                             tensor.stride())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        if active.tracer is not None:
            active.tracer.break_graph(self, "the function prints a tensor")
        return text(self)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """Return a summary for notebooks; see `html`."""
        from tracejit.core.eager.html import tensor_html

        return tensor_html(self)


install_class(Tensor)
overriding.install_tensor(Tensor)
