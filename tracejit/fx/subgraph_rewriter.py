"""Subgraphs replaced by others; PyTorch's `torch.fx.subgraph_rewriter`.

In: a graph, a pattern and a replacement. Out: the graph with the replacement wherever the pattern
was. The search starts at each node that could be the pattern's last one, and goes back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracejit.fx.graph import Graph
from tracejit.fx.graph_module import GraphModule, _copy_attr
from tracejit.fx.linting import has_path
from tracejit.fx.node import Node, map_arg
from tracejit.fx.tracer import symbolic_trace
from tracejit.nn.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """One place of a pattern: its last node, and the graph's node for each of its nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """One place of a pattern, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Callable[..., Any] | GraphModule,
                    replacement: Callable[..., Any] | GraphModule) -> list[Match]:
    """Replace a pattern wherever the module's graph has it, and return the places.

    Places do not overlap. Nothing else may use the values within one.

    >>> import tracejit
    >>> traced = symbolic_trace(lambda x: (x + x).relu() * 2)
    >>> places = replace_pattern(traced, lambda a: (a + a).relu(), lambda a: a.abs())
    >>> len(places), [node.name for node in traced.graph.nodes]
    (1, ['x', 'abs_1', 'mul', 'output'])
    """
    return [Match(found.anchor, found.nodes_map)
            for found in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Callable[..., bool]] | None = None, ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Replace a pattern where all filters agree: `filter(match, graph, pattern_graph)`.

    ignore_literals       numbers of the pattern stand for any
    replacement_callback  gives the replacement of a match
    """
    wanted = _graph(pattern)
    made = None if replacement is None else _graph(replacement)
    filters = match_filters or []
    matches = [m for m in _matches(gm.graph, wanted, ignore_literals)
               if all(f(m, gm.graph, wanted) for f in filters)]
    if made is not None and isinstance(replacement, Module):
        _take_attributes(gm, made, replacement)
    replaced: dict[Node, Node] = {}
    found = []
    for match in matches:
        new = made if replacement_callback is None else replacement_callback(
            match, gm.graph, wanted)
        assert new is not None, "Must provide either a replacement or a replacement_callback"
        found.append(_replace(gm.graph, wanted, new, match, replaced))
    gm.recompile()
    if made is not None and isinstance(replacement, Module):
        gm.delete_all_unused_submodules()
    return found


def _graph(given: Any) -> Graph:
    if isinstance(given, Graph):
        return given
    return given.graph if isinstance(given, GraphModule) else symbolic_trace(given).graph


def _take_attributes(gm: GraphModule, made: Graph, source: Module) -> None:
    """Let the module have what the replacement calls and reads."""
    for node in made.nodes:
        if node.op in ("call_module", "get_attr") and not has_path(gm, str(node.target)):
            _copy_attr(source, gm, str(node.target))


# -- the search --------------------------------------------------------------------------------
def _matches(graph: Graph, pattern: Graph, ignore_literals: bool) -> list[Match]:
    """Return the places of the pattern that do not overlap, in order."""
    anchors = pattern.output_node().all_input_nodes
    assert anchors, "The pattern returns nothing that it computes"
    last = anchors[0]
    used: set[Node] = set()
    found = []
    for node in graph.nodes:
        search = _Search(pattern, ignore_literals)
        if not search.same(last, node):
            continue
        if not all(a in search.known or search.elsewhere(a, graph) for a in anchors[1:]):
            continue
        inner = [there for p, there in search.known.items() if p.op != "placeholder"]
        if search.closed(anchors) and not used.intersection(inner):
            used.update(inner)
            found.append(Match(last, search.known))
    return found


class _Search:
    """One try to find the pattern: the graph's node for each of its nodes."""

    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.known: dict[Node, Any] = {}

    def same(self, wanted: Node, node: Any) -> bool:
        """Return True if a node of the graph, and what it uses, is like one of the pattern."""
        if wanted in self.known:
            return self.known[wanted] is node
        if wanted.op == "placeholder":
            self.known[wanted] = node
            return True
        if not isinstance(node, Node) or node.op != wanted.op or node.target != wanted.target:
            return False
        self.known[wanted] = node
        ok = self.alike(wanted.args, node.args) and self.alike(wanted.kwargs, node.kwargs)
        if not ok:
            del self.known[wanted]
        return ok

    def alike(self, wanted: Any, given: Any) -> bool:
        """Return True if arguments of the pattern are like those of the graph."""
        if isinstance(wanted, Node):
            return self.same(wanted, given)
        if isinstance(wanted, (list, tuple)):
            return (isinstance(given, (list, tuple)) and len(wanted) == len(given)
                    and all(map(self.alike, wanted, given)))
        if isinstance(wanted, dict):
            return (isinstance(given, dict) and set(wanted) == set(given)
                    and all(self.alike(wanted[k], given[k]) for k in wanted))
        if isinstance(given, Node):
            return False
        return self.ignore_literals or type(wanted) is type(given) and wanted == given

    def elsewhere(self, wanted: Node, graph: Graph) -> bool:
        """Find another result of the pattern."""
        for node in graph.nodes:
            before = dict(self.known)
            if self.same(wanted, node):
                return True
            self.known = before
        return False

    def closed(self, results: list[Node]) -> bool:
        """Return True if only the results are used outside."""
        inner = {there for p, there in self.known.items() if p.op != "placeholder"}
        return all(
            all(user in inner for user in there.users)
            for p, there in self.known.items()
            if p.op not in ("placeholder", "get_attr") and p not in results)


# -- the replacement ---------------------------------------------------------------------------
def _replace(graph: Graph, pattern: Graph, made: Graph, match: Match,
             replaced: dict[Node, Node]) -> ReplacedPatterns:
    """Put a copy of the replacement in the place of one match."""
    for wanted, node in list(match.nodes_map.items()):
        while isinstance(node, Node) and node in replaced:
            node = match.nodes_map[wanted] = replaced[node]
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    new_inputs = [n for n in made.nodes if n.op == "placeholder"]
    assert len(inputs) == len(new_inputs), (
        f"The placeholders of the pattern ({len(inputs)}) and of the replacement "
        f"({len(new_inputs)}) differ")
    values: dict[Node, Any] = {
        new: match.nodes_map[old] for old, new in zip(inputs, new_inputs)
        if old in match.nodes_map}
    ends = pattern.output_node().all_input_nodes
    old = [match.nodes_map[n] for n in ends]
    order = list(graph.nodes)
    first_user = min((u for n in old for u in n.users), key=order.index, default=None)
    before = set(order)
    with graph.inserting_before(first_user) if first_user is not None else (
            graph.inserting_after(old[0])):
        result = graph.graph_copy(made, values)
    if isinstance(result, Node):
        results: list[Any] = [result]
    else:
        results = []
        map_arg(result, results.append)
    assert len(results) == len(old), "The pattern and the replacement return different numbers"
    for was, now in zip(old, results):
        was.replace_all_uses_with(now)
        replaced[was] = now
    for node in reversed(list(pattern.nodes)):
        there = match.nodes_map.get(node)
        if node.op not in ("placeholder", "output") and isinstance(there, Node):
            if not there.users and not there._erased:
                graph.erase_node(there)
    new = [n for n in graph.nodes if n not in before]
    return ReplacedPatterns(match.anchor, copy.copy(match.nodes_map), new)
