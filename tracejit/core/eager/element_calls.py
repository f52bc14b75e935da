"""Methods that call a Python function for each element: `apply_`, `map_`, `map2_`. They are slow,
and for CPU tensors only.

In: tensors and a function of their elements. Out: the first tensor, overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.construction import tensor
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.type_names import tensor_type_name
from tracejit.core.eager.writing import check_writable, write_memory


def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Overwrite each element with the function's result for it; the shape stays.

    >>> import tracejit
    >>> tracejit.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
    tensor([2., 3.])

    Raises RuntimeError for tensors that require grad, TypeError for those that are not on the CPU.
    """
    return _called("apply_", self, (), callable)


def map_(self: Any, other: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Overwrite each element with the function's result for it and that of another tensor.

    The other tensor has the same dtype and is broadcast; errors as for `apply_`.

    >>> import tracejit
    >>> tracejit.tensor([1.0, 2.0]).map_(tracejit.tensor(3.0), lambda x, y: x * y)
    tensor([3., 6.])
    """
    return _called("map_", self, (other,), callable)


def map2_(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Overwrite each element with the function's result for it and those of two other tensors of
    the same shape; see `map_`.

    >>> import tracejit
    >>> x = tracejit.ones(2)
    >>> x.map2_(x, x, lambda a, b, c: a + b + c)
    tensor([3., 3.])
    """
    return _called("map2_", self, (x, y), callable)


def _called(name: str, self: Any, others: tuple, function: Callable[..., Any]) -> Any:
    for x in others:
        if not isinstance(x, TensorState):
            raise TypeError(f"{name}(): argument 'other' must be Tensor, not {type(x).__name__}")
    if any(x.requires_grad for x in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use "
                           f"var.detach().{name}() instead.")
    for x in (self, *others):
        if active.tracer is not None:
            active.tracer.break_graph(x, f"the function calls {name}()")
        if x._device.type != "cpu":
            raise TypeError(f"{name} is only implemented on CPU tensors")
        if x._dtype is not self._dtype:
            raise TypeError(f"{name}: expected {tensor_type_name(self._dtype, self._device)} for "
                            f"'other' (got {tensor_type_name(x._dtype, x._device)})")
    check_writable(self)
    lists = [x.expand(self.shape).reshape(-1).tolist() for x in (self, *others)]
    found = tensor([function(*values) for values in zip(*lists)], dtype=self._dtype)
    write_memory(self, found.reshape(self.shape))
    return self
