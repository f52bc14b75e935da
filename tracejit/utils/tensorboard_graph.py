"""Graphs of modules in the form that TensorBoard draws.

In: a module and its arguments. Out: a `GraphDef` of tensorboardX, with a node for each op, input,
parameter and result. Boxes named after the modules hold the nodes, which have shapes, attributes
and the lines of the program. Called by: `tensorboard.py`, only where tensorboardX is installed.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Sequence
from typing import Any

from tensorboardX.proto.attr_value_pb2 import AttrValue
from tensorboardX.proto.graph_pb2 import GraphDef
from tensorboardX.proto.node_def_pb2 import NodeDef
from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboardX.proto.versions_pb2 import VersionDef

from tracejit.core.eager.modes import no_grad
from tracejit.jit import script
from tracejit.jit.capture.location import naming_modules
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.sizes import SymInt, evaluate

_HELD = re.compile(r"self((?:\._modules\['[^']+'\])*)\._(?:parameters|buffers)\['([^']+)'\]")
_CHILD = re.compile(r"\['([^']+)'\]")


def captured(module: Any, arguments: Any) -> Graph:
    """Return the graph of a module, captured on copies. CaptureError where there is no single
    graph."""
    given = arguments if isinstance(arguments, (tuple, list)) else (arguments,)
    with no_grad(), naming_modules():
        # A copy: the call may write buffers, and draw random numbers.
        return script(copy.deepcopy(module)).graph(*given)


def definition(graph: Graph, module: Any) -> GraphDef:
    """Return the graph as nodes whose names are paths through the module's boxes."""
    return _Drawing(graph, module).drawn


def _boxes(module: Any) -> dict[str, str]:
    """Return the path that stands for each module by its name: `Net/Sequential[body]/Linear[0]`."""
    found = {"": type(module).__name__}
    for name, child in module.named_modules(remove_duplicate=False):
        if name:
            above, _, last = name.rpartition(".")
            found[name] = f"{found[above]}/{type(child).__name__}[{last}]"
    return found


class _Drawing:
    """Nodes drawn of a graph so far."""

    def __init__(self, graph: Graph, module: Any):
        self.drawn = GraphDef(versions=VersionDef(producer=22))
        self.boxes = _boxes(module)
        self.names: dict[Value, str] = {}  # the node that makes it and which of its results it is
        self.taken: set[str] = set()
        for value in graph.inputs:
            held = _HELD.fullmatch(value.source)
            if held is None:
                self.names[value] = self._node(f"input/{value.source}", "IO Node", [], [value])
            else:
                box = self.boxes[".".join(_CHILD.findall(held[1]))]
                self.names[value] = self._node(f"{box}/{held[2]}", "Parameter", [], [value])
        self._ops(graph)
        for k, value in enumerate(graph.outputs):
            self._node(f"output/{k}", "IO Node", [value], [value])
        for target, value in graph.writes:
            self._node(f"{self.names[target]}_written", "Write", [value], [value])

    def _ops(self, graph: Graph, box: str = "") -> None:
        for node in graph.nodes:
            where = node.location
            inside = box or self.boxes[where.module if where else ""]
            said = {key: str(x) for key, x in node.attributes.items()}
            if where:
                said["line"] = f"{where}: {where.text}"
            name = self._node(f"{inside}/{node.op.name}", node.op.name, node.inputs, node.outputs,
                              said)
            for k, value in enumerate(node.outputs):
                self.names[value] = f"{name}:{k}" if k else name
            for region in node.regions:
                self._region(region, f"{name}_{region.name.rpartition('_')[2]}", node.outputs[:1])

    def _region(self, region: Graph, box: str, run_by: Sequence[Value]) -> None:
        for value in region.inputs:
            self.names[value] = self._node(f"{box}/input", "IO Node", run_by, [value])
        self._ops(region, box)
        for value in region.outputs:
            self._node(f"{box}/output", "IO Node", [value], [value])

    def _node(self, place: str, op: str, inputs: Sequence[Any], outputs: Sequence[Value],
              said: dict[str, str] | None = None) -> str:
        """Add a node, and return its name, which is `place` unless that is taken."""
        numbered = (f"{place}_{k}" for k in itertools.count(1))
        name = next(x for x in itertools.chain([place], numbered) if x not in self.taken)
        self.taken.add(name)
        attr = {key: AttrValue(s=text.encode()) for key, text in (said or {}).items()}
        numbers = [f"{x:d}" if isinstance(x, SymInt) else str(x) for x in inputs
                   if x is not None and not isinstance(x, Value)]
        if numbers:
            attr["numbers"] = AttrValue(s=", ".join(numbers).encode())
        attr["dtype"] = AttrValue(s=", ".join(x.dtype.name for x in outputs).encode())
        shapes = AttrValue.ListValue(shape=[_shape(value) for value in outputs])
        attr["_output_shapes"] = AttrValue(list=shapes)
        self.drawn.node.append(NodeDef(
            name=name, op=op, attr=attr,
            input=[self.names[x] for x in inputs if isinstance(x, Value)]))
        return name


def _shape(value: Value) -> TensorShapeProto:
    """Return the sizes of a value in the example."""
    sizes = [evaluate(n, value.graph.scope.hints) for n in value.shape]
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])
