"""Shapes of a graph's values, by a run with example arguments; PyTorch's
`torch.fx.passes.shape_prop`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tracejit
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.fx.interpreter import Interpreter
from tracejit.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """Description of a tensor, as a node's `meta["tensor_meta"]` holds it."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    formats = (tracejit.contiguous_format, tracejit.channels_last, tracejit.channels_last_3d)
    found = None
    if include_contiguity:
        dims = {tracejit.channels_last: 4, tracejit.channels_last_3d: 5}
        found = next((f for f in formats if dims.get(f, result.dim()) == result.dim()
                      and result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(),
                          found, False, {})


class ShapeProp(Interpreter):
    """Runs a module and leaves `tensor_meta` and `type` in the nodes' `meta`.

    >>> traced = tracejit.fx.symbolic_trace(lambda x: x.sum(0))
    >>> _ = ShapeProp(traced).propagate(tracejit.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(2, 3), (3,), (3,)]
    """

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def told(x: Any) -> Any:
            nonlocal found
            if isinstance(x, Tensor):
                found = True
                return _extract_tensor_metadata(x)
            return x

        meta = map_aggregate(result, told)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module with arguments and return its result."""
        return super().run(*args)


_sealing.seal_all(globals())
