"""Parameters: tensors that a Module lists and an optimizer updates.

In: a tensor's data. Out: `Parameter`, a leaf over the same memory that requires grad unless told
otherwise.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.direct_calls import install_parameter
from tracejit.core.ops.overriding import PLAIN, disabled


class Parameter(Tensor):
    """Tensor that becomes a parameter of the `Module` it is assigned to.

    data           the values, of any shape; memory is shared, history is not. None: an empty tensor
    requires_grad  True (default) accumulates gradients in `.grad`

    Optimizers get such tensors from `Module.parameters()`. Only floating and complex dtypes can
    require gradients: RuntimeError for others, TypeError where `data` is no tensor.

    >>> import tracejit
    >>> tracejit.nn.Parameter(tracejit.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__: Any = disabled  # functions ask no parameter
    _keeps_windows = True

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = tracejit.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): expected a Tensor, got {type(data).__name__}")
        made = Tensor._make_subclass(cls, data)
        return made.requires_grad_(requires_grad)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `__new__` has done it. A subclass may give it other arguments."""

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            made = type(self)(self.detach().clone(), self.requires_grad)
            made.__dict__.update(self.__dict__)
            memo[id(self)] = made
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return (_rebuilt, (type(self), self.detach(), self.requires_grad))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + super().__repr__()


PLAIN.add(Parameter)
install_parameter(Parameter)


class _OfBuffers(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        # a Buffer is an ordinary tensor with a mark, and no instance of a class
        return isinstance(instance, Tensor) and bool(instance.__dict__.get("_is_buffer", False))


class Buffer(metaclass=_OfBuffers):
    """Tensor that becomes a buffer of the `Module` it is assigned to; an ordinary tensor else.

    data        the values, of any shape; memory is shared. None: an empty tensor
    persistent  True (default) puts it into the state dict

    Buffers move with the module, get no gradients, and are no parameters: running means are such
    tensors. `Module.register_buffer` does the same by name.

    >>> import tracejit
    >>> module = tracejit.nn.Module()
    >>> module.mean = tracejit.nn.Buffer(tracejit.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = tracejit.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent, made._is_buffer = persistent, True
        return made


def __getattr__(name: str) -> Any:
    """Names that PyTorch has here; the file they are in imports this one."""
    if name in ("UninitializedBuffer", "UninitializedParameter", "is_lazy"):
        from tracejit.nn import lazy_parameter

        return getattr(lazy_parameter, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _rebuilt(cls: type[Parameter], data: Any, requires_grad: bool) -> Parameter:
    return cls(data, requires_grad)


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return device, dtype and memory format for a layer's tensors, from its keyword arguments.
    They may also come apart, as `factory_kwargs`.

    >>> factory_kwargs({"factory_kwargs": {"device": "cpu"}, "dtype": None})
    {'device': 'cpu', 'dtype': None}

    Raise TypeError for other arguments, and for an argument given twice.
    """
    given = kwargs or {}
    known = ("device", "dtype", "memory_format")
    unexpected = given.keys() - {*known, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    made = dict(given.get("factory_kwargs", {}))
    for name in known:
        if name in given:
            if name in made:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            made[name] = given[name]
    return made
