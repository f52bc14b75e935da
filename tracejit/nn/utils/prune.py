"""Pruning: elements, or whole slices, of a parameter held at zero by a mask; PyTorch's
`torch.nn.utils.prune`.

In: a module and the name of one of its parameters. Out: the same module, whose parameter is now
`<name>_orig`, with a buffer `<name>_mask`; a hook makes `<name>` of the two before each call.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import tracejit


class BasePruningMethod(ABC):
    """Base class of pruning methods. Subclasses write `compute_mask` and set `PRUNING_TYPE`.

    "unstructured": elements one by one; "structured": slices along `dim`; "global": as it likes.
    """

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask for scores `t`: `default_mask`, and zeros where more is to be pruned."""

    def apply_mask(self, module: Any) -> Any:
        """Return the pruned tensor of the module."""
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None,
              **kwargs: Any) -> Any:
        """Prune a parameter of the module, further where it was pruned before. Return the hook."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        before = _taken_off(module, name)
        if before is not None:
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container  # type: ignore[assignment]
        tensor = getattr(module, name)
        scores = tensor if importance_scores is None else importance_scores
        if scores.shape != tensor.shape:
            raise AssertionError("importance_scores should have the same shape as parameter "
                                 f"{name} of {module}")
        if before is None:
            mask = tracejit.ones_like(tensor)
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        made = method.compute_mask(scores, mask)
        if before is None:
            module.register_parameter(name + "_orig", tensor)
            # else a tensor that is no parameter would be refused under this name
            del module._parameters[name]
        module.register_buffer(name + "_mask", made)
        # there before the first call, too
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return `t` with zeros where this method prunes it."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = tracejit.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Any) -> None:
        """Make the pruned values the parameter itself. The function `remove` takes the hook off."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters[name + "_orig"]
        # the same parameter, which optimizers hold
        orig.data = pruned.data
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        setattr(module, name, orig)


def _taken_off(module: Any, name: str) -> BasePruningMethod | None:
    """Take the hook that prunes a parameter off the module, and return it."""
    hooks = module._forward_pre_hooks
    found = [key for key, hook in hooks.items()
             if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
    return hooks.pop(found[0]) if found else None


class PruningContainer(BasePruningMethod):
    """Several methods. Each prunes what those before it left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple = ()
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
        for method in args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter. TypeError, ValueError for anything else."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and method._tensor_name != getattr(
                self, "_tensor_name", method._tensor_name):
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, k: int) -> Any:
        return self._pruning_methods[k]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the last method's mask of the elements, or slices, that are left."""
        method = self._pruning_methods[-1]
        left = _left(method, default_mask)
        mask = default_mask.clone().to(t.dtype)
        mask[left] = method.compute_mask(t[left], default_mask[left]).to(mask.dtype)
        return mask


def _left(method: Any, mask: Any) -> Any:
    """Return an index of what is not pruned yet."""
    if method.PRUNING_TYPE == "global":
        return slice(None)
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError("Pruning methods of PRUNING_TYPE \"structured\" need to have the "
                             "attribute `dim` defined.")
    dim = method.dim % mask.dim()
    others = [d for d in range(mask.dim()) if d != dim]
    return (slice(None),) * dim + (mask.sum(dim=others) != 0,)


class Identity(BasePruningMethod):
    """Pruning of nothing: the mask is ones."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class _Elements(BasePruningMethod):
    """Pruning of `amount` elements: a number of them, or the share of all."""

    def __init__(self, amount: Any) -> None:
        self.amount = _checked(amount)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask

    def _chosen(self, t: Any, count: int) -> Any:
        raise NotImplementedError


class RandomUnstructured(_Elements):
    """Pruning of elements chosen at random."""

    def _chosen(self, t: Any, count: int) -> Any:
        return tracejit.rand_like(t).view(-1).topk(count).indices


class L1Unstructured(_Elements):
    """Pruning of the elements of least magnitude."""

    def _chosen(self, t: Any, count: int) -> Any:
        return t.abs().reshape(-1).topk(count, largest=False).indices


class _Slices(BasePruningMethod):
    """Pruning of `amount` slices along `dim`: a number of them, or the share of all."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        self.amount, self.dim = _checked(amount), dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.dim() <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                             f"Found tensor of shape {t.shape} with {t.dim()} dims")
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = _count(self.amount, t.shape[self.dim])
        if not count:
            return default_mask
        pruned = self._scores(t).topk(count, largest=False).indices
        mask = tracejit.ones_like(t)
        mask[(slice(None),) * (self.dim % t.dim()) + (pruned,)] = 0
        return mask * default_mask.to(dtype=mask.dtype)

    def _scores(self, t: Any) -> Any:
        raise NotImplementedError


class RandomStructured(_Slices):
    """Pruning of slices chosen at random."""

    def _scores(self, t: Any) -> Any:
        return tracejit.rand(t.shape[self.dim])


class LnStructured(_Slices):
    """Pruning of the slices of least norm of order `n`."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Any) -> Any:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return tracejit.norm(t, p=self.n, dim=others)


class CustomFromMask(BasePruningMethod):
    """Pruning by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# -- functions -------------------------------------------------------------------------------------
def identity(module: Any, name: str) -> Any:
    """Mask a parameter without pruning anything. Return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune `amount` elements (a number, or a share between 0 and 1) chosen at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the `amount` elements of least magnitude, or of least `importance_scores`.

    >>> import tracejit
    >>> layer = tracejit.nn.Linear(4, 2)
    >>> int(l1_unstructured(layer, "weight", amount=0.5).weight_mask.sum())
    4
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune `amount` slices along `dim` chosen at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int,
                  importance_scores: Any = None) -> Any:
    """Prune the `amount` slices along `dim` whose norm of order `n` is least."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune where `mask` is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None,
                        **kwargs: Any) -> None:
    """Prune several parameters, [(module, name), ...], as if they were one.

    importance_scores: {(module, name): tensor}, in place of the parameters themselves. TypeError
    for methods that prune slices.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors)]
    masks = [getattr(module, f"{name}_mask", None) for module, name in pairs]
    method = pruning_method(**kwargs)
    # the container asks for a name; this method is put on no module
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError("Only \"unstructured\" PRUNING_TYPE supported for the `pruning_method`. "
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}")
    whole = PruningContainer(method).compute_mask(
        tracejit.nn.utils.parameters_to_vector(scores),
        tracejit.nn.utils.parameters_to_vector(
            [tracejit.ones_like(t) if mask is None else mask for t, mask in zip(tensors, masks)]))
    parts = whole.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(pairs, tensors, parts):
        custom_from_mask(module, name, mask=part.view_as(tensor))


def remove(module: Any, name: str) -> Any:
    """Make the pruned values the parameter, without mask or hook. ValueError where it is not
    pruned."""
    method = _taken_off(module, name)
    if method is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning "
                         "can be removed")
    method.remove(module)
    return module


def is_pruned(module: Any) -> bool:
    """Return True if a parameter of the module, or of one inside it, is pruned.

    >>> import tracejit
    >>> is_pruned(tracejit.nn.Linear(2, 2))
    False
    """
    return any(isinstance(hook, BasePruningMethod) for _, part in module.named_modules()
               for hook in part._forward_pre_hooks.values())


# -- how much --------------------------------------------------------------------------------------
def _checked(amount: Any) -> Any:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if isinstance(amount, numbers.Integral) and amount < 0 or \
            not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0:
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a "
                         "non-negative integer")
    return amount


def _count(amount: Any, size: int) -> int:
    """Return the number of elements to prune among `size`."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to "
                         f"prune={size}")
    return int(amount)
