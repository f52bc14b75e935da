"""Weight normalisation by a hook: before each call it computes `weight` as a length times a
direction.

`parametrizations.weight_norm` shares the formula.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.nn.parameter import Parameter


def norm_except(v: Any, dim: int | None) -> Any:
    """Return the norms of the slices of `v` along `dim`, with size 1 in others. None or -1: of
    all."""
    if dim is None or dim == -1:
        return v.norm()
    others = [k for k in range(v.dim()) if k != dim % v.dim()]
    # the slices of a vector are single numbers
    return v.norm(dim=others, keepdim=True) if others else v.abs()


class WeightNorm:
    """Hook of one tensor of a module."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """Return the direction times the length."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace a parameter by its lengths `<name>_g` along `dim` (None: one length) and its
    direction `<name>_v`. Before each call it is computed from them.

    >>> import tracejit
    >>> layer = tracejit.nn.utils.weight_norm(tracejit.nn.Linear(3, 2))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (tracejit.Size([2, 1]), tracejit.Size([2, 3]))

    Raises RuntimeError where it is done already. Newer: `parametrizations.weight_norm`.
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of "
        "`nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
    made = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except(weight, made.dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, made.compute_weight(module))
    module.register_forward_pre_hook(made)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the tensor a parameter again, of the same shape. Raises ValueError where there is no
    weight norm of it.

    >>> import tracejit
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     layer = tracejit.nn.utils.weight_norm(tracejit.nn.Linear(3, 2))
    >>> sorted(dict(tracejit.nn.utils.remove_weight_norm(layer).named_parameters()))
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module)
            delattr(module, name)
            del module._parameters[name + "_g"], module._parameters[name + "_v"]
            setattr(module, name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
