"""Base class of all optimizers: parameter groups, state, the step around the update, the state
dict.

In: parameters, or groups of them with options of their own. Out: parameters written in place by
`step()`. Subclasses define `_new_state(p, group)` and `_update(p, grad, group, state)`. Both are
plain tensor arithmetic without `.item()`, so that a captured training step holds the update too.

Numbers that change while training (the learning rate, momentum) are read with `read_scalar`:
captured programs take them as inputs. Other options are guarded: changing one makes another
program.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from tracejit.core.eager.modes import enable_grad, set_grad_enabled
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_like, zeros
from tracejit.core.ops.pointwise_complex import view_as_real
from tracejit.core.ops.questions import typename
from tracejit.nn.module_conversion import clear_gradient
from tracejit.optim.hooks import (
    Hooks,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_hooks,
)
from tracejit.optim.idioms import (  # noqa: F401 (PyTorch has them here)
    ParamsT,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)
from tracejit.optim.state import create_states

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _RequiredParameter:
    """Default of an option that each group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


class Optimizer(Hooks):
    """Base class of all optimizers. A subclass says how one parameter is updated; groups, state,
    hooks and files are here.

    params    parameters: an iterable of tensors of any shape, of (name, tensor), or of dicts with
              options
    defaults  options of groups that do not set their own

    `param_groups` is a list of dicts, `state` maps parameters to dicts. `step()` writes parameters
    that have a `.grad`, `zero_grad()` clears them. A closure given to `step` computes the loss
    anew, and `step` returns it. Raises ValueError for an empty list, a parameter in two groups or
    one that is no leaf; TypeError for what is no tensor.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.ones(2))
    >>> optimizer = tracejit.optim.SGD([{"params": [p], "lr": 0.5}], lr=0.1)
    >>> optimizer.param_groups[0]["lr"], len(optimizer.state)
    (0.5, 0)
    """

    _begins_with: tuple[str, ...] = ()  # options that `_new_state` reads
    _counters: tuple[str, ...] = ()  # names of tensors of one number in the state
    _refuses_without = False  # foreach is refused on the tape also where no gradient is
    _unsaved: tuple[str, ...] = ()  # what `_new_state` makes that is kept beside the state

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        # a tensor is iterable too: its rows would be taken as parameters
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {typename(params)}"
            )
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        self.defaults = defaults
        self._add_tables()
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self._beside_state: dict[Any, dict[str, Any]] = {}  # what no state dict has
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to train from now on: a dict with "params" and any options."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        entries = [given] if isinstance(given, Tensor) else list(given)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        if names:
            if len(names) != len(entries):
                raise ValueError("all optimizer params should be with/without names. Some param "
                                 "names are missing")
            param_group["param_names"] = names
            entries = [entry[1] for entry in entries]
        for p in entries:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(p).__name__}"
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        named = "param_names" in param_group
        if any(named is not ("param_names" in group) for group in self.param_groups):
            raise ValueError("all optimizer param groups should be with/without names. cannot add "
                             f"param group {'with' if named else 'without'} names to the optimizer")
        param_group["params"] = entries
        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise ValueError("parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")
            param_group.setdefault(name, value)
        if len(set(entries)) != len(entries):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in "
                          "future, this will cause an error; see github.com/pytorch/pytorch/issues/"
                          "40967 for more information", stacklevel=3)
        if not set(entries).isdisjoint(chain(*(group["params"] for group in self.param_groups))):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines += [""] * bool(k) + [f"Parameter Group {k}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # -- stepping ------------------------------------------------------------------------------
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                clear_gradient(p, set_to_none)

    def _patch_step_function(self) -> None:
        """Do nothing: `step` itself calls hooks, also after a subclass replaced it."""

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. Return the result of `closure`, which is
        called first. With the option `differentiable` the update is on the tape."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        create_states(self)
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            self._update_groups()
        return loss

    def _update_groups(self) -> None:
        for group in self.param_groups:
            if group.get("differentiable") and group.get("foreach"):
                self._refuse_foreach(group)
            self._update_group(group)

    def _update_group(self, group: dict[str, Any]) -> None:
        for p in group["params"]:
            if p.grad is not None:
                grad = -p.grad if group.get("maximize") else p.grad
                state = self._kept(p)
                if grad.is_sparse:
                    self._update_rows(p, grad, group, state)
                    continue
                if p.is_complex():  # two real numbers each
                    p, grad = view_as_real(p), view_as_real(grad)
                    state = {k: of_reals(v) for k, v in state.items()}
                if group.get("differentiable"):
                    self._update_on_tape(p, grad, group, state)
                else:
                    self._update(p, grad, group, state)

    def _refuse_foreach(self, group: dict[str, Any]) -> None:
        """Raise AssertionError, as PyTorch does, if a group's update would be on the tape."""
        if self._refuses_without or any(p.grad is not None for p in group["params"]):
            raise AssertionError("_foreach ops don't support autograd")

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter before its first update."""
        raise NotImplementedError

    def _keeps_state(self, group: dict[str, Any]) -> bool:
        """Return False if `_new_state` has nothing for the parameters of a group."""
        return True

    def _kept(self, p: Any) -> dict[str, Any]:
        """Return the values kept of a parameter from step to step."""
        kept = self.state[p] if p in self.state else {}
        return {**kept, **self._beside_state[p]} if p in self._beside_state else kept

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Write the parameter and its state."""
        raise NotImplementedError

    def _update_on_tape(
        self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]
    ) -> None:
        """Call `_update` with copies of the state: the next step overwrites nothing that backward
        needs."""
        names = [name for name, value in state.items() if isinstance(value, Tensor)]
        copies = {**state, **{name: state[name].clone() for name in names}}
        self._update(p, grad, group, copies)
        for name in names:
            state[name].copy_(copies[name])

    def _check_gradient(self, grad: Any) -> None:
        """Raise RuntimeError for a gradient that the optimizer does not take."""
        if grad.is_sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _update_rows(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Update with a sparse gradient, where `_check_gradient` takes them."""
        raise NotImplementedError

    # -- state dict ----------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """`{"state": {number: {...}}, "param_groups": [{..., "params": [numbers]}]}`."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number_of: dict[Any, int] = {}
        start = 0
        for group in self.param_groups:  # the first group counts, and the last place in it
            numbered = enumerate(group["params"], start)
            number_of.update({p: number for number, p in numbered if p not in number_of})
            start += len(group["params"])
        groups = [
            {
                **{key: value for key, value in group.items() if key != "params"},
                "params": [number_of[p] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        made: dict[str, Any] = {
            "state": {
                number_of[p] if isinstance(p, Tensor) else p: kept
                for p, kept in self.state.items()
            },
            "param_groups": groups,
        }
        for hook in self._optimizer_state_dict_post_hooks.values():
            found = hook(self, made)
            made = made if found is None else found
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`. Its tensors are taken as they are where they have the
        parameter's dtype and device.

        Raises ValueError where the groups do not match.
        """
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            found = hook(self, state_dict)
            state_dict = state_dict if found is None else found
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(s["params"]) != len(g["params"]) for s, g in zip(saved, self.param_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        numbers = chain(*(group["params"] for group in saved))
        parameters = chain(*(group["params"] for group in self.param_groups))
        parameter_of = dict(zip(numbers, parameters))
        state = {}
        for number, kept in state_dict["state"].items():
            p = parameter_of.get(number)
            state[number if p is None else p] = kept if p is None else _fitted(None, kept, p)
        for mine, theirs in zip(self.param_groups, saved):
            own = {name: mine[name] for name in ("params", "param_names") if name in mine}
            mine.clear()
            mine.update(deepcopy({k: v for k, v in theirs.items() if k != "params"}))
            # what files do not have: parameters, and options that they do not know of yet
            for name, value in (*own.items(), *self.defaults.items()):
                mine.setdefault(name, value)
        self.__setstate__({"state": state, "param_groups": self.param_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": dict(self.state),
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._add_tables()
        self.state = defaultdict(dict, state["state"])
        self._beside_state = {}
        for p in (key for key in self.state if isinstance(key, Tensor)):
            kept = self.state[p]
            for name in self._counters:  # numbers in older files
                if name in kept and not isinstance(kept[name], Tensor):
                    kept[name] = step_counter(p) + float(kept[name])


def of_reals(value: Any) -> Any:
    """Return a complex tensor as the pairs of numbers that it holds, and other values as they
    are."""
    return view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def before_write(value: Any, group: dict[str, Any]) -> Any:
    """Return a tensor that the update overwrites, copied where backward may need it."""
    return value.clone() if group.get("differentiable") else value


def step_counter(p: Any) -> Any:
    """Return a new counter of a parameter's steps."""
    return zeros((), dtype=_get_scalar_dtype(), device=p.device)


def filled_like(p: Any, number: float) -> Any:
    """Return a tensor like a parameter with the number in each part."""
    return full_like(p, number * (1 + 1j) if p.is_complex() else number)


def _fitted(name: Any, value: Any, p: Any) -> Any:
    """Return a saved value for parameter p, tensors in its dtype. The step counter keeps its
    own."""
    if isinstance(value, Tensor):
        # a count in float16 would stop at 2048
        cast = p.is_floating_point() and name != "step"
        return value.to(p.device, p.dtype if cast else value.dtype)
    if isinstance(value, dict):
        return {key: _fitted(key, part, p) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_fitted(None, part, p) for part in value])
    return value


def require(holds: bool, text: str, value: Any) -> None:
    """Raise ValueError "Invalid <text>: <value>" for an option out of its range."""
    if not holds:
        raise ValueError(f"Invalid {text}: {value}")


def require_one_element(lr: Any) -> None:
    """Raise ValueError for a rate that is a tensor of another size."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def require_rate(lr: Any) -> None:
    """Raise ValueError for a value that is no learning rate."""
    require_one_element(lr)
    require(not lr < 0, "learning rate", lr)


def should_be(holds: bool, text: str, wanted: str, value: Any) -> None:
    """Raise ValueError for an option out of its range, in the newer wording."""
    if not holds:
        raise ValueError(f"{text} should be {wanted} but is: {value}")


def require_means(
    lr: float, betas: tuple[float, float], eps: float, weight_decay: float
) -> None:
    """Raise ValueError for options out of range, of optimizers with two running means: Adam's
    family."""
    require_rate(lr)
    require(eps >= 0, "epsilon value", eps)
    require(0 <= betas[0] < 1, "beta parameter at index 0", betas[0])
    require(0 <= betas[1] < 1, "beta parameter at index 1", betas[1])
    require(weight_decay >= 0, "weight_decay value", weight_decay)
