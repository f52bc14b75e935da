"""Modules in other dtypes and on other devices, and other changes of all their tensors.

In: a module. Out: the same module; its parameters stay the same objects, so optimizers keep
updating them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import tracejit
from tracejit import __future__
from tracejit.core.eager.conversion import parse_module_to
from tracejit.core.eager.meta import NO_DATA
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.swapping import swap_tensors
from tracejit.core.memory.devices import as_device, device
from tracejit.core.ops.types import bfloat16, dtype, float16, float32, float64
from tracejit.nn.lazy_parameter import is_lazy
from tracejit.nn.parameter import Parameter

_FLOATING_ONLY = (
    "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={}"
)

_COMPLEX = (
    "Complex modules are a new feature under active development whose design may change, and some "
    "modules might not work as expected when using complex tensors as parameters or buffers."
)
_TO_EMPTY = ("Please use tracejit.nn.Module.to_empty() instead of tracejit.nn.Module.to() when "
             "moving module from meta to a different device.")


class Conversion:
    """Part of Module that changes its tensors in place."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def _apply(self, convert: Callable[[Any], Any]) -> Any:
        for child in self.children():  # type: ignore[attr-defined]
            child._apply(convert)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                whose = f"{type(self).__name__}.{name}"
                self._parameters[name] = _converted_parameter(parameter, convert, whose)
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                _convert_in_place(buffer, convert)
            elif buffer is not None:
                self._buffers[name] = convert(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move and cast parameters and buffers: `to(device)`, `to(dtype)`, `to(device, dtype)`,
        `to(tensor)`.

        Only floating point and complex tensors are cast, the latter to their real parts where the
        dtype is real; `float()`, `half()` and the like leave them. Returns the module.

        Raises TypeError for a dtype that is neither, RuntimeError where a copy is asked for.
        """
        where, kind = parse_module_to(args, kwargs)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(_FLOATING_ONLY.format(kind))
        if kind is not None and kind.is_complex:
            warnings.warn(_COMPLEX, stacklevel=2)

        def convert(tensor: Any) -> Any:
            inexact = tensor.is_floating_point() or tensor.is_complex()
            cast = kind if kind is not None and inexact else tensor.dtype
            return tensor.to(tensor.device if where is None else where, cast)

        try:
            return self._apply(convert)
        except NotImplementedError as error:
            # a meta tensor has no data to move: PyTorch's advice is added
            if str(error) == NO_DATA:
                raise NotImplementedError(f"{NO_DATA} {_TO_EMPTY}") from None
            raise

    def _tj_cast(self, kind: dtype) -> Any:
        return self._apply(lambda t: t.to(kind) if t.is_floating_point() else t)

    def float(self) -> Any:
        """Cast floating point tensors to float32."""
        return self._tj_cast(float32)

    def double(self) -> Any:
        """Cast floating point tensors to float64."""
        return self._tj_cast(float64)

    def half(self) -> Any:
        """Cast floating point tensors to float16."""
        return self._tj_cast(float16)

    def bfloat16(self) -> Any:
        """Cast floating point tensors to bfloat16."""
        return self._tj_cast(bfloat16)

    def share_memory(self) -> Any:
        """Move all tensors to memory that processes forked later share. See
        `Tensor.share_memory_`."""
        return self._apply(lambda t: t.share_memory_())

    def type(self, dst_type: dtype | str) -> Any:
        """Cast all tensors to `dst_type`, integer ones too."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Any:
        """Move all tensors to the CPU."""
        return self._apply(lambda t: t.to(device("cpu")))

    def cuda(self, where: int | str | device | None = None) -> Any:
        """Move all tensors to a CUDA device."""
        target = device("cuda") if where is None else as_device(where)
        return self._apply(lambda t: t.to(target))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Make new parameters and buffers on a device, with any values. Without `recurse`, only
        those of the module itself."""

        def emptied(tensor: Any) -> Any:
            return tracejit.empty_like(tensor, device=device)

        if recurse:
            return self._apply(emptied)
        # `_apply` goes down to the children, which are hidden meanwhile
        children, self._modules = self._modules, {}
        try:
            return self._apply(emptied)
        finally:
            self._modules = children

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether the parameters accumulate gradients. Return the module."""
        for parameter in self.parameters():  # type: ignore[attr-defined]
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients, or set them to zero."""
        for parameter in self.parameters():  # type: ignore[attr-defined]
            clear_gradient(parameter, set_to_none)


def clear_gradient(parameter: Any, set_to_none: bool) -> None:
    """Forget one gradient, or write zeros into it."""
    if set_to_none:
        # Not asked first whether there is one: a captured step would depend on the answer.
        parameter.grad = None
        return
    if parameter.grad is None:
        return
    # a gradient with a history (`create_graph`) is cut off before it is written
    if parameter.grad.grad_fn is not None:
        parameter.grad.detach_()
    else:
        parameter.grad.requires_grad_(False)
    parameter.grad.zero_()


def _converted_parameter(parameter: Any, convert: Callable[[Any], Any], whose: str) -> Any:
    """Convert a parameter. It stays the same object, unless a switch says otherwise."""
    swap = __future__.get_swap_module_params_on_conversion()
    if is_lazy(parameter) or not (
        swap or __future__.get_overwrite_module_params_on_conversion()
    ):
        _convert_in_place(parameter, convert)
        return parameter
    gradient = parameter.grad
    with no_grad():
        made = Parameter(convert(parameter), parameter.requires_grad)
        if gradient is not None:
            made.grad = convert(gradient).requires_grad_(gradient.requires_grad)
    if not swap:
        return made
    try:
        swap_tensors(parameter, made)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {whose}") from error
    return parameter


def _convert_in_place(parameter: Any, convert: Callable[[Any], Any]) -> None:
    content = parameter.without_shape() if is_lazy(parameter) else parameter
    with no_grad():
        converted = convert(content)
        gradient = None if parameter.grad is None else convert(parameter.grad)
    if converted is not content:
        # The gradient goes first: a gradient of another dtype may not stay beside the new data.
        parameter.grad = None
        parameter.data = converted
        parameter.grad = gradient
