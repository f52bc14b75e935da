"""Recording of a part of a program apart from the rest: a branch, the body of a loop.

In: ops on deferred tensors while a branch or a body runs once, on trial. Out: a graph of its own,
whose inputs are values of the surrounding graph (`captured`) and placeholders. What a trial cannot
do without being seen from outside (a value needed now, a random draw, an effect) raises
`RegionRefused`. Then the branch is decided by the value, natively. Called by `cond.py` and
`loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tracejit.config import flags
from tracejit.core.eager.modes import is_grad_enabled
from tracejit.core.eager.nodes import Node
from tracejit.core.eager.recording import active
from tracejit.core.eager.subclasses import kept_class, of_class
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import counting_family
from tracejit.core.ops import random
from tracejit.core.ops.gather_scatter import read_at
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import TensorType
from tracejit.jit.capture.breaks import CaptureError, InternalError, RegionRefused, leaked
from tracejit.jit.capture.inputs import LiftedInput
from tracejit.jit.capture.looking import is_a, is_stand_in
from tracejit.jit.capture.speculation import SpeculationWatcher
from tracejit.jit.capture.storage import FunctionalStorage, FunctionalTensor, VersionCounter
from tracejit.jit.capture.strides import known_strides
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Value


def _is_stopped(value: Value) -> bool:
    """Return True if gradients do not flow to what this is a view of."""
    while value.node is not None and value.node.op.views:
        value = value.node.inputs[0]
    return value.node is not None and value.node.op.name == "stop_gradient"


class SubgraphTracer(Tracer):
    """Records a region of `parent`'s graph; tensors of the parent are captured when met."""

    may_run_zero_times = True

    def __init__(self, parent: Tracer, name: str):
        self.parent: Any = parent
        super().__init__(name, parent.run_segment, False, parent.static)
        self.root = parent.root
        self.refused: RegionRefused | None = None  # the first refusal raised in this region
        self.restarted = parent.restarted

    def start(self) -> None:
        super().start()
        self.graph.scope = self.parent.graph.scope
        self.captured: dict[Value, Value] = {}  # a value of the parent -> the input here
        # memory of the parent -> what it is here
        self.memories: dict[FunctionalStorage, FunctionalStorage] = {}
        self.copies: dict[FunctionalStorage, FunctionalStorage] = {}  # and back
        # a copy that stands for a view -> of what
        self.gathered_views: dict[FunctionalStorage, FunctionalStorage] = {}
        self.leaf_constraints: list[tuple[set[Node], set[Node]]] = []  # must have the same leaves
        self.created_here: list[Any] = []  # containers made here: changing them is no effect

    # -- meeting tensors of the parent -----------------------------------------------------------
    def traced(self, tensor: Tensor) -> FunctionalTensor:
        state = tensor._traced
        if state is not None and state.tracer is self:
            return state
        known = self.lifted.get(id(tensor))
        if known is not None:
            return known.traced  # type: ignore[return-value]
        if state is not None and not self._surrounds(state.tracer):
            raise CaptureError(leaked(state))
        outer = self.parent.traced(tensor)
        if outer.memory.overlaps_other:
            raise RegionRefused("memory that overlaps other memory is used")
        memory = self.inner_memory(outer.memory)
        value = memory.value
        views = []
        for op, operands, attributes in outer.views:
            inner = tuple([self.capture(x) if is_a(x, Value) else x for x in operands])
            value = self.graph.append(op, (value, *inner), attributes)
            views.append((op, inner, attributes))
        if _is_stopped(outer.read()):
            value = self.graph.append(REGISTRY["stop_gradient"], (value,), {})
        traced = FunctionalTensor(self, memory, tuple(views), value)
        self.lifted[id(tensor)] = LiftedInput(tensor, memory.input, traced)
        return traced

    def has_met(self, tensor: Tensor) -> bool:
        return super().has_met(tensor) or self.parent.has_met(tensor)

    def _surrounds(self, tracer: Any) -> bool:
        outer: Any = self.parent
        while is_a(outer, SubgraphTracer) and outer is not tracer:
            outer = outer.parent
        return outer is tracer

    def outer_memory(self, memory: FunctionalStorage) -> FunctionalStorage | None:
        return self.copies.get(memory)

    def same_leaves(self, one: set[Node], other: set[Node]) -> None:
        if one != other:
            self.parent.same_leaves(one, other)

    def carries(self, tensor: Tensor) -> bool:
        return self.parent.carries(tensor)

    def before(self, tensor: Tensor) -> list[Tensor]:
        return self.parent.before(tensor)

    def is_outer(self, tensor: Tensor) -> bool:
        """Return True if a tensor was made outside this region."""
        return tensor._traced is None or tensor._traced.tracer is not self

    def inner_memory(self, outer: FunctionalStorage) -> FunctionalStorage:
        """Return what memory of the parent is here."""
        memory = self.memories.get(outer)
        if memory is None:
            value = self.capture(outer.value)
            counter = VersionCounter(outer.version)
            memory = self.memories[outer] = FunctionalStorage(value, counter, outer.input_tensor)
            memory.input, memory.strides = value, outer.strides
            self.copies[memory] = outer
        return memory

    def capture(self, value: Value) -> Value:
        """Make a value of the parent's graph an input here."""
        known = self.captured.get(value)
        if known is None:
            known = self.captured[value] = self.graph.input(value.type, source=value.source)
            known.is_weak = value.is_weak
        return known

    def placeholder(self, like: Tensor, requires_grad: bool) -> Tensor:
        """Make a deferred tensor of the type of `like`, standing for what an iteration starts
        from."""
        return self.placeholder_of(self.parent.traced(like).read().type, requires_grad)

    def placeholder_of(self, type: TensorType, requires_grad: bool) -> Tensor:
        memory = FunctionalStorage(self.graph.input(type, source="carried"))
        tensor = self._wrap(FunctionalTensor(self, memory))
        if requires_grad:  # not a leaf: it may be written in place
            tensor._requires_grad, tensor._node = True, Start()
        return tensor

    def twin(self, tensor: Tensor) -> Tensor:
        """Another tensor over the same memory with the same history, as each subscript gives."""
        made = self.alias(tensor)
        made._requires_grad = tensor._requires_grad
        made._node, made._output_nr = tensor._node, tensor._output_nr
        return made

    def _operand(self, x: Any) -> Any:
        if not is_stand_in(x) or not hasattr(x, "graph_value"):
            return super()._operand(x)
        if x.value is not None and x.value.graph is self.graph:
            return x.value
        value = self.parent._operand(x)
        return self.capture(value) if is_a(value, Value) else value  # else a large int

    # -- views whose place only the program knows --------------------------------------------------
    def gathered_view(self, container: Tensor, dim: int, item: Tensor) -> Tensor:
        """Let `item`, a copy, stand for a view of `container`.

        As long as neither is written, and the item does not leave the region, nobody can tell.
        """
        memory, whole = self.traced(item).memory, self.traced(container)
        kept = kept_class(type(container))
        if kept is None:
            raise RegionRefused("a class is asked what its parts are")
        of_class(item, kept)
        self.gathered_views[memory] = whole.memory
        if known_strides(whole, without=dim) is not None:
            memory.strides = known_strides(whole, always=True)
        return item

    def selected(self, tensor: Tensor, dim: int, index: Tensor) -> Tensor:
        return self.gathered_view(tensor, dim, read_at(tensor, dim, index))

    def is_gathered_view(self, tensor: Tensor) -> bool:
        """Return True if a tensor is, or may be, a copy made here that stands for a view."""
        memory = self.traced(tensor).memory
        known = [memory, *(other for other, _ in self.sharing.memories.of(memory))]
        return any(m in self.gathered_views for m in known)

    def _check_gathered_views(self, tensor: Tensor) -> None:
        for region, memory in self._layers(tensor):
            others = [other for other, _ in region.sharing.memories.of(memory)]
            if any(m in region.gathered_views or m in region.gathered_views.values()
                   for m in [memory, *others]):
                raise RegionRefused("a tensor is written of which a part is in use")

    def _layers(self, tensor: Tensor) -> Iterator[tuple[SubgraphTracer, FunctionalStorage]]:
        """Yield what a tensor looks at, here and in the regions around."""
        region: Any = self
        memory: Any = self.traced(tensor).memory
        while memory is not None and is_a(region, SubgraphTracer):
            yield region, memory
            memory, region = region.copies.get(memory), region.parent

    # -- what a region may not do ------------------------------------------------------------------
    def write(self, tensor: Tensor, value: Any) -> None:
        traced = self.traced(tensor)
        self._check_gathered_views(tensor)
        outer = self.copies.get(traced.memory)
        if outer is not None:
            if is_grad_enabled() and (tensor._requires_grad or value._requires_grad):
                raise RegionRefused("a tensor made outside is written while gradients are recorded")
            if self.counts_outside(tensor):
                raise RegionRefused("a tensor is written that the caller has from `.data`")
            self._check_kept(tensor)
        super().write(tensor, value)

    def _check_kept(self, tensor: Tensor) -> None:
        """History outside may not depend on whether a region runs."""
        maybe = False
        for region, memory in self._layers(tensor):
            maybe = maybe or region.may_run_zero_times
            outer = region.copies.get(memory)
            if maybe and outer is not None:
                region.parent.check_kept(outer, counting_family(tensor))

    def repeats(self, memory: FunctionalStorage) -> bool:
        outer = self.copies.get(memory)
        return super().repeats(memory) if outer is None else self.parent.repeats(outer)

    def break_graph(self, tensor: Tensor | None, reason: str, hint: str = "") -> None:
        raise RegionRefused(reason)

    def add_break(self, reason: str, hint: str = "") -> None:
        raise RegionRefused(reason)

    def flush(self) -> None:
        raise RegionRefused("a value is needed")

    def rng_input_of(self, generator: random.Generator) -> Any:
        raise RegionRefused("random numbers are drawn")

    def grad_written(self, tensor: Tensor) -> None:
        if tensor._traced is None or tensor._traced.tracer is not self:
            raise RegionRefused("the gradient of a tensor made outside is changed")

    def history_written(self, tensor: Tensor) -> None:
        if tensor._traced is None or tensor._traced.tracer is not self:
            raise RegionRefused(
                "requires_grad, the history or hooks of a tensor made outside change")
        self.hides(())

    def hides(self, tensors: Sequence[Any]) -> None:
        self.runs_code = True
        self.parent.hides(tensors)

    def applies(self, node: Any) -> None:
        if node.sequence < self.first_node:
            raise RegionRefused("backward() runs through history made outside")

    # -- what the surrounding call keeps ---------------------------------------------------------
    def number(self, container: Any, key: Any, value: float) -> Any:
        return self.parent.number(container, key, value)

    def grad_read(self, tensor: Tensor) -> None:
        if tensor._traced is None:
            self.parent.grad_read(tensor)

    def constant(self, tensor: Tensor) -> Tensor:
        if tensor._traced is not None:
            return tensor
        self.root.constants[id(tensor)] = tensor
        return self.run(REGISTRY["clone"], (tensor,), {})

    def commit_container(self, container: Any) -> None:
        raise RegionRefused("an optimizer makes the state of its parameters")

    def owned(self, containers: Sequence[Any]) -> None:
        self.created_here += containers

    def is_created_here(self, container: Any) -> bool:
        """Return True if a container was made in this region or in one around it within the
        trial."""
        if any(x is container for x in self.created_here):
            return True
        return False

    def claim_created(self) -> Callable[[Any], bool]:
        """`is_created_here`, for taking results apart; a container found twice cannot become
        two."""
        taken: set[int] = set()

        def take(container: Any) -> bool:
            if not self.is_created_here(container):
                return False
            if id(container) in taken:
                raise RegionRefused("a list or dict is found in two places")
            taken.add(id(container))
            return True

        return take

    def appending(self, container: list) -> Callable[[Any], None]:
        """Return what stands for `container.append` here."""
        raise RegionRefused("a list is appended to under a condition")

    # -- the result --------------------------------------------------------------------------------
    def written_outside(self) -> dict[FunctionalStorage, FunctionalStorage]:
        """Memory of the parent that was written here: the parent's -> what it became."""
        return {outer: m for m, outer in self.copies.items() if m.mutations}

    def may_fail(self) -> bool:
        """Return True if something fails for some values."""
        return any(node.may_fail for node in self.graph.nodes)

    def reads(self, outer: FunctionalStorage) -> bool:
        """Return True if memory of the parent is read here."""
        memory = self.memories.get(outer)
        return memory is not None and any(
            memory.input is x for node in self.graph.nodes for x in node.operand_values())

    def outer_tensors(self) -> list[Tensor]:
        """Tensors of the parent that were met here and require grad."""
        found = [item.tensor for item in self.lifted.values()]
        return [t for t in found if t._requires_grad]

    def unchanged(self) -> None:
        """Raises RegionRefused where a tensor made outside got another history or gradient here."""
        for item in self.lifted.values():
            tensor = item.tensor
            grad, (requires, *_) = item.before
            if tensor._grad is not grad or tensor._requires_grad is not requires:
                tensor._grad, tensor._requires_grad = grad, requires
                raise RegionRefused(
                    "requires_grad or a gradient of a tensor made outside is changed")

    def release(self) -> None:
        """Forget everything but the names that an error gives: the statement is over.

        The region and its tensors hold each other. Tensors around that were met here would count as
        alive until the garbage collector runs.
        """
        kept = {name: self.__dict__[name] for name in ("parent", "root", "name")}
        self.__dict__.clear()
        self.__dict__.update(kept)

    def region(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """Extract the part of what was recorded that computes `outputs` from `inputs`.

        Every output has memory of its own.
        """
        own: list[Value] = []
        for value in outputs:
            shared = value.node is None or any(value is x for x in own)
            own.append(self.graph.append(REGISTRY["clone"], (value,), {}) if shared else value)
        return extract(self.graph, self.name, inputs, own)


class Start(Node):
    """History of a placeholder: there is none within the region."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())

    def apply(self, grads: list) -> Sequence[Any]:
        return ()


@contextmanager
def speculate(region: SubgraphTracer) -> Iterator[None]:
    """Record into `region` meanwhile. Leaves with `RegionRefused` where something could not be
    recorded, also where the user's own code took the exception for one of its own."""
    root, watch = region.root, SpeculationWatcher()
    root.speculation_depth += 1
    active.tracer = region
    modes = active.grad_enabled, active.inference
    try:
        with watch:
            yield
        if modes != (active.grad_enabled, active.inference):
            raise RegionRefused("grad mode is left changed")
        if region.refused is not None:
            raise region.refused
        if root.refusals:
            raise RegionRefused(root.refusals[0])
    finally:
        watch.end()
        region.refused = None  # its traceback would keep the user's variables alive
        root.speculation_depth -= 1
        active.tracer = region.parent
        active.grad_enabled, active.inference = modes
        if not root.speculation_depth:
            root.lists_read.clear()
            pending, root.refusals = root.refusals, []
            for reason in dict.fromkeys(pending):
                root.add_break(reason)


@contextmanager
def forbid_breaks(root: Tracer) -> Iterator[None]:
    """Let what would end the segment raise `RegionRefused`.

    What was recorded of a region belongs to it.
    """
    root.speculation_depth += 1
    try:
        yield
    finally:
        root.speculation_depth -= 1


@contextmanager
def refuse_on_bug() -> Iterator[None]:
    """Around the making of nodes: an error here is not the user's. The region is refused."""
    try:
        yield
    except Exception as error:
        if flags.verify_passes:
            raise InternalError(f"{type(error).__name__}: {error}") from error
        raise RegionRefused(f"it could not be made part of the graph ({error})") from error


class RegionGradients(Protocol):
    """Gradients of nodes with regions, offered by differentiation and put on the tape by
    `attach`."""

    def of_cond(self, parent: Any, flag: Tensor, keys: list[Value], sides: list,
                wrt: list[Tensor], tracked: list[int], from_one_side: list[int | None],
                given: list[list[Tensor]]) -> Any: ...

    def of_loop(self, node: Any) -> Any: ...


_gradients: list[RegionGradients] = []


def install_region_gradients(gradients: RegionGradients) -> None:
    """Differentiation says how gradients flow through regions."""
    _gradients[:] = [gradients]


def region_gradients() -> RegionGradients:
    return _gradients[0]
