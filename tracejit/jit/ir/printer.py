"""Graphs as text: one line per node with its type, the user's line and the pass that made it.

In: a Graph. Out: text that `jit/ir/parser.py` reads back; the grammar is in docs/ir.md. Called by
`str(graph)`, logs, `fn.graphs`, golden files and error messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from tracejit.core.memory.devices import CPU, device
from tracejit.core.ops.control import ErrorOf
from tracejit.core.ops.types import TensorType, dtype
from tracejit.jit.ir.graph import Graph, Location, Node, Value
from tracejit.jit.ir.size_text import atom_text
from tracejit.jit.ir.sizes import ShapeGuard, SymInt

_WIDTH = 100
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def print_graph(graph: Graph) -> str:
    """Return the text of a graph, and give its values their printed names.

    >>> from tracejit.jit.ir.graph import Graph
    >>> from tracejit.core.ops.types import TensorType, float32
    >>> graph = Graph("step")
    >>> x = graph.input(TensorType(float32, (2, 3)), "x")
    >>> graph.outputs.append(x)
    >>> print(print_graph(graph))
    graph step(in0: float32[2, 3] "x"):
      return %in0
    """
    scope = graph.scope
    before, scope.shown = scope.shown, lambda: False  # text of a size must not ask for it
    try:
        return "\n".join(_lines(graph, "", nested=False))
    finally:
        scope.shown = before


def _lines(graph: Graph, indent: str, nested: bool) -> Iterator[str]:
    graph.number()
    yield from _header(graph, indent, nested)
    inner = indent + "  "
    for node in graph.nodes:
        yield from _node_lines(node, inner)
    for target, value in graph.writes:
        yield f"{inner}write {value_text(target)} <- {value_text(value)}"
    yield f"{inner}return {', '.join(value_text(v) for v in graph.outputs)}".rstrip()
    if not nested:
        for guard in graph.scope.guards:
            yield f"{inner}{_guard_text(guard)}"
        for atom, size in graph.scope.equal.items():
            yield f"{inner}equal {atom_text(atom)} = {size}"


def _header(graph: Graph, indent: str, nested: bool) -> Iterator[str]:
    name = graph.name if _PLAIN_NAME.fullmatch(graph.name) else _string(graph.name)
    inputs = [_input_text(graph, value) for value in graph.inputs]
    symbols = [] if nested else _symbols(graph)
    where = f" where {', '.join(symbols)}" if symbols else ""
    line = f"{indent}graph {name}({', '.join(inputs)}){where}:"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{indent}graph {name}("
    yield from (f"{indent}    {text}," for text in inputs)
    if not symbols:
        yield f"{indent}):"
        return
    yield f"{indent}) where"
    for k, text in enumerate(symbols):
        yield f"{indent}    {text}{':' if k == len(symbols) - 1 else ','}"


def _input_text(graph: Graph, value: Value) -> str:
    text = f"{value.name}: {type_text(value.type)}"
    if not value.contiguous:
        text += f" strides[{', '.join(map(str, graph.strides[value]))}]"
    if value.is_weak:
        text += " weak"
    return f"{text} {_string(value.source)}" if value.source else text


def _symbols(graph: Graph) -> list[str]:
    texts = []
    for name in dict.fromkeys((*graph.scope.hints, *graph.symbol_sources)):
        text = name
        if name in graph.scope.hints:
            text += f"={graph.scope.hints[name]}"
        if name in graph.symbol_sources:
            kind, number, dimension = graph.symbol_sources[name]
            text += f" in{number}.{kind}[{dimension}]"
        texts.append(text)
    return texts


def _node_lines(node: Node, indent: str) -> Iterator[str]:
    text, comment = f"{indent}{node_text(node)}", comment_text(node.provenance, node.location)
    if not node.regions:
        yield text + comment
        return
    yield f"{text} {{{comment}"
    for region in node.regions:
        yield from _lines(region, indent + "  ", nested=True)
    yield f"{indent}}}"


def node_text(node: Node) -> str:
    """`%0: float32[s0, 10] = matmul(%in0, %in1)`, without regions and comment."""
    outputs = ", ".join(f"{value_text(v)}: {type_text(v.type)}" for v in node.outputs)
    operands = [static_text(x) for x in node.inputs]
    attributes = [f"{name}={static_text(x)}" for name, x in node.attributes.items()]
    prefix = "detached " if node.detached else ""
    return f"{outputs} = {prefix}{node.op.name}({', '.join(operands + attributes)})"


def comment_text(provenance: str, location: Location | None) -> str:
    """Return the trailing comment: ` # [cse: from %4 mul] train.py:12 in step: y = a * b`."""
    parts = []
    if provenance:
        parts.append(f"[{_one_line(provenance).replace(']', ')')}]")
    if location is not None:
        function = f" in {location.function}" if location.function else ""
        text = f": {_one_line(location.text)}" if location.text.strip() else ""
        parts.append(f"{os.path.basename(location.file)}:{location.line}{function}{text}")
    return f"  # {' '.join(parts)}" if parts else ""


def _guard_text(guard: ShapeGuard) -> str:
    where = f"  # {_one_line(guard.where)}" if guard.where else ""
    return f"guard {guard.left} {guard.relation} {guard.right}{where}"


def type_text(type: TensorType) -> str:
    """`float32[s0, 10]`, with ` on cuda:0` where it is not on the CPU."""
    text = f"{type.dtype.name}[{', '.join(map(str, type.shape))}]"
    return text if type.device in (None, CPU) else f"{text} on {type.device}"


def value_text(value: Any) -> str:
    return f"%{value.name or '?'}"


def static_text(x: Any) -> str:
    """Return the text of an operand or attribute: a value, size, number, string, dtype, or tuple of
    these."""
    if isinstance(x, Value):
        return value_text(x)
    if type(x) is SymInt or x is None or x is True or x is False:
        return str(x)
    if isinstance(x, dtype):
        return x.name
    if isinstance(x, ErrorOf):
        return f"error({', '.join(map(static_text, (x.name, *x.arguments)))})"
    if isinstance(x, tuple):
        return f"({', '.join(map(static_text, x))}{',' if len(x) == 1 else ''})"
    if isinstance(x, list):
        return f"[{', '.join(map(static_text, x))}]"
    if isinstance(x, str):
        return _string(x)
    if isinstance(x, complex):
        return f"complex({float(x.real)!r}, {float(x.imag)!r})"
    return _rare_text(x)


def _rare_text(x: Any) -> str:
    if x is ...:
        return "..."
    if isinstance(x, slice):
        return f"slice({', '.join(static_text(part) for part in (x.start, x.stop, x.step))})"
    if isinstance(x, device):
        return f"device({_string(str(x))})"
    if hasattr(x, "item"):  # a NumPy scalar
        return static_text(x.item())
    return repr(x) if isinstance(x, (int, float)) else f"<{type(x).__name__}>"


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _one_line(text: str) -> str:
    return " ".join(text.split())
