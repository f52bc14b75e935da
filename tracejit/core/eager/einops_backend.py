"""Backend for einops, which chooses one by the type of its arguments.

In: einops, when a program imports it. Out: a backend of ours among its own. This file does not
import einops itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from tracejit.core.eager.construction import from_numpy
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.contraction import einsum
from tracejit.core.ops.creation import arange
from tracejit.core.ops.joining import cat, stack

_BACKENDS = "einops._backends"


class _Symbolic(tuple):
    """Shape of which some sizes are known only when a program runs, so it must not be a cache's
    key."""

    __hash__ = None  # type: ignore[assignment]


def offer(backends: ModuleType) -> None:
    """Define the backend. einops finds all subclasses of its `AbstractBackend`."""
    class TracejitBackend(backends.AbstractBackend):  # type: ignore[name-defined]
        framework_name = "tracejit"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Any:
            return from_numpy(x)

        def to_numpy(self, x: Any) -> Any:
            return x.detach().cpu().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return arange(start, stop)

        def shape(self, x: Any) -> tuple:
            return tuple(x.shape) if active.tracer is None else _Symbolic(x.shape)

        def reshape(self, x: Any, shape: Sequence[int]) -> Any:
            return x.reshape(tuple(shape))

        def transpose(self, x: Any, axes: Sequence[int]) -> Any:
            return x.permute(axes)

        def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
            names = {"min": "amin", "max": "amax"}
            if operation in ("min", "max", "sum", "mean"):
                return getattr(x, names.get(operation, operation))(dim=tuple(axes))
            for axis in sorted(axes, reverse=True):  # prod, any, all: one dimension at a time
                x = getattr(x, operation)(dim=axis)
            return x

        def stack_on_zeroth_dimension(self, tensors: list) -> Any:
            return stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
            sizes: list[Any] = [-1] * n_axes
            for position, length in pos2len.items():
                x, sizes[position] = x.unsqueeze(position), length
            return x.expand(sizes)

        def tile(self, x: Any, repeats: Sequence[int]) -> Any:
            return x.repeat(repeats)

        def concat(self, tensors: list, axis: int) -> Any:
            return cat(tensors, axis)

        def is_float_type(self, x: Any) -> bool:
            return x.is_floating_point()

        def einsum(self, pattern: str, *x: Any) -> Any:
            return einsum(pattern, *x)

    backends.TracejitBackend = TracejitBackend  # type: ignore[attr-defined]  # keeps it alive

class _Offering(Loader):
    """Loader of einops' backends that adds ours to them."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        offer(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != _BACKENDS:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Offering(spec.loader)
        return spec


def watch_for_einops() -> None:
    """Offer the backend now, or when einops is imported."""
    if _BACKENDS in sys.modules:
        offer(sys.modules[_BACKENDS])
    else:
        sys.meta_path.insert(0, _Finder())
