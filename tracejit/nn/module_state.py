"""The state dict: a module's parameters and persistent buffers by dotted name, out and in.

In: a module, or a mapping of tensors. Out: an ordered dict in PyTorch's order, or the module filled
from one. Loading reports everything that does not fit in one message, PyTorch's, before it raises.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tracejit.eager.modes import no_grad
from tracejit.eager.tensor import Tensor
from tracejit.nn.parameter import Parameter


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` left out, both empty when all matched."""

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
    """The part of Module that saves and loads."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """Parameters and persistent buffers by dotted name; they share memory with the module's.

        keep_vars: the parameters themselves instead of detached tensors.
        """
        found = OrderedDict() if destination is None else destination
        for name, tensor in self._saved():
            found[prefix + name] = tensor if keep_vars else tensor.detach()
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return found

    def _saved(self) -> Iterator[tuple[str, Any]]:
        """(name, tensor) of what this module itself saves."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values in by name; returns the keys that were missing and those nobody took.

        strict  missing and unexpected keys are errors
        assign  take the tensors themselves instead of copying their values
        Raises RuntimeError listing every key and shape that does not fit, TypeError for what is no
        mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(state_dict, assign)
        loading.module(self, "")
        missing = loading.missing
        unexpected = [key for key in state_dict if key not in loading.known]
        errors = loading.errors
        if strict:
            errors = [
                f"{noun} key(s) in state_dict: {_quoted(keys)}. "
                for noun, keys in (("Missing", missing), ("Unexpected", unexpected))
                if keys
            ] + errors
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return IncompatibleKeys(missing, unexpected)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


class _Loading:
    """One `load_state_dict`: what was found, and what was not."""

    def __init__(self, state: Mapping[str, Any], assign: bool) -> None:
        self.state, self.assign = state, assign
        self.missing: list[str] = []
        self.errors: list[str] = []
        self.known: set[str] = set()

    def module(self, module: Any, prefix: str) -> None:
        for name, tensor in list(module._saved()):
            key = prefix + name
            self.known.add(key)
            if key in self.state:
                self.tensor(module, name, key, tensor)
            else:
                self.missing.append(key)
        for name, child in module._modules.items():
            if child is not None:
                self.module(child, f"{prefix}{name}.")

    def tensor(self, module: Any, name: str, key: str, mine: Any) -> None:
        given = self.state[key]
        if not isinstance(given, Tensor):
            self.errors.append(
                f'While copying the parameter named "{key}", expected tracejit.Tensor '
                f"or Tensor-like object from checkpoint but received {type(given)}"
            )
        elif tuple(given.shape) != tuple(mine.shape):
            self.errors.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {mine.shape}."
            )
        elif self.assign:
            self.replace(module, name, mine, given)
        else:
            with no_grad():
                mine.copy_(given)

    def replace(self, module: Any, name: str, mine: Any, given: Any) -> None:
        if name in module._parameters:
            same = isinstance(given, Parameter) and given.requires_grad == mine.requires_grad
            module._parameters[name] = given if same else Parameter(given, mine.requires_grad)
        else:
            module._buffers[name] = given
