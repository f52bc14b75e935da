"""Modules as functions of their parameters, and the parameters of several modules in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracejit.core.ops.joining import stack
from tracejit.core.ops.operators import Operators

__all__ = ["functional_call", "stack_module_state"]

_ABSENT: Any = object()


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    parameter_and_buffer_dicts   tensors by dotted name, in one dict or several
    args, kwargs                 arguments of the module; `args` alone if it is no tuple
    tie_weights                  a tensor given for one name stands for all names of the same one
    strict                       RuntimeError for names that lack or are not the module's

    A name may be any attribute that is a tensor or missing. The module is as it was afterwards. If
    one dict is given, it holds then what the module assigned to its names meanwhile. ValueError for
    a name in several dicts, for different tensors under names of one tensor, and for what is no
    dict. TypeError for a value or an attribute that is no tensor.

    >>> import tracejit
    >>> layer = tracejit.nn.Linear(2, 1)
    >>> given = {"weight": tracejit.ones(1, 2), "bias": tracejit.tensor([0.5])}
    >>> functional_call(layer, given, tracejit.tensor([1.0, 2.0]))
    tensor([3.5000])
    """
    given = _merged(parameter_and_buffer_dicts)
    meant = _tied(given, dict(_named(module))) if tie_weights else given
    if strict:
        _must_match(type(module).__name__, sorted(n for n, _ in _named(module)), sorted(meant))
    before: list[tuple[str, Any, str, Any]] = []
    try:
        for name, tensor in meant.items():
            prefix, _, leaf = name.rpartition(".")
            owner = _owner(module, prefix)
            before.append((name, owner, leaf, _exchanged(owner, leaf, tensor)))
        arguments = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*arguments, **(kwargs or {}))
    finally:
        for name, owner, leaf, tensor in reversed(before):
            last = _exchanged(owner, leaf, tensor)
            if name in given and last is not given[name]:
                given[name] = last


def _owner(module: Any, prefix: str) -> Any:
    """Return the submodule of a dotted name, which may lead through any attribute. AttributeError
    for a missing name, TypeError for what is no module."""
    for name in prefix.split(".") if prefix else ():
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        module = getattr(module, name)
        if not hasattr(module, "_parameters"):
            raise TypeError(f"submodule `{name}`: {module} is not an instance of torch.nn.Module")
    return module


def _exchanged(owner: Any, leaf: str, tensor: Any) -> Any:
    """Put `tensor` under a name of a module, and return what was there; `_ABSENT` is nothing."""
    if tensor is not None and tensor is not _ABSENT and not isinstance(tensor, Operators):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            before = table[leaf]
            if tensor is _ABSENT:
                del table[leaf]
            else:
                table[leaf] = tensor
            return before
    before = getattr(owner, leaf, _ABSENT)
    if before is not None and before is not _ABSENT and not isinstance(before, Operators):
        raise TypeError(f"attribute `{leaf}`: {before} is not an instance of torch.Tensor")
    if tensor is not _ABSENT:
        setattr(owner, leaf, tensor)
    elif before is not _ABSENT:
        delattr(owner, leaf)
    return before


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence):
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
                         f"dicts, but got {type(dicts)}")
    if not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    several = sorted({name for name in names if names.count(name) > 1})
    if several:
        raise ValueError(f"{several} appeared in multiple dictionaries; behavior of functional "
                         "call is ambiguous")
    return {name: tensor for d in dicts for name, tensor in d.items()}


def _named(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, tensor) of each parameter and buffer, those of the same tensor
    included."""
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for leaf, tensor in table.items():
                if tensor is not None:
                    yield f"{prefix}.{leaf}".lstrip("."), tensor


def _must_match(kind: str, own: list[str], given: list[str]) -> None:
    lines = [f"\n\t{title} key(s): {', '.join(map(repr, names))}." for title, names in (
        ("Unexpected", [name for name in given if name not in own]),
        ("Missing", [name for name in own if name not in given])) if names]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {kind}:{''.join(lines)}")


def _tied(given: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the given tensors, also under the other names that the module has for the same
    tensor."""
    names_of: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names_of.setdefault(id(tensor), []).append(name)
    found = dict(given)
    for names in names_of.values():
        asked = [name for name in names if name in given]
        if len({id(given[name]) for name in asked}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(asked)}, which "
                             "are tied. Consider using tie_weights=False")
        if asked:
            found |= dict.fromkeys(names, given[asked[0]])
    return found


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (parameters, buffers) of modules of one class, stacked by name in a new first
    dimension.

    A stack of parameters that require grad is a new leaf. RuntimeError for no modules, and for
    modules of different classes or modes.

    >>> import tracejit
    >>> layers = [tracejit.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = stack_module_state(layers)
    >>> parameters["weight"].shape
    tracejit.Size([3, 1, 2])
    """
    name = "stack_module_state"
    if not len(models):
        raise RuntimeError(f"{name}: Expected at least one model, got 0.")
    if len({bool(model.training) for model in models}) > 1:
        raise RuntimeError(f"{name}: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError(f"{name}: Expected all models to be of the same class.")
    return (_stacked([dict(model.named_parameters()) for model in models]),
            _stacked([dict(model.named_buffers()) for model in models]))


def _stacked(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: _new_leaf(name, [state[name] for state in states]) for name in states[0]}


def _new_leaf(name: str, tensors: list[Any]) -> Any:
    needs = {x.requires_grad for x in tensors}
    if len(needs) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    whole = stack(tensors)
    return whole.detach().requires_grad_() if needs == {True} else whole
