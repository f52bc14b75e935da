"""Tape: a node for every op that ran on tensors that require grad.

In: ops that have just run, from dispatch (`attach`), and traced branches and loops
(`record_custom`). Out: `tensor.grad_fn` and the graph behind it, which the engine walks. Nothing
here looks at elements, so deferred tensors are recorded over like others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tracejit.core.eager.nodes import FREED, Edge, Node, RemovableHandle, edge_of, grad_fn_of
from tracejit.core.eager.origins import PIECE, check_use, is_older, mark, origin_of, standing
from tracejit.core.eager.plain_gradients import rules_of
from tracejit.core.eager.recording import active, ended_to_hints
from tracejit.core.eager.saved import Saved, SavedOutput, SavedResult, Unsaved, alias, settle_shapes
from tracejit.core.eager.state import TensorState, shape_of
from tracejit.core.eager.views import AliasFamily, View, family_of
from tracejit.core.ops.cotangents import cotangents, saved
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import FLOATING, TensorType

__all__ = [
    "FREED", "OpNode", "RemovableHandle", "alias", "attach", "attach_view", "grad_fn_of",
    "record_custom", "refresh", "type_of",
]  # fmt: skip


class OpNode(Node):
    """Application of an op; its subclasses carry PyTorch's names."""

    __slots__ = ("op", "operands", "outputs", "attributes", "needed", "keeps", "symbolic")
    op: Op
    attributes: dict[str, Any]
    operands: Any
    outputs: Any

    @property
    def output_count(self) -> int:  # type: ignore[override]
        return len(self.op.outputs)

    def apply(self, grads: list) -> list:
        if self.operands is None:
            raise RuntimeError(FREED)
        if self.symbolic:
            self._settle()
        operands = [x.unpack() if type(x) is Saved else x for x in self.operands]
        outputs = [x.unpack() if type(x) is SavedOutput else x for x in self.outputs]
        found = cotangents(self.op, grads, operands, outputs, self.attributes, self.needed)
        results: list[Any] = [None] * len(self.edges)
        for k, grad in zip(self.needed, found):
            results[k] = grad
        return results

    def _settle(self) -> None:
        """Replace symbolic sizes and numbers of an ended recording by plain ones."""
        self.attributes = ended_to_hints(self.attributes)
        self.operands = ended_to_hints(self.operands)
        settle_shapes(self.operands)
        settle_shapes(self.outputs)
        self.symbolic = active.tracer is not None

    def indifferent(self) -> bool:
        return self.extras is None and self.operands is not None and all(
            x.intact() for x in (*self.operands, *self.outputs) if type(x) in (Saved, SavedOutput))

    def release(self) -> None:
        if self.keeps:
            self.operands = self.outputs = None

    def __getattr__(self, name: str) -> Any:
        """Return what the node keeps, by PyTorch's names or ours: `_saved_self`,
        `_saved_result`."""
        if name.startswith("_saved_"):
            return saved_by_name(self, name[7:])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def saved_by_name(node: OpNode, name: str) -> Any:
    """Return an operand, output or attribute that a node keeps."""
    if node.operands is None:
        raise RuntimeError(FREED)
    if name == "result":
        name = node.op.outputs[0]
    for k, x in enumerate(node.operands):
        if type(x) is Saved and (node.op.operand_name(k) == name or name == "self" and k == 0):
            return x.unpack()
    if name in node.op.outputs:
        x = node.outputs[node.op.outputs.index(name)]
        if type(x) is SavedOutput:
            return x.unpack()
    if name in node.attributes:
        return ended_to_hints(node.attributes[name])
    raise AttributeError(f"{node.name()} does not keep {name!r}")


_node_classes: dict[Op, type] = {}
# In PyTorch the gradient of a linear map's weight goes through one node more: hooks see it late.
_LATE = {"linear": 1}
_positions: dict[tuple[Op, int], tuple[int, ...]] = {}


def node_class(op: Op) -> type:
    """Return the class of an op's nodes, which bears PyTorch's name."""
    found = _node_classes.get(op)
    if found is None:
        found = _node_classes[op] = type(op.backward_name(), (OpNode,), {
            "__slots__": (), "plain": rules_of(op.name), "late": _LATE.get(op.name, -1),
            "is_slice": op.name in ("select", "slice")})
    return found


def differentiable_positions(op: Op, count: int) -> tuple[int, ...]:
    """Return the positions of an op's operands that have a gradient rule."""
    found = _positions.get((op, count))
    if found is None:
        found = _positions[op, count] = tuple(k for k in range(count) if op.differentiable(k))
    return found


def attach(op: Op, operands: tuple, results: tuple, attributes: dict) -> None:
    """Put an op that has just run on the tape, if an operand requires grad and a result can."""
    count = len(operands)
    edges: list[Edge] = [None] * count
    needed: tuple[int, ...] = ()
    marked = []
    for k in _positions.get((op, count)) or differentiable_positions(op, count):
        x = operands[k]
        if isinstance(x, TensorState):
            if x._requires_grad:
                edges[k] = edge_of(x)
                needed += (k,)
            if type(x._view) is View and standing(x):
                marked.append(x)
    if not needed and not marked:
        return
    if results[0]._dtype.category < FLOATING and not _any_floating(results):
        return
    for x in marked:
        check_use(x)
    node = (_node_classes.get(op) or node_class(op))(tuple(edges))
    plan = saved(op, needed, count)
    node.op, node.attributes, node.needed = op, attributes, needed
    # `x[i]` with a tensor i keeps i, but like the plain view it has nothing that a backward frees.
    node.keeps = bool(plan.outputs or plan.operands) and not op.views
    tracer = active.tracer
    node.symbolic = tracer is not None
    kept, known = plan.operands, []
    for k, x in enumerate(operands):
        if isinstance(x, TensorState):
            x = Saved(x) if k in kept else Unsaved(x, tracer)
        known.append(x)
    node.operands = tuple(known)
    kept, known = plan.outputs, []
    for k, r in enumerate(results):
        known.append(SavedOutput(r, node, k) if k in kept else Unsaved(r, tracer))
        if r._dtype.category >= FLOATING:
            r._node, r._output_nr, r._requires_grad = node, k, True
    node.outputs = tuple(known)


def _any_floating(results: tuple) -> bool:
    return any(r._dtype.category >= FLOATING for r in results)


def type_of(x: TensorState) -> TensorType:
    return TensorType(x._dtype, shape_of(x), x._device)


_NO_PARTS: frozenset[int] = frozenset()


class CustomNode(Node):
    """Node for a whole computation whose backward is a callable: a traced branch or loop."""

    __slots__ = ("backward", "saved", "output_count", "freeing", "frees", "over")
    opaque = partial_edges = True

    def __init__(self, edges: tuple[Edge, ...], backward: Callable | None, saved: tuple,
                 output_count: int):
        super().__init__(edges)
        self.backward, self.saved, self.output_count = backward, saved, output_count
        self.freeing: Any = None
        self.frees = _NO_PARTS  # parts that the running backward frees
        self.over = _NO_PARTS  # parts that earlier ones freed

    def apply(self, grads: list) -> Sequence[Any]:
        if self.backward is None:
            raise RuntimeError(FREED)
        if self.freeing is not None:
            arrived = [k for k, grad in enumerate(grads) if grad is not None]
            self.frees = self.freeing.through(arrived)
            if self.freeing.needs(self.frees & self.over):
                raise RuntimeError(FREED)
        for x in self.saved:
            x.unpack()
        return self.backward(tuple(grads), active.grad_enabled)

    def apply_uncertain(self, grads: list) -> Sequence[Any]:
        return self.apply(grads)

    def edges_behind(self, number: int) -> Iterable[int]:
        reached = getattr(self.backward, "reached", None)
        if reached is None:
            return range(len(self.edges))
        return [k for k, results in enumerate(reached) if number in results]

    def indifferent(self) -> bool:
        backward: Any = self.backward
        return (self.extras is None and hasattr(type(backward), "takes_conditional")
                and backward.intact())

    def release(self) -> None:
        self.free(self.frees)

    def free(self, parts: frozenset[int]) -> None:
        """Free these parts, and the backward once no result can use it."""
        self.over |= parts
        if self.freeing is None or self.freeing.all_over(self.over):
            self.backward, self.saved = None, ()


_custom_classes: dict[str, type] = {}


def record_custom(name: str, inputs: Sequence[Any], outputs: Sequence[Any], backward: Callable,
                  saved: Sequence[Any] = (),
                  freeing: Any = None) -> Node | None:
    """Make `outputs` the results of one node called `name` with edges to `inputs` (tensors, edges).

    backward(grads, create_graph) gets one gradient (or None) for each output and returns one (or
    None) for each input. With create_graph it must run differentiable ops. Tensors in `saved` must
    not be written before it runs, nor what a `SavedResult` among them keeps: the node checks that.
    Floating outputs require grad afterwards.
    `freeing`: the parts that a backward frees by themselves (`autodiff.branch_freed`); None: a
    backward frees everything. Returns None if no input requires grad, or grad mode is off.
    """
    if not active.grad_enabled:
        return None
    edges = tuple([x if type(x) is tuple else edge_of(x) if isinstance(x, TensorState)
                   and x._requires_grad else None for x in inputs])
    for x in inputs:
        if isinstance(x, TensorState):
            check_use(x)
    if not any(edges):
        return None
    cls = _custom_classes.get(name)
    if cls is None:
        cls = _custom_classes[name] = type(name, (CustomNode,), {"__slots__": ()})
    kept = tuple([x if type(x) is SavedResult else Saved(x) for x in saved])
    node = cls(edges, backward, kept, len(outputs))
    node.freeing = freeing
    for k, x in enumerate(outputs):
        if x._dtype.category >= FLOATING:
            x._node, x._output_nr, x._requires_grad = node, k, True
    return node


def attach_view(op: Op, parent: TensorState, operands: tuple, attributes: dict,
                result: TensorState) -> None:
    """Record that `result` is a view of `parent`: `op` of its memory."""
    if parent._view is None:
        parent._view = AliasFamily()
    elif type(parent._view) is View:
        parent._view.viewed = True
    result._view = View(parent, op, operands, attributes, family_of(parent))
    mark(result, origin_of(parent))


def refresh(x: TensorState) -> int:
    """Give a view the history that writes to its base, or through other views, have made since.
    Returns how the view stands (`origins.standing`), if its origin forbids some uses, else 0."""
    stale, refreshed = [], x
    while type(x._view) is View and x._view.generation != x._view.family.generation:
        stale.append(x)
        x = x._view.parent
    for v in reversed(stale):
        view = v._view
        if view.op is None:
            parent = view.parent
            if parent._requires_grad:
                edge_of(parent)  # makes a leaf's LeafSink, which v must share
            v._node, v._output_nr, v._requires_grad = (
                parent._node, parent._output_nr, parent._requires_grad)
        elif view.origin is None and is_older(v):
            continue
        elif view.origin is None or view.origin is PIECE and (
                view.generation < 0 or standing(v) == 0):
            before = v._node, v._output_nr, v._requires_grad
            node = grad_fn_of(v)
            v._node, v._output_nr, v._requires_grad = None, 0, False
            operands = ended_to_hints(view.operands)
            view.attributes = ended_to_hints(view.attributes)
            try:
                attach(view.op, (view.parent, *operands), (v,), view.attributes)
                move_retained(v, node, before[1])
            except BaseException:  # a tracer may refuse: v keeps its old history
                v._node, v._output_nr, v._requires_grad = before
                raise
        view.generation = view.family.generation
    view = refreshed._view
    if type(view) is not View or view.origin is None and view.op is not None and (
            view.generation == view.family.generation):
        return 0
    return standing(refreshed)


def move_retained(x: TensorState, before: Node | None, number: int) -> None:
    """Move a retained gradient of x, which was result `number` of node `before`, to its history
    now."""
    extras, node = None if before is None else before.extras, grad_fn_of(x)
    held = None if extras is None else extras.retained.get(number)
    if held is not None and held() is x and node is not None:
        del extras.retained[number]  # type: ignore[union-attr]
        node.extra().retained[x._output_nr] = held
