"""List of all passes, in order.

In: a captured (and differentiated) Graph. Out: a better one for lowering to read; the given graph
is not changed. Called by `jit` when a program is made. `fn.graphs` calls `stages` to show each
step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tracejit import logs
from tracejit.config import flags
from tracejit.core.ops import pointwise
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.verify import verify
from tracejit.jit.passes.after_loops import after_loops
from tracejit.jit.passes.before_loops import before_loops
from tracejit.jit.passes.cse import cse
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.flatten_cond import flatten_cond
from tracejit.jit.passes.fold import fold
from tracejit.jit.passes.open_composites import open_composites
from tracejit.jit.passes.products_before_loops import products_before_loops
from tracejit.jit.passes.settle_sizes import settle_sizes
from tracejit.jit.passes.simplify import simplify

Pass = Callable[[Graph, str], Graph]  # (graph, numerics) -> the same graph, changed in place

PASSES: tuple[tuple[str, Pass], ...] = (
    ("open", open_composites),  # composites -> the ops they are written in
    ("sizes", settle_sizes),    # sizes known to be equal -> one of them
    ("fold", fold),             # constants -> numbers
    ("branches", flatten_cond),  # small branches -> both sides and a choice
    ("simplify", simplify),     # identities, conversions, views
    ("cse", cse),               # equal nodes -> one
    ("loops", before_loops),    # work of iterations that needs no other -> before the loop
    ("products", products_before_loops),  # products of rows -> one product before the loop
    ("sums", after_loops),      # running sums of products -> one product after the loop
    ("dce", dce),               # dead nodes and dead writes
)
_DEEP = (settle_sizes, dce)  # these see to regions themselves


def run(graph: Graph, numerics: str = "fast",
        after: Callable[[str, Graph], None] | None = None) -> Graph:
    """Return a copy of `graph` after all passes, with as many separate outputs as before.

    numerics  "fast", or "eager": only what preserves every bit
    after     called with the name of each pass and the graph at that point

    Raises GraphError, naming the pass, if flags.verify_passes is set and a pass breaks the graph.
    """
    result, _ = copy_graph(graph)
    sharing = _sharing(graph.outputs)
    for name, change in PASSES:
        for part in [result] if change in _DEEP else _parts(result):
            part.number()
            before = len(part.nodes)
            change(part, numerics)
            if logs.enabled("passes"):
                logs.emit("passes", f"{part.name}: {name}: {before} -> {len(part.nodes)} nodes")
        if name == PASSES[-1][0]:
            _separate_outputs(result, sharing)
        _inspect(result, name)
        if after is not None:
            after(name, result)
    return result


def stages(graph: Graph, numerics: str = "fast") -> list[tuple[str, str]]:
    """(name, text) of the graph as captured and after each pass."""
    texts = [("captured", print_graph(graph))]
    run(graph, numerics, lambda name, now: texts.append((name, print_graph(now))))
    return texts


def _parts(graph: Graph) -> list[Graph]:
    """Return a graph and the regions in it, innermost first."""
    inner = [part for node in graph.nodes for region in node.regions for part in _parts(region)]
    return [*inner, graph]


def _inspect(graph: Graph, name: str) -> None:
    if flags.verify_passes:
        verify(graph, after=name)
    if name in flags.print_after or "all" in flags.print_after:
        sys.stderr.write(f"# after {name}\n{print_graph(graph)}\n")


def _sharing(outputs: list[Value]) -> list[int | None]:
    """For each output, what it is the same value as: an input (-1), an earlier output, or nothing
    (None)."""
    first: dict[Value, int] = {}
    found: list[int | None] = []
    for k, value in enumerate(outputs):
        same = first.setdefault(value, k)
        found.append(-1 if value.node is None else same if same < k else None)
    return found


def _separate_outputs(graph: Graph, sharing: list[int | None]) -> None:
    """Outputs that passes made one value, or an input, get memory of their own again: `x * 1` is
    not `x`."""
    taken = set(graph.inputs)
    for k, value in enumerate(graph.outputs):
        same = sharing[k]
        if same is None and value in taken:
            origin = f"separate: output {k} from %{value.name}"
            with graph.inserting(origin, like=value.node) as made:
                graph.outputs[k] = pointwise.clone(value)
            graph.nodes += made
        elif same is not None and same >= 0:
            graph.outputs[k] = graph.outputs[same]
        taken.add(graph.outputs[k])
