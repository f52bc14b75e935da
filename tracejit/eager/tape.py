"""The tape: nodes of the autograd graph, and what they keep of the forward computation.

In: ops just run, from dispatch (`attach`), and compiled calls (`record_custom`). Out:
`tensor.grad_fn` and the graph behind it, which the engine walks. Nothing here looks at elements, so
deferred tensors are recorded over like others.
"""

from __future__ import annotations

import itertools
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.eager.recording import active
from tracejit.eager.state import TensorState, make, shape_of
from tracejit.eager.type_names import tensor_type_name
from tracejit.eager.views import Family, View, family_of
from tracejit.ops.cotangents import cotangents, saved
from tracejit.ops.record import Op
from tracejit.ops.types import FLOATING, TensorType

Edge = tuple["Node", int] | None
_sequence = itertools.count()
_LEAF_PRIORITY = 1 << 60  # AccumulateGrad nodes run as soon as they can

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Extras:
    """What few nodes have: hooks, metadata, the forward traceback."""

    __slots__ = ("metadata", "hooks", "prehooks", "tensor_hooks", "retained", "traceback")

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.hooks: dict[int, Callable] = {}
        self.prehooks: dict[int, Callable] = {}
        self.tensor_hooks: dict[int, tuple[int, Callable]] = {}
        self.retained: dict[int, weakref.ref] = {}
        self.traceback: list[str] | None = None


class Node:
    """A function of the autograd graph; `edges[k]` says where the gradient of operand k goes."""

    __slots__ = ("edges", "sequence", "extras", "__weakref__")
    edges: tuple[Edge, ...]
    output_count = 1

    def __init__(self, edges: tuple[Edge, ...]):
        self.edges = edges
        self.sequence = next(_sequence)
        self.extras: Extras | None = None
        if active.anomaly:
            self.extra().traceback = traceback.format_list(traceback.extract_stack()[:-1])

    def apply(self, grads: list) -> Sequence[Any]:
        """Gradients along `edges` from gradients of the outputs (None where undefined)."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of what was saved."""

    def extra(self) -> Extras:
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    def name(self) -> str:
        """PyTorch's name of the node, e.g. "AddBackward0"."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        """(node, output number) for each operand; (None, 0) for those without gradient."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's own notes on this node."""
        return self.extra().metadata

    def register_hook(self, hook: Callable) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran; it may return new
        grad_inputs.
        """
        return RemovableHandle(self.extra().hooks, hook)

    def register_prehook(self, hook: Callable) -> Any:
        """Call `hook(grad_outputs)` before the node runs; it may return new grad_outputs."""
        return RemovableHandle(self.extra().prehooks, hook)

    def _sequence_nr(self) -> int:
        return self.sequence


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook out, also as a context manager."""

    _next = itertools.count()

    def __init__(self, hooks: dict, hook: Any):
        self.hooks, self.id = hooks, next(RemovableHandle._next)
        hooks[self.id] = hook

    def remove(self) -> None:
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class AccumulateGrad(Node):
    """The sink of a leaf: adds what arrives to `variable.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: TensorState):
        super().__init__(())
        self.sequence += _LEAF_PRIORITY
        self.variable = variable


def edge_of(x: TensorState) -> tuple[Node, int]:
    """Where the gradient of a tensor that requires grad goes."""
    node = x._node
    if type(node) is weakref.ref:
        node = node()
    if node is None:
        node = AccumulateGrad(x)
        x._node = weakref.ref(node)
    return node, x._output_nr


def grad_fn_of(x: TensorState) -> Node | None:
    """The node that made x; None for leaves."""
    node = x._node
    return None if type(node) is weakref.ref else node


def version_of(x: TensorState) -> int:
    """How often the memory behind x was written."""
    recorder = active.recorder
    if recorder is not None:
        return recorder.version(x)
    if x._view is not None:
        family = family_of(x)
        if family.version is not None:
            return family.version
    return 0 if x._storage is None else x._storage.version


def alias(x: TensorState) -> Any:
    """A tensor over the same memory without history: `detach()`, off the tape."""
    if active.recorder is not None:
        return active.recorder.alias(x)
    t = make(x._storage, x._offset, x._shape, x._strides, x._dtype, x._device)
    t._array, t._traced = x._array, x._traced
    view = x._view
    if view is not None and (family_of(x).version is not None or family_of(x).inference):
        t._view = family_of(x)
    return t


class Saved:
    """An operand kept for backward, with the version it had."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: TensorState):
        view = tensor._view
        if view is not None and family_of(tensor).inference:
            raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use "
                               "Tensors created in "
                               "inference mode in computation tracked by autograd. To work around "
                               "this, you can make "
                               "a clone to get a normal tensor and use it in autograd, or use "
                               "`tracejit.no_grad()` "
                               "instead of `tracejit.inference_mode()`.")
        self.tensor, self.version = tensor, version_of(tensor)

    def unpack(self) -> Any:
        check_version(self.tensor, self.version, grad_fn_of(self.tensor), self.tensor._output_nr)
        return self.tensor


class SavedOutput:
    """A result kept by the node that made it: as an alias, so that node and tensor form no
    cycle.
    """

    __slots__ = ("alias", "version", "node", "number")

    def __init__(self, output: TensorState, node: Node, number: int):
        self.alias, self.version, self.number = alias(output), version_of(output), number
        self.node = weakref.ref(node)

    def unpack(self) -> Any:
        node = self.node()
        check_version(self.alias, self.version, node, self.number)
        if not active.grad_enabled or node is None:
            return self.alias
        t = alias(self.alias)
        t._node, t._output_nr, t._requires_grad = node, self.number, True
        return t


def check_version(x: TensorState, expected: int, node: Node | None, number: int) -> None:
    """RuntimeError when a saved tensor was written since."""
    version = version_of(x)
    if version == expected:
        return
    what = f"[{tensor_type_name(x._dtype, x._device)} {list(shape_of(x))}]"
    made = f", which is output {number} of {node.name()}," if node is not None else ""
    hint = ("Hint: the backtrace further above shows the operation that failed to compute its "
            "gradient. The variable "
            "in question was changed in there or anywhere later. Good luck!" if active.anomaly else
            "Hint: enable anomaly detection to find the operation that failed to compute its "
            "gradient, with "
            "tracejit.autograd.set_detect_anomaly(True).")
    raise RuntimeError("one of the variables needed for gradient computation has been modified by "
                       "an inplace "
                       f"operation: {what}{made} is at version {version}; expected version "
                       f"{expected} instead. {hint}")


class Unsaved:
    """What is remembered of an operand or result that no rule reads: its type."""

    __slots__ = ("dtype", "shape", "device")

    def __init__(self, x: TensorState, recorder: Any):
        self.dtype, self.device = x._dtype, x._device
        self.shape = x._shape if recorder is None else recorder.shape(x)


class OpNode(Node):
    """An op's application; its subclasses carry PyTorch's names."""

    __slots__ = ("op", "operands", "outputs", "attributes", "needed", "keeps")
    op: Op
    operands: Any
    outputs: Any

    @property
    def output_count(self) -> int:  # type: ignore[override]
        return len(self.op.outputs)

    def apply(self, grads: list) -> list:
        if self.operands is None:
            raise RuntimeError(FREED)
        operands = [x.unpack() if type(x) is Saved else x for x in self.operands]
        outputs = [x.unpack() if type(x) is SavedOutput else x for x in self.outputs]
        found = cotangents(self.op, grads, operands, outputs, self.attributes, self.needed)
        results: list[Any] = [None] * len(self.edges)
        for k, grad in zip(self.needed, found):
            results[k] = grad
        return results

    def release(self) -> None:
        if self.keeps:
            self.operands = self.outputs = None

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_result`: what the node keeps, by PyTorch's names or ours."""
        if name.startswith("_saved_"):
            return saved_by_name(self, name[7:])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def saved_by_name(node: OpNode, name: str) -> Any:
    """An operand, output or attribute that a node keeps."""
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
        return node.attributes[name]
    raise AttributeError(f"{node.name()} does not keep {name!r}")


_node_classes: dict[Op, type] = {}
_positions: dict[tuple[Op, int], tuple[int, ...]] = {}


def _node_class(op: Op) -> type:
    found = _node_classes.get(op)
    if found is None:
        found = _node_classes[op] = type(op.backward_name(), (OpNode,), {"__slots__": ()})
    return found


def differentiable_positions(op: Op, count: int) -> tuple[int, ...]:
    """Operands of an application that have a rule."""
    found = _positions.get((op, count))
    if found is None:
        found = _positions[op, count] = tuple(k for k in range(count) if op.differentiable(k))
    return found


def attach(op: Op, operands: tuple, results: tuple, attributes: dict) -> None:
    """Put an op that just ran on the tape, if a result can require grad because an operand does."""
    count = len(operands)
    edges: list[Edge] = [None] * count
    needed: tuple[int, ...] = ()
    for k in _positions.get((op, count)) or differentiable_positions(op, count):
        x = operands[k]
        if isinstance(x, TensorState) and x._requires_grad:
            edges[k] = edge_of(x)
            needed += (k,)
    if not needed or results[0]._dtype.category < FLOATING and not _any_floating(results):
        return
    node = (_node_classes.get(op) or _node_class(op))(tuple(edges))
    plan = saved(op, needed, count)
    node.op, node.attributes, node.needed = op, attributes, needed
    node.keeps = bool(plan.outputs or plan.operands)
    recorder = active.recorder
    kept, known = plan.operands, []
    for k, x in enumerate(operands):
        if isinstance(x, TensorState):
            x = Saved(x) if k in kept else Unsaved(x, recorder)
        known.append(x)
    node.operands = tuple(known)
    kept, known = plan.outputs, []
    for k, r in enumerate(results):
        known.append(SavedOutput(r, node, k) if k in kept else Unsaved(r, recorder))
        if r._dtype.category >= FLOATING:
            r._node, r._output_nr, r._requires_grad = node, k, True
    node.outputs = tuple(known)


def _any_floating(results: tuple) -> bool:
    return any(r._dtype.category >= FLOATING for r in results)


def type_of(x: TensorState) -> TensorType:
    return TensorType(x._dtype, shape_of(x), x._device)


class CustomNode(Node):
    """One node for a whole computation whose backward is a callable (a compiled call)."""

    __slots__ = ("backward", "saved", "output_types")

    def __init__(self, edges: tuple[Edge, ...], backward: Callable | None, saved: tuple,
                 output_types: tuple):
        super().__init__(edges)
        self.backward, self.saved, self.output_types = backward, saved, output_types

    @property
    def output_count(self) -> int:  # type: ignore[override]
        return len(self.output_types)

    def apply(self, grads: list) -> Sequence[Any]:
        if self.backward is None:
            raise RuntimeError(FREED)
        for x in self.saved:
            x.unpack()
        return self.backward(tuple(grads), active.grad_enabled)

    def release(self) -> None:
        self.backward, self.saved = None, ()


_custom_classes: dict[str, type] = {}


def record_custom(name: str, inputs: Sequence[Any], outputs: Sequence[Any], backward: Callable,
                  saved: Sequence[Any] = ()) -> Node | None:
    """Make `outputs` the results of one node called `name` with edges to `inputs`.

    backward(grads, create_graph) gets one gradient (or None) for each output and returns one (or
    None) for each input; with create_graph it must run differentiable ops. Tensors in `saved` must
    not be written before it runs: that is checked. Floating outputs require grad afterwards.
    Returns None when no input requires grad.
    """
    if not active.grad_enabled:
        return None
    edges = tuple([edge_of(x) if isinstance(x, TensorState) and x._requires_grad
                   else None for x in inputs])
    if not any(edges):
        return None
    cls = _custom_classes.get(name)
    if cls is None:
        cls = _custom_classes[name] = type(name, (CustomNode,), {"__slots__": ()})
    kept = tuple([Saved(x) for x in saved])
    node = cls(edges, backward, kept, tuple([type_of(x) for x in outputs]))
    for k, x in enumerate(outputs):
        if x._dtype.category >= FLOATING:
            x._node, x._output_nr, x._requires_grad = node, k, True
    return node


def attach_view(op: Op, parent: TensorState, operands: tuple, attributes: dict,
                result: TensorState) -> None:
    """Remember that `result` is `op` of `parent`'s own memory."""
    if parent._view is None:
        parent._view = Family()
    result._view = View(parent, op, operands, attributes, family_of(parent),
                        not active.grad_enabled)


def refresh(x: TensorState) -> None:
    """Give a view the history that writes to its base, or through other views, have made since."""
    stale = []
    while type(x._view) is View and x._view.generation != x._view.family.generation:
        stale.append(x)
        x = x._view.parent
    for v in reversed(stale):
        view = v._view
        view.generation = view.family.generation
        if view.untracked:
            continue
        v._node, v._output_nr, v._requires_grad = None, 0, False
        attach(view.op, (view.parent, *view.operands), (v,), view.attributes)
