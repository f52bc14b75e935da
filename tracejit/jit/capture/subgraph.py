"""Recording of a part of a program apart from the rest: a branch, or the body of a loop.

In: ops on deferred tensors while a branch or a body runs once, on trial. Out: a graph of its own,
whose inputs are values of the surrounding graph (`captured`) and placeholders. If a trial would do
what others see (read a value, draw random numbers, have an effect), `RegionRefused` is raised. Then
the value is read and decides the branch natively. Called by `cond.py` and `loops.py`.
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
    """Return True if a value is a view of a `stop_gradient`, or is one."""
    while value.node is not None and value.node.op.views:
        value = value.node.inputs[0]
    return value.node is not None and value.node.op.name == "stop_gradient"


class SubgraphTracer(Tracer):
    """Tracer of a region of `parent`'s graph; tensors of the parent are captured when met."""

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
        # memory of the parent -> memory here
        self.memories: dict[FunctionalStorage, FunctionalStorage] = {}
        self.copies: dict[FunctionalStorage, FunctionalStorage] = {}  # memory here -> the parent's
        # copy that stands for a view -> memory of that view
        self.gathered_views: dict[FunctionalStorage, FunctionalStorage] = {}
        # pairs of leaves that must be the same
        self.leaf_constraints: list[tuple[set[Node], set[Node]]] = []
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
            raise RegionRefused("it uses a tensor that overlaps another tensor")
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
        """Return the region's memory for memory of the parent, captured at the first use."""
        memory = self.memories.get(outer)
        if memory is None:
            value = self.capture(outer.value)
            counter = VersionCounter(outer.version)
            memory = self.memories[outer] = FunctionalStorage(value, counter, outer.input_tensor)
            memory.input, memory.strides = value, outer.strides
            self.copies[memory] = outer
        return memory

    def capture(self, value: Value) -> Value:
        """Return the input here for a value of the parent's graph."""
        known = self.captured.get(value)
        if known is None:
            known = self.captured[value] = self.graph.input(value.type, source=value.source)
            known.is_weak = value.is_weak
        return known

    def placeholder(self, like: Tensor, requires_grad: bool) -> Tensor:
        """Make a deferred tensor of the type of `like` for the value at the start of an
        iteration."""
        return self.placeholder_of(self.parent.traced(like).read().type, requires_grad)

    def placeholder_of(self, type: TensorType, requires_grad: bool) -> Tensor:
        memory = FunctionalStorage(self.graph.input(type, source="carried"))
        tensor = self._wrap(FunctionalTensor(self, memory))
        if requires_grad:  # not a leaf: it may be written in place
            tensor._requires_grad, tensor._node = True, Start()
        return tensor

    def twin(self, tensor: Tensor) -> Tensor:
        """Return another tensor over the same memory with the same history, as each subscript
        gives."""
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
        """Let `item`, a copy, stand for a view of `container` across dimension `dim`.

        No code can tell, as long as neither is written and the item does not leave the region.
        """
        memory, whole = self.traced(item).memory, self.traced(container)
        kept = kept_class(type(container))
        if kept is None:
            raise RegionRefused("it takes a part of a tensor whose class has a "
                                "`__torch_function__`")
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
                raise RegionRefused("it writes a tensor while it uses a part of it")

    def _layers(self, tensor: Tensor) -> Iterator[tuple[SubgraphTracer, FunctionalStorage]]:
        """Yield (region, memory) for the memory of a tensor, here and in the regions around."""
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
                raise RegionRefused("it writes an outer tensor while gradients are recorded")
            if self.counts_outside(tensor):
                raise RegionRefused("it writes a tensor that came from `.data`")
            self._check_kept(tensor)
        super().write(tensor, value)

    def _check_kept(self, tensor: Tensor) -> None:
        """Raise RegionRefused if a backward outside needs the memory as it is, and the region may
        not run."""
        maybe = False
        for region, memory in self._layers(tensor):
            maybe = maybe or region.may_run_zero_times
            outer = region.copies.get(memory)
            if maybe and outer is not None:
                region.parent.check_kept(outer, counting_family(tensor))

    def repeats(self, memory: FunctionalStorage) -> bool:
        outer = self.copies.get(memory)
        return super().repeats(memory) if outer is None else self.parent.repeats(outer)

    def break_graph(self, tensor: Tensor | None, reason: str, hint: str = "",
                    cause: RegionRefused | None = None) -> None:
        raise RegionRefused(reason, hint)

    def add_break(self, reason: str, hint: str = "", cause: RegionRefused | None = None) -> None:
        raise RegionRefused(reason, hint)

    def flush(self) -> None:
        raise RegionRefused("it needs a tensor's value")

    def rng_input_of(self, generator: random.Generator) -> Any:
        raise RegionRefused("it draws random numbers")

    def grad_written(self, tensor: Tensor) -> None:
        if tensor._traced is None or tensor._traced.tracer is not self:
            raise RegionRefused("it changes the gradient of an outer tensor")

    def history_written(self, tensor: Tensor) -> None:
        if tensor._traced is None or tensor._traced.tracer is not self:
            raise RegionRefused(
                "it changes requires_grad, history or hooks of an outer tensor")
        self.hides(())

    def hides(self, tensors: Sequence[Any]) -> None:
        self.runs_code = True
        self.parent.hides(tensors)

    def applies(self, node: Any) -> None:
        if node.sequence < self.first_node:
            raise RegionRefused("it runs backward() through history from outside")

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
        raise RegionRefused("it runs the first step of an optimizer, which makes its state")

    def owned(self, containers: Sequence[Any]) -> None:
        self.created_here += containers

    def is_created_here(self, container: Any) -> bool:
        """Return True if the trial of this region made the container."""
        if any(x is container for x in self.created_here):
            return True
        return False

    def claim_created(self) -> Callable[[Any], bool]:
        """Return a predicate like `is_created_here`, for taking results apart.

        It raises RegionRefused for a container found twice, which cannot become two.
        """
        taken: set[int] = set()

        def take(container: Any) -> bool:
            if not self.is_created_here(container):
                return False
            if id(container) in taken:
                raise RegionRefused("it gives one list or dict in two places")
            taken.add(id(container))
            return True

        return take

    def appending(self, container: list) -> Callable[[Any], None]:
        """Refuse an append: whether it happens depends on a value. Loop bodies return their own
        `append`."""
        raise RegionRefused("it appends to an outer list")

    # -- the result --------------------------------------------------------------------------------
    def written_outside(self) -> dict[FunctionalStorage, FunctionalStorage]:
        """Return {the parent's memory: memory here} for memory of the parent that was written
        here."""
        return {outer: m for m, outer in self.copies.items() if m.mutations}

    def may_fail(self) -> bool:
        """Return True if a node may fail for some values."""
        return any(node.may_fail for node in self.graph.nodes)

    def reads(self, outer: FunctionalStorage) -> bool:
        """Return True if a node here reads what memory of the parent held at the start."""
        memory = self.memories.get(outer)
        return memory is not None and any(
            memory.input is x for node in self.graph.nodes for x in node.operand_values())

    def outer_tensors(self) -> list[Tensor]:
        """Return the tensors met here that were made outside and require grad."""
        found = [item.tensor for item in self.lifted.values()]
        return [t for t in found if t._requires_grad]

    def unchanged(self) -> None:
        """Raise RegionRefused if `requires_grad` or the gradient of a tensor made outside changed;
        put it back."""
        for item in self.lifted.values():
            tensor = item.tensor
            grad, (requires, *_) = item.before
            if tensor._grad is not grad or tensor._requires_grad is not requires:
                tensor._grad, tensor._requires_grad = grad, requires
                raise RegionRefused(
                    "it changes requires_grad or the gradient of an outer tensor")

    def release(self) -> None:
        """Forget everything but the names that an error gives: the statement is over.

        The region and its tensors hold each other. Tensors around that were met here would count as
        alive until the garbage collector runs.
        """
        kept = {name: self.__dict__[name] for name in ("parent", "root", "name")}
        self.__dict__.clear()
        self.__dict__.update(kept)

    def region(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """Return the part of the recording that computes `outputs` from `inputs`, as a graph.

        Every output has memory of its own.
        """
        own: list[Value] = []
        for value in outputs:
            shared = value.node is None or any(value is x for x in own)
            own.append(self.graph.append(REGISTRY["clone"], (value,), {}) if shared else value)
        return extract(self.graph, self.name, inputs, own)


class Start(Node):
    """History of a placeholder, which has none within the region."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())

    def apply(self, grads: list) -> Sequence[Any]:
        return ()


@contextmanager
def speculate(region: SubgraphTracer) -> Iterator[None]:
    """Record into `region` meanwhile.

    Raise RegionRefused at the end if something could not be recorded, even if the user's code
    caught the first one.
    """
    root, watch = region.root, SpeculationWatcher()
    root.speculation_depth += 1
    active.tracer = region
    modes = active.grad_enabled, active.inference
    try:
        with watch:
            yield
        if modes != (active.grad_enabled, active.inference):
            raise RegionRefused("it leaves grad mode changed")
        if region.refused is not None:
            raise region.refused
        if root.refusals:
            raise RegionRefused(*root.refusals[0])
    finally:
        watch.end()
        region.refused = None  # its traceback would keep the user's variables alive
        root.speculation_depth -= 1
        active.tracer = region.parent
        active.grad_enabled, active.inference = modes
        if not root.speculation_depth:
            root.lists_read.clear()
            pending, root.refusals = root.refusals, []
            for reason, hint in dict.fromkeys(pending):
                root.add_break(reason, hint)


@contextmanager
def forbid_breaks(root: Tracer) -> Iterator[None]:
    """Raise `RegionRefused` instead of ending the segment, whose values the region's graph uses."""
    root.speculation_depth += 1
    try:
        yield
    finally:
        root.speculation_depth -= 1


@contextmanager
def refuse_on_bug() -> Iterator[None]:
    """Refuse the region if the making of its node fails: such an error is not the user's.

    With `flags.verify_passes`, raise InternalError instead.
    """
    try:
        yield
    except Exception as error:
        if flags.verify_passes:
            raise InternalError(f"{type(error).__name__}: {error}") from error
        raise RegionRefused(f"tracejit could not make it part of the graph ({error})") from error


class RegionGradients(Protocol):
    """Gradients of nodes with regions. `autodiff` computes them; `attach` of a result puts them on
    the tape."""

    def of_cond(self, parent: Any, flag: Tensor, keys: list[Value], sides: list,
                wrt: list[Tensor], tracked: list[int], from_one_side: list[int | None],
                given: list[list[Tensor]]) -> Any: ...

    def of_loop(self, node: Any) -> Any: ...


_gradients: list[RegionGradients] = []


def install_region_gradients(gradients: RegionGradients) -> None:
    """Set the gradients of nodes with regions; `autodiff` provides them."""
    _gradients[:] = [gradients]


def region_gradients() -> RegionGradients:
    return _gradients[0]
