"""Nodes of the autograd graph: edges, hooks, and the sinks of leaves.

In: what the tape's kinds of nodes share. Out: `Node`, `AccumulateGrad`, and the edge along which a
tensor's gradient goes (`edge_of`). Called by the tape, custom Functions, writes and the engine.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tracejit.core.eager.conditional_grad import through
from tracejit.core.eager.recording import active, ever
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.views import canonical

Edge = tuple["Node", int] | None
next_number = itertools.count().__next__  # of nodes, in the order they are made
_LEAF_PRIORITY = 1 << 60  # sequence numbers of AccumulateGrad nodes lie above all others

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Extras:
    """Parts that few nodes have: hooks, metadata, the forward traceback."""

    __slots__ = ("metadata", "hooks", "prehooks", "tensor_hooks", "retained", "traceback")

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.hooks: dict[int, Callable] = {}
        self.prehooks: dict[int, Callable] = {}
        self.tensor_hooks: dict[int, tuple[int, Callable]] = {}
        self.retained: dict[int, weakref.ref] = {}
        self.traceback: list[str] | None = None


class Node:
    """Function of the autograd graph. `edges[k]`: (node, output) that the gradient of operand k
    goes to."""

    __slots__ = ("edges", "sequence", "extras", "__weakref__")
    edges: tuple[Edge, ...]
    output_count = 1
    call: Any = None  # the captured call of which this node is a stage
    stage = -1  # its number among the call's stages
    opaque = False  # stands for the nodes of a branch, a loop or a call
    partial_edges = False  # not every result leads to every edge
    late = -1  # the operand whose leaf gets its gradient after those of the others
    is_slice = False  # of a tensor: the gradient may be added to that of other parts
    plain: Any = None  # (node, gradient) -> gradients: a shorter way for plain ones, or None

    def __init__(self, edges: tuple[Edge, ...]):
        self.edges = edges
        self.sequence = next_number()
        self.extras: Extras | None = None
        if ever.anomaly and active.anomaly:
            import traceback  # takes long, and few programs ask for this mode

            self.extra().traceback = traceback.format_list(traceback.extract_stack()[:-1])

    def apply(self, grads: list) -> Sequence[Any]:
        """Return gradients along `edges` from gradients of the outputs (None where undefined)."""
        raise NotImplementedError

    def edges_behind(self, number: int) -> Iterable[int]:
        """Return the numbers of the edges to which a result leads."""
        return range(len(self.edges))

    def release(self) -> None:
        """Free what the node saved."""

    def apply_uncertain(self, grads: list) -> Sequence[Any]:
        """Do what `apply` does, with gradients of which some are conditional."""
        return through(self.apply, grads)

    def indifferent(self) -> bool:
        """Return True if user code cannot tell if the node runs for gradients that do not
        arrive."""
        return False

    def extra(self) -> Extras:
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    def name(self) -> str:
        """Return PyTorch's name of the node, e.g. "AddBackward0"."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple:
        """Pair (node, output number) for each operand; (None, 0) for those without gradient."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict:
        """Dictionary for the user's own notes on this node."""
        return self.extra().metadata

    def register_hook(self, hook: Callable) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran; it may return new
        grad_inputs."""
        return RemovableHandle(self.extra().hooks, hook)

    def register_prehook(self, hook: Callable) -> Any:
        """Call `hook(grad_outputs)` before the node runs; it may return new grad_outputs."""
        return RemovableHandle(self.extra().prehooks, hook)

    def _sequence_nr(self) -> int:
        return self.sequence


class RemovableHandle:
    """Handle of a registered hook. `remove()`, or leaving it as a context manager, takes the hook
    out.

    hooks_dict: dictionary with the hook under the handle's `id`; without `hook` the caller puts it
    in.

    extra_dict: one or several further dictionaries that may have an entry of this `id`.
    """

    _next = itertools.count()

    def __init__(self, hooks_dict: dict, hook: Any = None, *,
                 extra_dict: dict | Sequence[dict] | None = None):
        self.hooks, self.id = hooks_dict, next(RemovableHandle._next)
        self.others = (extra_dict,) if isinstance(extra_dict, dict) else extra_dict
        if hook is not None:
            hooks_dict[self.id] = hook

    def hooks_dict_ref(self) -> dict:
        """Return the dictionary that holds the hook."""
        return self.hooks

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        # A new hook must not get the number of one that was loaded.
        RemovableHandle._next = itertools.count(max(next(RemovableHandle._next), self.id + 1))

    def remove(self) -> None:
        for table in (self.hooks, *(self.others or ())):
            table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class AccumulateGrad(Node):
    """Sink of a leaf: adds gradients that arrive to `variable.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: TensorState):
        self.edges, self.sequence, self.extras = (), next_number() + _LEAF_PRIORITY, None
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"


class LeafSink:
    """Stand-in for a node at a leaf, which lives as long as the leaf.

    It refers weakly to the sink, which graphs hold and which holds the leaf: so there is no cycle.
    """

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: Callable[[], AccumulateGrad | None] = nobody

    def of(self, leaf: TensorState) -> AccumulateGrad:
        """Return the sink of the leaf, made where no graph holds one."""
        node = self.found()
        if node is None:
            node = AccumulateGrad(canonical(leaf))
            self.found = weakref.ref(node)
        return node


def nobody() -> None:
    """Return None, as a weak reference to nothing does."""


def edge_of(x: TensorState) -> tuple[Node, int]:
    """Return the edge (node, output) along which the gradient of a tensor that requires grad
    goes."""
    node = x._node
    if node is None:
        node = x._node = LeafSink()
    if type(node) is LeafSink:
        return node.of(x), 0
    return node, x._output_nr


class GradientEdge(NamedTuple):
    """Edge along which a tensor's gradient goes: the node that made the tensor, and its result's
    number.

    ownership_token  the type of that result, if known
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def leads_elsewhere(tensors: Iterable[TensorState], own: set[Node]) -> bool:
    """Return True if gradients of tensors would arrive at a leaf whose sink is not in `own`."""
    stack = [edge_of(x)[0] for x in tensors if x._requires_grad]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node in own:
            continue
        if type(node) is AccumulateGrad:
            return True
        behind = {edge[0] for edge in node.edges if edge is not None} - seen
        seen |= behind
        stack += behind
    return False


def reaches(tensors: Iterable[Any], place: tuple[Node, int],
            stop: tuple[Node, int] | None = None) -> bool:
    """Return True if gradients of tensors (or edges) arrive at a place, other than by way of
    `stop`."""
    stack = [(x.node, x.output_nr) if type(x) is GradientEdge else edge_of(x)
             for x in tensors if type(x) is GradientEdge or x._requires_grad]
    seen = set()
    while stack:
        found = stack.pop()
        if found == place:
            return True
        if found not in seen and found != stop:
            seen.add(found)
            stack += [edge for edge in found[0].edges if edge is not None]
    return False


def grad_fn_of(x: TensorState) -> Node | None:
    """Return the node that made x; None for leaves."""
    node = x._node
    return None if type(node) is LeafSink else node
