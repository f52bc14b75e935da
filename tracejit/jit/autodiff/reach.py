"""Connections of the tape: from which results a gradient comes, and where it ends.

In: tensors with history.
Out: for inputs the outputs that lead to them, the leaves behind tensors, what a backward frees and
what nodes keep. A node that stands for a loop, a branch or a compiled call says which of its
results reach which of its inputs (`reached`). Called by `stages.py`, `differentiate.py`,
`cond_vjp.py` and `loop_vjp.py`: an input that no result reaches has no gradient, not zeros.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tracejit.core.eager.function import FunctionNode
from tracejit.core.eager.history import CopySlices, Overwrite
from tracejit.core.eager.nodes import AccumulateGrad, Extras, Node, edge_of
from tracejit.core.eager.saved import Saved, SavedOutput, label_of_itself
from tracejit.core.eager.tape import CustomNode, OpNode
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.autodiff.outer_saves import InnerSave, OuterSaves, SaveRecord
from tracejit.jit.capture.epilogue import NotCacheable
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.subgraph import Start, SubgraphTracer

_BARE = (CopySlices, Overwrite, Start)  # nodes without saved tensors
TapeEdge = tuple[Node, int]  # a node and the number of its result


def reaching(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[frozenset[int]]:
    """Return, for each input, the numbers of the outputs whose history leads to it."""
    places: dict[TapeEdge, list[int]] = {}
    for k, x in enumerate(inputs):
        if x._requires_grad:
            places.setdefault(edge_of(x), []).append(k)
    found: list[set[int]] = [set() for _ in inputs]
    for number, output in enumerate(outputs):
        for place in places_behind([output], set(places)):
            for k in places.get(place, ()):
                found[k].add(number)
    return [frozenset(numbers) for numbers in found]


def leaves(tensors: Sequence[Tensor], first_node: int, starts: bool = False) -> set[Node]:
    """Find the nodes at which gradients of these tensors end: leaves, and history older than the
    call. With `starts` also the placeholders at the start of iterations of loops that are being
    traced."""
    return {node for node, _ in places_behind(tensors)
            if ends_at(node, first_node) or starts and type(node) is Start}


def extras_behind(outputs: Sequence[Tensor], first_node: int) -> list[Extras]:
    """List hooks and retained gradients of the call's own nodes behind outputs."""
    return [node.extras for node in _own(outputs, first_node) if node.extras is not None]


def retaining(outputs: Sequence[Tensor], first_node: int) -> bool:
    """Return True if a backward from outputs sets `.grad` of a tensor that the call made."""
    extras = extras_behind(outputs, first_node)
    return any(tensor() is not None for found in extras for tensor in found.retained.values())


def freed_within(region: SubgraphTracer, outputs: Sequence[Tensor]) -> set[frozenset[int]]:
    """Find the parts of a region's history that are freed by themselves, each as the numbers of the
    outputs that lead through it."""
    found: dict[Any, set[int]] = {}
    for number, x in enumerate(outputs):
        for place in places_behind([x]):
            for part in () if ends_at(place[0], region.first_node) else freed_with(*place):
                found.setdefault(part, set()).add(number)
    return {frozenset(numbers) for numbers in found.values()}


def is_freed(output: Tensor, first_node: int) -> bool:
    """Return True if a backward inside the call freed history of its own behind `output`. Raises
    NotCacheable if a value decides that."""
    places = [place for place in places_behind([output]) if not ends_at(place[0], first_node)]
    if any(_is_over(*place) for place in places):
        return True
    if any(node.freeing.depends(node.freeing.through([number]) & node.over)
           for node, number in places if isinstance(node, CustomNode) and node.freeing is not None):
        raise NotCacheable("a tensor's value decides if a backward() in the function frees the "
                           "history of a result")
    return False


def _is_over(node: Node, number: int) -> bool:
    if isinstance(node, CustomNode):
        if node.backward is None or node.freeing is None:
            return node.backward is None
        parts = node.freeing.through([number]) & node.over
        return bool(parts) and not node.freeing.depends(parts)
    if isinstance(node, FunctionNode):
        return node._freed
    return isinstance(node, OpNode) and node.keeps and node.operands is None


def freed_with(node: Node, number: int) -> Iterator[Any]:
    """Yield the parts of a node that a backward through its result `number` frees."""
    if isinstance(node, CustomNode) and node.freeing is not None:
        yield from ((node, k) for k in node.freeing.through([number]))
    elif isinstance(node, OpNode):
        if node.keeps:
            yield node
    elif not isinstance(node, _BARE) and (not isinstance(node, FunctionNode) or node._kept):
        yield node


def deciding(outputs: Sequence[Tensor], first_node: int) -> Iterator[Tensor]:
    """Yield the flags that decide whether parts of the call's own history were there to be
    freed."""
    for place in places_behind(outputs):
        for part in () if ends_at(place[0], first_node) else freed_with(*place):
            if (flag := flag_of(part)) is not None:
                yield flag[0]


def flag_of(part: Any) -> tuple[Tensor, bool] | None:
    """Return the flag that decides whether a freed part was there, and the value it must have.
    None: the part was there."""
    return part[0].freeing.flag(part[1]) if type(part) is tuple else None


def kept(outputs: Sequence[Tensor], results: bool = False, first_node: int = 0) -> Iterator[Any]:
    """Yield the tensors that the history of outputs since `first_node` keeps: they must not change
    before a backward. With `results` also results that a node keeps of its own, and tensors that
    only one way of the program keeps."""
    for _, x in _noted(outputs, first_node):
        if type(x) is OuterSaves:
            yield from (record.tensor for record in x.records(always=not results))
        elif isinstance(x, Tensor):
            yield x
        elif type(x) is Saved or results:
            yield x.tensor


def kept_one_way(outputs: Sequence[Tensor], first_node: int) -> Iterator[SaveRecord]:
    """Yield the records of tensors that the history keeps on one way of the program only."""
    for _, x in _noted(outputs, first_node):
        if type(x) is OuterSaves:
            yield from (record for record in x.records(always=False) if not record.always)


def _noted(outputs: Sequence[Tensor], first_node: int) -> Iterator[tuple[Node, Any]]:
    """Yield (node, object) for what nodes behind outputs hold since `first_node`, the latest node
    first. Objects are records of saved tensors, and bare tensors that the nodes of loops and
    branches hold."""
    nodes = {node for node, _ in places_behind(outputs) if node.sequence >= first_node}
    for node in sorted(nodes, key=lambda node: -node.sequence):
        yield from ((node, x) for x in _within(node, True))


def records(node: Node) -> Iterator[Saved | SavedOutput | SaveRecord]:
    """Yield a node's records of tensors that must not change before a backward. That of a loop or a
    branch has also those that matter only on one way of the program."""
    for x in _within(node, False):
        if type(x) is OuterSaves:
            yield from x.records(always=False)
        else:
            yield x


def _within(node: Node, tensors: bool) -> Iterator[Any]:
    """Yield the records within a node, with `tensors` also bare tensors."""
    stack: list[Any] = [node]
    while stack:
        for x in _held_by(stack.pop()):
            if type(x) in (OuterSaves, Saved, SavedOutput) or tensors and isinstance(x, Tensor):
                yield x
            elif type(x) in (tuple, list) or hasattr(type(x), "holds_tensors"):
                stack.append(x)


def _held_by(x: Any) -> list[Any]:
    """List the objects that an object refers to. Attributes of a custom Function's node may lie in
    a dict, which `_within` does not enter."""
    attributes = list(vars(x).values()) if isinstance(x, FunctionNode) else []
    return [*gc.get_referents(x), *attributes]


def memory_kept(
    region: SubgraphTracer, outputs: Sequence[Tensor]
) -> dict[FunctionalStorage, InnerSave]:
    """Find the memory that history within a region keeps, and how."""
    found: dict[FunctionalStorage, InnerSave] = {}
    for number, output in enumerate(outputs):
        for node, x in _noted([output], region.first_node):
            if type(node) is AccumulateGrad:  # no rule reads its leaf
                continue
            if type(x) is OuterSaves:
                every = [*x.tested(lambda t: region.traced(t).read())]
            else:
                every = [(x, None)]
            for kept, tests in every:
                tensor = kept if isinstance(kept, Tensor) else kept.tensor
                item = region.lifted.get(id(tensor))
                traced = tensor._traced if item is None else item.traced
                if traced is None:
                    continue
                known = found.get(traced.memory)
                if known is None or known.age < node.sequence:
                    label = (label_of_itself(tensor, traced.shape) if isinstance(kept, Tensor)
                             else kept.label(traced.shape))
                    found[traced.memory] = InnerSave({} if known is None else known.when,
                                                     node.sequence, operand_of(kept), label)
                when: Any = found[traced.memory].when
                before = when.get(number, [])
                when[number] = None if before is None or tests is None else [*before, *tests]
    return found


def operand_of(kept: Any) -> Tensor | None:
    """Return the operand that a record keeps. None for a result, and for a tensor of a region's
    own."""
    if type(kept) is SaveRecord:
        return None if kept.itself is None else kept.itself()
    return kept if isinstance(kept, Tensor) else kept.tensor if type(kept) is Saved else None


def _own(outputs: Sequence[Tensor], first_node: int) -> set[Node]:
    """Find the nodes behind outputs that the call made."""
    return {node for node, _ in places_behind(outputs) if not ends_at(node, first_node)}


def ends_at(node: Node, first_node: int) -> bool:
    """Return True if a node is a leaf's, or older than the call."""
    return type(node) is AccumulateGrad or node.sequence < first_node


def places_behind(tensors: Sequence[Tensor], stops: Collection[TapeEdge] = ()
                  ) -> Iterator[TapeEdge]:
    """Yield the places of tensors and those behind them, each once. Nothing behind `stops` is
    visited."""
    return places_from([edge_of(x) for x in tensors if x._requires_grad], stops)


def places_from(places: Sequence[TapeEdge], stops: Collection[TapeEdge] = ()) -> Iterator[TapeEdge]:
    """Yield these places and those behind them, like `places_behind`."""
    seen: set[TapeEdge] = set()
    stack = list(places)
    while stack:
        place = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        yield place
        if place not in stops:
            stack += connected(place)


def connected(place: TapeEdge) -> list[TapeEdge]:
    """List the edges along which a gradient of this result of a node goes on."""
    reached: Any = getattr(getattr(place[0], "backward", None), "reached", None)
    return [edge for k, edge in enumerate(place[0].edges)
            if edge is not None and (reached is None or place[1] in reached[k])]
