"""Runs a recorded graph op by op: for an op's own error, or where no program can be had.

In: a graph and its inputs. Out: its outputs, or the error that eager mode raises. Called by
`session`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.runtime.compiled_graph import CompiledGraph


def op_by_op(graph: Graph, inputs: list[Any]) -> list[Tensor]:
    """Interpret a graph; what an op raises is raised as eager mode would."""
    segment = CompiledGraph(graph, "graph", "fast")
    try:
        return segment.run(inputs, segment.bound(inputs))
    except GraphError as error:
        raise (error.__cause__ or error) from None
