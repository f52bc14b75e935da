"""Parametrizations: modules compute a module's tensor from others, whenever it is read.

In: a module, the name of one of its tensors, a module that maps a tensor to one. Out: the same
object, of a class made for it, whose attribute is computed. It is computed from the parameters
`parametrizations.<name>.original`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.nn.containers import ModuleDict, ModuleList
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

_depth = 0  # of `cached` contexts
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside, when it is first read."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """Parametrizations of one tensor, and the tensors they start from: `original`, or `original0`,
    `original1` ... where the first one takes several.

    Raises ValueError where right_inverse returns an object that is no tensor. Unless `unsafe`, also
    where the tensor would change its dtype or shape.
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.shape, original.dtype
        new = original
        with no_grad():
            # the last one applied is inverted first
            for module in reversed(self):
                new = _inverted(module, new)
        _check_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {new.dtype}"
                )
            with no_grad():
                _take(original, new)
            _register(self, "original", original)
        else:
            for k, part in enumerate(new):
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad and part.is_floating_point())
                _register(self, f"original{k}", part)
        if not unsafe:
            _check_unchanged(self(), *before)

    @property
    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def forward(self) -> Any:
        first, *rest = self
        x = first(*self._originals)
        for module in rest:
            x = module(x)
        return x

    def right_inverse(self, value: Any) -> None:
        """Make the tensors it starts from such that `value` is computed.

        Raises RuntimeError where a parametrization has no right_inverse.
        """
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            for original, new in zip(self._originals, values, strict=True):
                _take(original, new)


def _inverted(module: Any, value: Any) -> Any:
    if not hasattr(module, "right_inverse"):
        return value
    try:
        return module.right_inverse(value)
    except NotImplementedError:
        return value


def _check_inverse(new: Any) -> None:
    text = "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
    if isinstance(new, Tensor):
        return
    if not isinstance(new, Sequence):
        raise ValueError(f"{text}{type(new).__name__}")
    for k, part in enumerate(new):
        if not isinstance(part, Tensor):
            raise ValueError(f"{text}element {k} of the sequence with type {type(part).__name__}.")


def _check_unchanged(value: Any, shape: Any, dtype: Any) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    pairs = (("dtype", dtype, value.dtype), ("shape", shape, value.shape))
    for what, before, after in pairs:
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized {what}: {before}\n"
                f"parametrized {what}: {after}"
            )


def _take(original: Any, new: Any) -> None:
    """Write the values of `new` to `original`, which stays the same object."""
    if new is original:
        return
    if original.shape == new.shape and original.dtype == new.dtype:
        original.detach().copy_(new)
    else:
        # copy_ takes no other shape, and would cast to the old dtype
        original.data = new.detach().clone()


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _class_of(module: Module) -> None:
    """Give a module a class of its own."""
    base = type(module)

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict()."
        )

    def copied(self: Any, memo: dict) -> Any:
        made = memo.get(id(self))
        if made is None:
            # A class of its own: what is removed from one is not removed from the other.
            kind = type(self)
            cls = type(kind.__name__, kind.__bases__, dict(vars(kind)))
            made = memo[id(self)] = object.__new__(cls)
            made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    # properties lie in a class: this one's own, so that other modules stay plain
    members = {"__getstate__": refuse, "__deepcopy__": copied}
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _property_of(name: str) -> property:
    def read(self: Any) -> Any:
        found = self._modules["parametrizations"]._modules[name]
        if not _depth:
            return found()
        key = id(self), name
        if key not in _cache:
            _cache[key] = found()
        return _cache[key]

    def write(self: Any, value: Any) -> None:
        self._modules["parametrizations"]._modules[name].right_inverse(value)

    return property(read, write)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute the parameter or buffer `tensor_name` by `parametrization`, a module, from now on.

    parametrization  where it has `right_inverse`, assigning to the tensor is possible, and the
                     tensor keeps its value; a further one is applied to what came before
    unsafe           it may change shape and dtype

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> class Positive(nn.Module):
    ...     def forward(self, x):
    ...         return x.exp()
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 1), "weight", Positive())
    >>> (layer.weight > 0).all().item(), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])

    Raises ValueError for a name that is no tensor of the module, and as `ParametrizationList`.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(getattr(module, tensor_name), tensor_name, parametrization)
        found: Any = module.parametrizations[tensor_name]
        found.append(parametrization)
        found.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _class_of(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property_of(tensor_name))
        module.parametrizations[tensor_name] = made
        made.train(module.training)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_another(value: Any, name: str, parametrization: Any) -> None:
    """Raise ValueError where one more parametrization of a tensor changes its dtype or shape."""
    with no_grad():
        before = value
        if hasattr(parametrization, "right_inverse"):
            before = _inverted(parametrization, value)
        if not isinstance(before, Tensor):
            raise ValueError(
                f"parametrization.right_inverse must return a tensor. Got: {type(before).__name__}"
            )
        for what in ("dtype", "shape"):
            expected, found = getattr(value, what), getattr(before, what)
            if expected != found:
                raise ValueError(
                    "The tensor returned by parametrization.right_inverse must have the same "
                    f"{what} as module.{name}, unless the `unsafe` flag is enabled.\n"
                    f"module.{name}.{what}: {expected}\nreturned {what}: {found}"
                )
        after = parametrization(before)
        if not isinstance(after, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
        for what in ("dtype", "shape"):
            expected, found = getattr(value, what), getattr(after, what)
            if expected != found:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, "
                    f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {expected}\n"
                    f"parametrization(module.{name}).{what}: {found}"
                )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return True if a module has parametrizations, or one of the tensor `tensor_name`."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a tensor an ordinary parameter or buffer again.

    leave_parametrized  with the value computed last; else that of the tensor it was computed from

    Raises ValueError where the tensor is not parametrized, or has no such value.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held: Any = module.parametrizations
    found = held[tensor_name]
    originals = found._originals
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
            value = value.clone() if any(value is x for x in originals) else value
        if found.is_tensor:
            kept = originals[0]
            with no_grad():
                _take(kept, value)
        else:
            trained = any(x.requires_grad for x in originals)
            kept = Parameter(value.detach(), trained) if trained else value.detach()
    elif not found.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    else:
        kept = originals[0]
    delattr(type(module), tensor_name)
    del held[tensor_name]
    _register(module, tensor_name, kept)
    if not len(held):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` the parametrizations of another module, and the tensors they start from.

    tensor_name  of this tensor alone
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source: Any = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for module in source:
            register_parametrization(to_module, name, module, unsafe=source.unsafe)
        made: Any = to_module.parametrizations[name]
        for k, original in enumerate(source._originals):
            place = "original" if source.is_tensor else f"original{k}"
            setattr(made, place, original)
    return to_module


_sealing.seal_all(globals())
