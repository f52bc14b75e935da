"""History of a call in stages: cut where one result was computed from another.

In: the places on the tape of a call's results, and those to which gradients flow.
Out: `Stage`s; each becomes one node on the caller's tape. So a result's gradient and hooks lie
between two nodes, as with the plain function. Called by `differentiate.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.core.eager.nodes import Node
from tracejit.jit.autodiff.reach import TapeEdge, connected, ends_at, freed_with

PathMask = tuple[int, int]  # ways, as bits: places that lead there, edges that it leads to


@dataclass
class Stage:
    """Part of a call's history that becomes one node.

    places   where gradients arrive: results of the call, and cuts that stages above lead to
    edges    where gradients go on to: inputs of the call, and places of stages below
    reached  for each edge the places that lead to it, a bit mask
    nodes    of the tape -> the ways through them
    freed    parts that a backward frees -> the ways through them
    """

    level: int
    places: list[TapeEdge] = field(default_factory=list)
    edges: list[TapeEdge] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    nodes: dict[Node, PathMask] = field(default_factory=dict)
    freed: dict[Any, PathMask] = field(default_factory=dict)

    def age(self) -> int:
        """Return the sequence number of its newest node: a backward runs newer stages first."""
        return max(node.sequence for node in self.nodes)


class TapeCut:
    """Tape behind results, and where it is cut. With `cut` False, results that share history share
    a stage."""

    def __init__(
        self, results: Sequence[TapeEdge], ends: Collection[TapeEdge], first_node: int, cut: bool
    ):
        self.results = results
        self.after: dict[TapeEdge, list[TapeEdge]] = {}
        stack = list(results)
        while stack:
            place = stack.pop()
            if place not in self.after:
                behind = [e for e in connected(place)
                          if e in ends or not ends_at(e[0], first_node)]
                self.after[place] = list(dict.fromkeys(behind))
                stack += [e for e in behind if e not in ends]
        self.places = sorted(self.after, key=lambda place: place[0].sequence)  # operands first
        met = {e for behind in self.after.values() for e in behind}
        self.cuts = met.intersection(results) if cut else set()
        self._cut()

    def _cut(self) -> None:
        """Find the level of each node, which is the number of cuts behind it, and cut between
        levels."""
        while True:
            self.levels = self._levels()
            more = {e for place, behind in self.after.items() for e in behind
                    if e in self.after and self.levels[e[0]] < self.levels[place[0]]} - self.cuts
            if not more:
                break
            self.cuts |= more  # which may raise levels again

    def _levels(self) -> dict[Node, int]:
        """Return a level for each node. Nodes to which no other leads get the lowest that the cuts
        allow, the others the highest: then fewer edges cross levels."""
        lowest = dict.fromkeys((node for node, _ in self.places), 0)
        for place in self.places:
            for e in self.after[place]:
                if e in self.after:
                    lowest[place[0]] = max(lowest[place[0]], lowest[e[0]] + (e in self.cuts))
        highest: dict[Node, int] = {}
        for place in reversed(self.places):
            level = highest.setdefault(place[0], lowest[place[0]])
            for e in self.after[place]:
                if e in self.after:
                    highest[e[0]] = min(highest.get(e[0], level), level - (e in self.cuts))
        return highest

    def in_order(self) -> list[TapeEdge]:
        """Return the places where it is cut, operands first."""
        return [place for place in self.places if place in self.cuts]

    def stages(self, order: Mapping[TapeEdge, int]) -> list[Stage]:
        """Make the stages, lowest first. `order`: that of the edges within a stage."""
        stage_of = self._connected()
        for place in dict.fromkeys([*self.results, *self.in_order()]):
            stage_of[place[0]].places.append(place)
        for place in self.places:
            edges = stage_of[place[0]].edges
            edges += [e for e in self.after[place]
                      if (e in self.cuts or e not in self.after) and e not in edges]
        made = {id(stage): stage for stage in stage_of.values()}
        for stage in made.values():
            stage.edges.sort(key=order.__getitem__)
            self._follow(stage, [p for p in self.places if stage_of[p[0]] is stage])
        return sorted(made.values(), key=lambda stage: (stage.level, stage.age()))

    def _connected(self) -> dict[Node, Stage]:
        """Map each node to its stage: nodes joined by an edge that is not cut share one."""
        members: dict[Node, list[Node]] = {node: [node] for node in self.levels}
        for place in self.places:
            for e in self.after[place]:
                one, other = members[place[0]], members.get(e[0])
                if other is None or e in self.cuts or one is other:
                    continue
                if len(one) < len(other):
                    one, other = other, one
                one += other
                for node in other:
                    members[node] = one
        made: dict[int, Stage] = {}
        return {node: made.setdefault(id(nodes), Stage(self.levels[node]))
                for node, nodes in members.items()}

    def _follow(self, stage: Stage, places: list[TapeEdge]) -> None:
        """Fill in the ways through a stage: its `reached`, `nodes` and `freed`."""
        # `places` has operands first, so `above` is filled from the end and `below` from the start.
        above = dict.fromkeys(places, 0)
        above |= {place: 1 << k for k, place in enumerate(stage.places)}
        number = {e: k for k, e in enumerate(stage.edges)}
        reached = [0] * len(number)
        for place in reversed(places):
            for e in self.after[place]:
                if e in number:
                    reached[number[e]] |= above[place]
                else:
                    above[e] |= above[place]
        below: dict[TapeEdge, int] = {}
        for place in places:
            below[place] = 0
            for e in self.after[place]:
                below[place] |= 1 << number[e] if e in number else below[e]
        stage.reached = reached
        for place in places:
            way = above[place], below[place]
            _widen(stage.nodes, place[0], way)
            for part in freed_with(*place):
                _widen(stage.freed, part, way)


def _widen(ways: dict, key: Any, way: PathMask) -> None:
    above, below = ways.get(key, (0, 0))
    ways[key] = above | way[0], below | way[1]
