"""Batches split over devices and put together again; PyTorch's `torch.nn.parallel.scatter_gather`.

In: trees of tensors, devices. Out: a tree for each device, or one tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tracejit
from tracejit.utils._pytree import tree_flatten, tree_map, tree_unflatten


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return, for each device, the same tree with its part of each tensor. Other leaves go to all.

    >>> scatter({"x": tracejit.arange(4), "n": 2}, ["cpu", "cpu"])
    [{'x': tensor([0, 1]), 'n': 2}, {'x': tensor([2, 3]), 'n': 2}]
    """
    leaves, spec = tree_flatten(inputs)
    parts = [x.chunk(len(target_gpus), dim) if isinstance(x, tracejit.Tensor) else None
             for x in leaves]
    many = min((len(p) for p in parts if p is not None), default=len(target_gpus))
    found = [
        tree_unflatten([x if p is None else p[k].to(place) for x, p in zip(leaves, parts)], spec)
        for k, place in zip(range(many), target_gpus)
    ]
    return tuple(found) if isinstance(inputs, tracejit.Tensor) else found


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return one tree, whose tensors are those of all trees joined.

    >>> gather([tracejit.ones(1), tracejit.zeros(1)], "cpu")
    tensor([1., 0.])
    """
    def joined(*parts: Any) -> Any:
        if not isinstance(parts[0], tracejit.Tensor):
            return parts[0]
        return tracejit.cat([x.reshape(1) if x.dim() == 0 else x for x in parts], dim).to(
            target_device)

    return tree_map(joined, outputs[0], *outputs[1:])
