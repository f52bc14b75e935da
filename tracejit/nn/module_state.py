"""State dict of a module: its parameters and persistent buffers by dotted name, out and in.

In: a module, or a mapping of tensors. Out: an ordered dict in PyTorch's order, or the module filled
from one. Loading reports everything that does not fit in one message, PyTorch's, before it raises.

Each module saves and loads its own part by `_save_to_state_dict` and `_load_from_state_dict`, which
subclasses override. `get_extra_state` and `set_extra_state` add other state. `_version` of the
class travels along in `state_dict()._metadata`.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tracejit import __future__
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.swapping import swap_tensors
from tracejit.core.eager.tape import RemovableHandle
from tracejit.core.eager.tensor import Tensor
from tracejit.nn.lazy_parameter import is_lazy
from tracejit.nn.parameter import Parameter

_NO_OP = ("for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
          "current model, which is a no-op. (Did you mean to pass `assign=True`, which puts the "
          "checkpoint's tensors into the module?)")

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Keys that `load_state_dict` left out, both lists empty when all matched."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class StateDict:
    """Part of Module that saves and loads."""

    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # -- out -------------------------------------------------------------------------------------
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters and persistent buffers by dotted name. They share memory with the
        module's.

        keep_vars: the parameters themselves instead of detached tensors. The three may also be
        given in their places, as older programs do.
        """
        given = (*args, *(destination, prefix, keep_vars)[len(args) :])
        destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._tj_hooks_of("_state_dict_pre_hooks"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook, replaces in self._tj_hooks_of("_state_dict_hooks"):
            result = hook(self, destination, prefix, metadata)
            if result is not None:
                if not replaces:
                    raise RuntimeError("state_dict post-hook must return None")
                destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the values of this module itself into `destination`."""
        for name, tensor in self._tj_own_tensors().items():
            as_is = keep_vars or is_lazy(tensor)
            destination[prefix + name] = tensor if as_is else tensor.detach()
        if self._tj_has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _tj_own_tensors(self) -> dict[str, Any]:
        """Return the tensors that this module itself saves, by name."""
        buffers = {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        return {n: x for n, x in {**self._parameters, **buffers}.items() if x is not None}

    def get_extra_state(self) -> Any:
        """Return other values for the state dict. Subclasses that override it have such state."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            "Please file an issue."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back the result of `get_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            "Please file an issue."
        )

    def _tj_has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateDict, method)

    # -- in --------------------------------------------------------------------------------------
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values in by name. Return the keys that were missing and those that no module took.

        strict  missing and unexpected keys are errors
        assign  take the tensors themselves instead of copying their values

        Raises RuntimeError listing every key and shape that does not fit, TypeError for an object
        that is no mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        versions = getattr(state_dict, "_metadata", None) or {}
        state = OrderedDict(state_dict)  # hooks may change it
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Any, state: Any, prefix: str) -> None:
            metadata = dict(versions.get(prefix[:-1], {}))
            if assign:
                metadata["assign_to_params_buffers"] = True
            # what is missing is always noted; a module that loads less calls this with False
            module._load_from_state_dict(
                state, prefix, metadata, True, missing, unexpected, errors
            )
            for name, child in module._modules.items():
                if child is not None:  # its hooks see, and change, what is below it
                    start = f"{prefix}{name}."
                    below = {key: x for key, x in state.items() if key.startswith(start)}
                    load(child, below, start)
            keys = IncompatibleKeys(missing, unexpected)
            for hook in module._tj_hooks_of("_load_state_dict_post_hooks"):
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )

        load(self, state, "")
        if strict:
            # in front: PyTorch reports keys before sizes
            errors[:0] = [
                f"{noun} key(s) in state_dict: {_quoted(keys)}. "
                for noun, keys in (("Missing", missing), ("Unexpected", unexpected))
                if keys
            ]
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take the values of this module itself. Note what is missing, unexpected or does not fit.

        strict  False: missing and unexpected keys are not noted
        local_metadata  entry of `_metadata` for this module: `version` when it was saved
        """
        lists = (missing_keys, unexpected_keys, error_msgs)
        for hook in self._tj_hooks_of("_load_state_dict_pre_hooks"):
            hook(self, state_dict, prefix, local_metadata, strict, *lists)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._tj_own_tensors()
        for name, mine in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._tj_take(name, key, mine, state_dict[key], assign)
            if problem is not None:
                error_msgs.append(problem)
        takes = self._tj_has_extra_state("set_extra_state")
        if takes and prefix + _EXTRA in state_dict:
            self.set_extra_state(state_dict[prefix + _EXTRA])
        elif takes and strict:
            missing_keys.append(prefix + _EXTRA)
        elif prefix + _EXTRA in state_dict and strict:
            unexpected_keys.append(prefix + _EXTRA)
        for key in state_dict if strict else ():
            if key.startswith(prefix):
                name, dot, _ = key[len(prefix) :].partition(".")
                if not (name in self._modules if dot else name in own or name == _EXTRA):
                    unexpected_keys.append(key)

    def _tj_take(self, name: str, key: str, mine: Any, given: Any, assign: bool) -> str | None:
        """Fill one parameter or buffer. Return an error text if the value given does not fit."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected tracejit.Tensor '
                f"or Tensor-like object from checkpoint but received {type(given)}"
            )
        if is_lazy(mine) and not is_lazy(given):
            mine.materialize(given.shape)
        elif not is_lazy(mine) and not mine.shape and tuple(given.shape) == (1,):
            given = given[0]  # saved when scalars had a dimension
        if not is_lazy(mine) and tuple(given.shape) != tuple(mine.shape):
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {mine.shape}."
            )
        # neither has a shape: there is nothing to copy
        if is_lazy(mine):
            return None
        if mine.is_meta and not given.is_meta and not assign:
            warnings.warn(_NO_OP.format(key), stacklevel=2)
        swap = __future__.get_swap_module_params_on_conversion()
        try:
            with no_grad():
                if swap:
                    _swap(mine, given, assign)
                elif not assign:
                    mine.copy_(given)
                elif isinstance(mine, Parameter):
                    setattr(self, name, _as_parameter(given, mine.requires_grad))
                else:
                    setattr(self, name, given)
        except Exception as error:
            return (
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose '
                f"dimensions in the model are {mine.size()} and whose dimensions in the checkpoint "
                f"are {given.size()}, an exception occurred : {error.args}."
            )
        return None

    # -- hooks -----------------------------------------------------------------------------------
    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Register `hook(module, prefix, keep_vars)` to run before `state_dict` looks at this
        module."""
        return self._tj_hooked("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Register `hook(module, state_dict, prefix, local_metadata)` to run after this module's
        part is there."""
        return self._tj_hooked("_state_dict_hooks", (hook, False))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a `register_state_dict_post_hook` whose result replaces the state dict."""
        return self._tj_hooked("_state_dict_hooks", (hook, True))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Register `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` to run before this module loads. It may change the state dict.
        """
        return self._tj_hooked("_load_state_dict_pre_hooks", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """Register a `register_load_state_dict_pre_hook`. It gets no module unless
        `with_module`."""
        called = hook if with_module else _WithoutModule(hook)
        return self._tj_hooked("_load_state_dict_pre_hooks", called)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Register `hook(module, incompatible_keys)` to run after this module has loaded. It may
        change the keys in place."""
        return self._tj_hooked("_load_state_dict_post_hooks", hook)

    def _tj_hooked(self, kind: str, entry: Any) -> RemovableHandle:
        return RemovableHandle(self.__dict__.setdefault(kind, {}), entry)

    def _tj_hooks_of(self, kind: str) -> list[Any]:
        return list(self.__dict__.get(kind, {}).values())


class _WithoutModule:
    """Calls a hook without the module it is called for; it is pickled as the hook is."""

    def __init__(self, hook: Callable[..., None]) -> None:
        self.hook = hook

    def __call__(self, module: Any, *rest: Any) -> None:
        self.hook(*rest)


def _as_parameter(given: Any, requires_grad: bool) -> Parameter:
    if isinstance(given, Parameter):
        return given.requires_grad_(requires_grad)
    return Parameter(given, requires_grad)


def _swap(mine: Any, given: Any, assign: bool) -> None:
    """Exchange a tensor of the module with the result of its `module_load` for the one given."""
    loaded = mine.module_load(given, assign=assign)
    if loaded is given or loaded is mine:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning "
            "one of the inputs in module_load"
        )
    if isinstance(mine, Parameter):
        loaded = _as_parameter(loaded, mine.requires_grad)
    swap_tensors(mine, loaded)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
