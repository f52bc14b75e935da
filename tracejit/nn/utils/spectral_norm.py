"""Spectral normalisation by a hook: before each call it divides `weight` by its largest singular
value, which power iteration follows.

`parametrizations.spectral_norm` shares the steps.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tracejit.nn.parameter import Parameter


def as_matrix(weight: Any, dim: int) -> Any:
    """Return a weight as a matrix whose rows are its slices along `dim`."""
    if dim != 0:
        weight = weight.movedim(dim, 0)
    return weight.flatten(1)


def default_dim(module: Any) -> int:
    """Return the dimension of a layer's weight along which its outputs lie."""
    # the weights of these are (in, out, ...)
    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def check_iterations(count: int) -> None:
    """Raise ValueError for less than one iteration."""
    if count <= 0:
        raise ValueError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={count}"
        )


def random_direction(weight: Any, count: int, eps: float) -> Any:
    """Draw a vector of length 1."""
    drawn = tracejit.randn(count, dtype=weight.dtype, device=weight.device)
    return F.normalize(drawn, dim=0, eps=eps)


class SpectralNorm:
    """Hook of one tensor of a module."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        check_iterations(n_power_iterations)
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """Return the weight over its largest singular value. An iteration writes u and v."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with tracejit.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(tracejit.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(tracejit.mv(matrix, v), dim=0, eps=self.eps))
                # copies: the next iteration overwrites what backward needs
                u, v = u.clone(), v.clone()
        return weight / tracejit.dot(u, tracejit.mv(matrix, v))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a parameter by its largest singular value before each call.

    The parameter is `<name>_orig` from now on; `<name>_u` and `<name>_v` follow the singular
    vectors, by `n_power_iterations` in each call in training.

    >>> import tracejit
    >>> layer = tracejit.nn.utils.spectral_norm(tracejit.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']

    Raises RuntimeError where it is done already; ValueError where nothing is iterated. Newer:
    `parametrizations.spectral_norm`.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
    made = SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    with tracejit.no_grad():
        rows, columns = as_matrix(weight, made.dim).shape
        u, v = random_direction(weight, rows, eps), random_direction(weight, columns, eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    # no parameter: the hook replaces it before each call
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(made)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make the tensor a parameter again. Raises ValueError where there is no norm of it.

    >>> import tracejit
    >>> layer = tracejit.nn.utils.spectral_norm(tracejit.nn.Linear(3, 2))
    >>> list(dict(tracejit.nn.utils.remove_spectral_norm(layer).named_parameters()))
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with tracejit.no_grad():
                weight = hook.compute_weight(module, do_power_iteration=False)
            for gone in (name, name + "_u", name + "_v", name + "_orig"):
                delattr(module, gone)
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
