"""Steps from a graph to a program, in order.

In: a pure Graph without composites. Out: a `Program`: kernels' texts, buffers, instructions. Called
by `jit/runtime/compiled_graph.py` and tests. fold products (`products.py`) -> group (`fuse.py`) ->
loops (`loops.py`) -> which memory (`memory.py`) -> instructions (`schedule.py`), which writes the
texts (`printing.py`, `kernels.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tracejit import logs
from tracejit.config import flags
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import SymInt
from tracejit.jit.lowering.emit import Partial
from tracejit.jit.lowering.failures import overlooked
from tracejit.jit.lowering.fuse import Fuser, kind_of
from tracejit.jit.lowering.groups import Group
from tracejit.jit.lowering.host_views import with_views
from tracejit.jit.lowering.index import resolved
from tracejit.jit.lowering.inlining import Unsupported
from tracejit.jit.lowering.loop_kernel import one_kernel, separated
from tracejit.jit.lowering.loops import Nest, lay_out
from tracejit.jit.lowering.memory import Memory, assign_memory
from tracejit.jit.lowering.partial_writes import partial_writes
from tracejit.jit.lowering.products import Folded, copy_of, fold_products, viewed
from tracejit.jit.lowering.program import Instruction, Program
from tracejit.jit.lowering.schedule import schedule

ROUNDS = 8


def lower(graph: Graph, numerics: str = "fast", inside: bool = False) -> Program:
    """Return kernels and instructions that compute `graph`.

    numerics  "fast", or "eager": bit for bit what the ops' own eager functions give
    inside    the kernels will be parts of another kernel

    Raises NotImplementedError for a composite: passes open those first.
    """
    for node in graph.nodes:
        closed = node.op.eager is not None or numerics == "eager" and node.op.fused
        if node.op.kind == "composite" and not closed:
            raise NotImplementedError(f"lowering takes no composites, found {node.op.name}")
    before, graph.scope.settled = graph.scope.settled, True
    try:
        return _lowered(graph, numerics, inside)
    finally:
        graph.scope.settled = before


def _lowered(graph: Graph, numerics: str, inside: bool) -> Program:
    guards = len(graph.scope.guards)
    _note_extents(graph)
    folded = fold_products(graph, lambda node: kind_of(node, numerics) == "product")
    if numerics == "eager":
        folded.nodes = with_views(folded.nodes, lambda node: kind_of(node, numerics) == "host")
    folded.nodes = _with_contiguous_operands(folded.nodes, numerics)
    writes = _own_values(graph, folded)
    outputs = _outputs(graph)
    results = set(outputs) | {v for _, v in writes}
    results |= overlooked(folded.nodes, numerics, results)
    fuser, groups, nests, partials = _fused(graph, folded, results, numerics, inside)
    apart = _apart(fuser, graph) if logs.enabled("fusion") else []
    memory = assign_memory(graph, outputs, writes, groups, nests)
    program = schedule(graph, memory, nests, partials, folded, numerics, not inside)
    for k, instruction in enumerate(program.instructions):
        if instruction.host is not None and instruction.host.regions:
            program.instructions[k] = _with_regions(program, k, numerics)
    assert len(graph.scope.guards) == guards, (
        f"lowering asked about sizes: {graph.scope.guards[guards:]}"
    )
    if logs.enabled("fusion"):
        logs.emit("fusion", "\n".join([f"{graph.name}:", describe(program), *apart]))
    return program


def _with_regions(program: Program, k: int, numerics: str) -> Instruction:
    """Return an instruction that runs the regions of instruction `k`: one kernel if they fit one,
    else programs."""
    instruction = program.instructions[k]
    node: Node = instruction.host
    values = (*node.inputs, *node.outputs)
    if any(v.device is not None and v.device.type == "cuda" for v in values):
        return _apart_from_loop(instruction, numerics)  # a host loop launches kernels on a GPU
    buffers = len(program.buffers)
    try:
        if flags.check_nans:
            raise Unsupported("each step looks for NaN")
        made = one_kernel(instruction, program, lambda region: lower(region, numerics, True),
                          numerics == "fast")
        for buffer in program.buffers[buffers:]:
            buffer.first_use = buffer.last_use = k
        assert made.kernel is not None
        program.kernels[made.kernel.digest] = made.kernel
        if type(made.each) is not int:  # many elements may be worth several threads
            made.apart = cache(lambda: _apart_from_loop(instruction, numerics))
        return made
    except Unsupported as why:
        del program.buffers[buffers:]
        if logs.enabled("fusion"):
            at = f" ({node.location})" if node.location else ""
            logs.emit("fusion", f"{node.op.name}{at} is no function of its own: {why}")
    return _apart_from_loop(instruction, numerics)


def _apart_from_loop(instruction: Instruction, numerics: str) -> Instruction:
    """Make programs of an instruction's regions."""
    found = instruction.host.regions
    instruction.regions = tuple(lower(separated(region), numerics) for region in found)
    return instruction


def _note_extents(graph: Graph) -> None:
    """Note sizes of several terms that occur in a shape: they cannot be negative, whatever their
    terms."""
    scope = graph.scope
    scope.nonnegative.clear()
    values = [*graph.inputs, *(v for node in graph.nodes for v in node.outputs)]
    for size in (resolved(size) for v in values for size in v.shape):
        if type(size) is SymInt and len(size.terms) > 1:
            scope.extents.setdefault(size.key, size)


def _outputs(graph: Graph) -> list[Value]:
    """Return the value each output's memory holds. For a reshape that is its operand, unless that
    is a result too."""
    taken = {v for _, v in graph.writes} | set(graph.outputs)
    found = []
    for value in graph.outputs:
        source = viewed(graph, value)
        found.append(value if source in taken else source)
        taken.add(source)
    return found


def _with_contiguous_operands(nodes: Sequence[Node], numerics: str) -> list[Node]:
    """Copy operands of regions and library kernels that may not be contiguous: these read them
    so."""
    found: list[Node] = []
    for node in nodes:
        if node.regions or kind_of(node, numerics) == "library":
            inputs = [
                x
                if not isinstance(x, Value) or x.node is not None or x.contiguous
                else copy_of(x, found, node)
                for x in node.inputs
            ]
            node = replace(node, inputs=tuple(inputs))
        found.append(node)
    return found


def _own_values(graph: Graph, folded: Folded) -> list[tuple[Any, Value]]:
    """Return the graph's writes. An input that is written to another one is copied first, since it
    may be written itself."""
    return [
        (target, copy_of(v, folded.nodes) if v.node is None else v)
        for target, v in partial_writes(graph)
    ]


def _fused(
    graph: Graph, folded: Folded, results: set[Value], numerics: str, inside: bool
) -> tuple[Fuser, list[Group], dict[Group, Nest], dict[Value, Partial]]:
    """Return the fuser, its groups and their loops. Reductions that loops would repeat are stored
    by other groups, and all is done again."""
    apart: set[Value] = set()
    for _ in range(ROUNDS):
        fuser = Fuser(folded.nodes, folded.values(), numerics, results, apart, inside)
        groups = fuser.run()
        partials: dict[Value, Partial] = {}
        nests: dict[Group, Nest] = {}
        for group in groups:
            if group.kind in ("loop", "column", "part", "scatter"):
                nests[group] = lay_out(group, graph, partials)
        misplaced = {v for nest in nests.values() for v in nest.misplaced} - apart
        if not misplaced:
            break
        apart |= misplaced
    return fuser, groups, nests, partials


def _apart(fuser: Fuser, graph: Graph) -> list[str]:
    from tracejit.jit.lowering.apart import reasons  # only a log needs it

    return [f"apart: {why}" for why in reasons(fuser, graph)]


def describe(program: Program) -> str:
    """Return one line for each instruction: what runs together."""
    lines = []
    for k, instruction in enumerate(program.instructions):
        what = instruction.extern or (
            instruction.kernel.name if instruction.kernel else "host call"
        )
        lines.append(f"{k}: {what}: {', '.join(dict.fromkeys(instruction.ops))}")
    return "\n".join(lines)


__all__ = ["Memory", "Node", "describe", "lower"]
