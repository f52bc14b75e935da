"""Runs a recorded graph op by op, without compiling it.

In: a graph and its inputs. Out: its outputs, or the error that eager mode raises. Called by
`session`: after a compiled program failed, for the op's own error, and after Ctrl-C, when the user
does not want to wait for a compiler.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.runtime.compiled_graph import CompiledGraph


def op_by_op(graph: Graph, inputs: list[Any]) -> list[Tensor]:
    """Interpret a graph. An op's error is raised as in eager mode."""
    segment = CompiledGraph(graph, "graph", "fast")
    try:
        return segment.run(inputs, segment.bound(inputs))
    except GraphError as error:
        raise (error.__cause__ or error) from None
