"""Recording: ops on tensors become nodes instead of results.

In: ops, views, writes and reads of tensors while the user's own Python runs. Tensor calls these
methods through `eager.recording.active`. Out: a graph, and the facts that an entry is made of. Made
by `runtime.session` for each recorded call. `lifting.py` makes inputs of tensors, `flush.py` ends a
segment.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

import numpy as np

from tracejit.config import flags
from tracejit.core.eager.meta import is_meta
from tracejit.core.eager.modes import is_grad_enabled
from tracejit.core.eager.nodes import Node
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import make, of_array
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import AliasFamily, canonical, counting_family
from tracejit.core.eager.writing import bump_version, check_writable, write_memory
from tracejit.core.memory import CPU
from tracejit.core.memory.readers import shown_in
from tracejit.core.ops import random
from tracejit.core.ops.record import REGISTRY, Op
from tracejit.core.ops.select_at import select_at
from tracejit.core.ops.types import TensorType
from tracejit.jit.capture import collectives, flush, host_reads, value_checks
from tracejit.jit.capture.breaks import (
    CaptureError,
    GraphBreak,
    RegionRefused,
    add_break_to,
    break_here,
    leaked,
)
from tracejit.jit.capture.escapes import remains
from tracejit.jit.capture.fold import fold_constant, run_on_constants
from tracejit.jit.capture.identities import IdentityReads
from tracejit.jit.capture.inputs import LiftedInput, NumberSource, RngInput
from tracejit.jit.capture.lifting import lift
from tracejit.jit.capture.location import (
    forward_lines,
    in_capture,
    is_asked_by_user,
    user_location,
)
from tracejit.jit.capture.looking import attribute_of, is_a, is_exactly, is_stand_in
from tracejit.jit.capture.random_state import rng_input_of
from tracejit.jit.capture.recursion import Blocks
from tracejit.jit.capture.runtime_numbers import SymEnv
from tracejit.jit.capture.scalars import SymNumber, call_sym, concretize_attributes
from tracejit.jit.capture.settling import ended_to_hints
from tracejit.jit.capture.sharing import Sharing, known_as, matters
from tracejit.jit.capture.storage import (
    UNKNOWN,
    FunctionalStorage,
    FunctionalTensor,
    IntervalMap,
    VersionCounter,
    has_internal_overlap,
)
from tracejit.jit.capture.strides import (
    is_contiguous,
    may_overlap,
    offset,
    reshape_is_view,
    strides,
)
from tracejit.jit.capture.unread_source import with_unread
from tracejit.jit.capture.unrolled import UnrolledLoop
from tracejit.jit.capture.unwatched import unwatched
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.sizes import SymInt

_LONGER = "set TRACEJIT_MAX_SEGMENT_NODES higher, or capture one step of the loop"


class Tracer:
    """Tracer of one recorded call.

    `run_segment(graph, inputs)` compiles a finished graph and returns the function that runs it;
    the session provides it.
    """

    parent: Any = None  # the tracer around, of a region
    write_predicate: Any = True  # do writes happen? True, False, or a flag
    exact = False  # the program must give the same bits as eager mode
    converting = False  # a method runs that must return a plain number
    mapped = False
    knows: Callable[[Tensor], bool] | None = None  # may a program depend on its contents?

    def __init__(
        self,
        name: str,
        run_segment: Callable[[Graph, list[Any]], Callable[[], list[Any]]],
        fullgraph: bool = False,
        static: bool = False,
    ):
        self.name, self.run_segment, self.fullgraph = name, run_segment, fullgraph
        self.root: Tracer = self  # the tracer of the whole call, of a region too
        # (result, the caller's tensor that it proved to be)
        self.identity_results: list[tuple[Tensor, Tensor]] = []
        self.loop_numbers: list[weakref.ref] = []  # numbers that loops computed
        self.lists_read: list[Any] = []  # StackedLists that code read in a trial
        # StackedLists, whose slices may not be taken yet
        self.stacked_lists: list[weakref.ref] = []
        self.reads_source = False  # the call's functions are rewritten
        self.adapt: Callable[[Any], Any] = lambda function: function  # rewrites callees
        self.kept: list[weakref.ref] = []  # tensors that the call's tape saved for a backward
        self.exported_storages: dict[int, Any] = {}  # memory that arrays show, by id
        self.speculation_depth = 0  # regions that are being recorded, one within the other
        self.blocks = Blocks()
        self.refusals: list[tuple[str, str]] = []  # why to refuse the trial at its end, and hints
        self.static = static  # one program per exact shape
        self.cacheable = True  # an entry is made of this call if no break prevents it
        self.breaks: list[GraphBreak] = []
        self.unrolled: dict[Any, UnrolledLoop] = {}  # by their lines
        self.kept_for_call: dict[int, Any] = {}  # what callers keep as long as the recording
        self.owners: list[Any] = []  # objects that the caller must show again in each call
        self.only_once = True  # each break lies in a function whose result a cache keeps
        self.grads_read: list[tuple[Tensor, Any]] = []  # (tensor, the .grad it had)
        self.grads_known: dict[int, Tensor] = {}
        self.grads_set: dict[int, Tensor] = {}  # the caller's tensors, by id
        self.identities = IdentityReads()
        self.cached: Any = None  # `MemoizedCalls`, of functions that keep results
        self.keys = False  # the caches may get numbers as keys, unseen
        self.asked: dict[tuple[Callable, Any], None] = {}  # `ask(what)` must answer the same
        self.constants: dict[int, Tensor] = {}
        self.commit_to_state: Callable[[Any], None] = lambda container: (
            None
        )  # the state walker reads its contents again
        self.restarted = False  # operands may hold sizes of ended segments
        self.first_node = Node(()).sequence  # later nodes of the tape are the call's own
        self.differentiating = (
            False  # nodes of a backward pass over the recording can be differentiated again
        )
        self.tangent_tracker: Any = None  # links gradients to tangents in such a pass
        self.runs_code = False  # the tape calls custom Functions, or hooks in regions
        self.sym_env = SymEnv(self, call_sym)
        self.pending: list[weakref.ref] = []  # host values that are not known yet
        self.stdout = sys.stdout
        self.output: list[Any] = []  # HostEffects that wait for their values
        self.start()

    def start(self) -> None:
        """Begin a new segment: an empty graph, without lifted tensors."""
        self.graph = Graph(self.name)
        self.graph.scope.where = lambda: str(user_location(3) or "")
        self.graph.scope.shown = lambda: active.tracer is not None or is_asked_by_user()
        self.lifted: dict[int, LiftedInput] = {}
        self.offsets_read: set[int] = set()  # ids of the caller's tensors whose offset was read
        self.views_refused: set[int] = set()  # ids of those that must not be views
        self.by_place: dict[tuple, FunctionalTensor] = {}
        self.intervals = IntervalMap()
        self.version_counters: dict[int, VersionCounter] = {}  # by id of the Storage
        self.deferred: list[weakref.ref[Tensor]] = []
        self.generators: dict[int, RngInput] = {}
        self.scalars: list[tuple[SymNumber, Value]] = []
        self.sharing = Sharing(self)
        self.looked: dict[Value, Any] = {}  # contents that were read to see if an op fails
        self.constant_values: dict[Value, Any] = {}  # values that no input of the call decides
        self.contents: set[Value] = set()  # inputs that must hold the same in replays
        self.groups: dict[int, tuple[Tensor, Value]] = {}  # words of process groups, by id
        self.token: Value | None = None  # of the last collective

    # -- what Tensor asks (the Tracer protocol) ---------------------------------------------
    def run(self, op: Op, operands: tuple, attributes: dict) -> Any:
        """Record one op and return deferred tensors. Some ops run now, and give concrete ones."""
        return unwatched(self._record, op, operands, attributes)

    def _record(self, op: Op, operands: tuple, attributes: dict) -> Any:
        if self.root.exported_storages and any(map(self._is_exposed, operands)):
            return value_checks.run_now(self, op, operands, attributes)
        if any(map(is_meta, (*operands, attributes.get("device")))):
            self.break_graph(None, "the function computes with tensors of the meta device")
            return value_checks.run_now(self, op, operands, attributes)
        if op.dynamic:
            return self._run_now(op, operands, attributes)
        full = len(self.graph.nodes) >= flags.max_segment_nodes
        if full and not self.differentiating and not in_capture(4):
            draws = [d.tensor for d in self.generators.values()]  # of this segment only
            if not any(x is state for x in operands for state in draws):
                reason = f"the graph has {flags.max_segment_nodes} nodes already"
                self.break_graph(None, reason, _LONGER)
        # first, since it may end the segment and change the operands
        attributes = concretize_attributes(op, attributes)
        if op.name == "reshape":
            self.laid_out(operands[0])
        values = self.operands(operands)
        if op.may_fail and self.root is self and not self.differentiating:
            if self.restarted:
                attributes, values = ended_to_hints(attributes), ended_to_hints(values)
            values = value_checks.checked(self, op, operands, values, attributes)
        graph = self.graph
        if self.restarted:
            attributes, values = ended_to_hints(attributes), ended_to_hints(values)
        graph.location = user_location()
        graph.detached = not is_grad_enabled() and not self.differentiating
        made = graph.append(op, values, attributes)
        if not op.views and self.root is self and value_checks.too_large(made):
            return value_checks.run_eagerly(self, op, operands, attributes)
        if not is_a(made, tuple):
            return self._result(op, operands, values, attributes, made)
        return tuple(self._wrap(FunctionalTensor(self, FunctionalStorage(v))) for v in made)

    def control(
        self, op: Op, values: Sequence[Value], attributes: dict, regions: Sequence[Graph]
    ) -> tuple[Tensor, ...]:
        """Record an op with regions over values of this graph; return its outputs, in fresh
        memory."""
        self.graph.location, self.graph.detached = user_location(), False
        made = self.graph.append(op, values, attributes, regions=tuple(regions))
        made = made if is_a(made, tuple) else (made,)
        node = self.graph.nodes[-1]
        if self.root is self and node.may_fail and not self.differentiating:
            if not value_checks.node_succeeds(self, node.outputs):
                self.graph.nodes.pop()
                raise RegionRefused("it fails for the values of this call")
        return tuple([self._wrap(FunctionalTensor(self, FunctionalStorage(v))) for v in made])

    def collective(self, op: Op, operands: tuple, words: Tensor, attributes: dict) -> Any:
        """Record a collective behind all earlier ones; return its result, or None.

        words  of the process group; the entry keeps them
        """
        return collectives.record(self, op, operands, words, attributes)

    def tensor_of(self, value: Value) -> Tensor:
        """Make a tensor that holds a value of this graph, in memory of its own."""
        return self._wrap(FunctionalTensor(self, FunctionalStorage(value)))

    def shape(self, tensor: Tensor) -> tuple:
        return self.traced(tensor).shape

    def strides(self, tensor: Tensor) -> tuple:
        """Return strides in elements; break the graph if a value decides them."""
        return tuple(strides(self.laid_out(tensor)))

    def laid_out(self, tensor: Tensor) -> FunctionalTensor:
        """Return the tensor's state; break the graph first if a value decides its strides."""
        if self.traced(tensor).memory.strides is UNKNOWN:
            self.break_graph(tensor, "the function needs strides that a tensor's value decides")
        return self.traced(tensor)

    def shared(self, tensor: Tensor) -> list[int]:
        """Return the dimensions along which the example's elements share memory."""
        traced = self.laid_out(tensor)
        if traced.dense:
            return []
        return [d for d, s in enumerate(traced.layout().strides) if s == 0]

    def identify(self, tensor: Tensor, outputs: Sequence[Any] | None) -> None:
        """Find out which tensor a variable is, and break the graph if a value decides.

        `outputs`: do so only if it matters to gradients of these.
        """
        if outputs is None or matters(self, tensor, outputs):
            known_as(self, tensor)

    def is_contiguous(self, tensor: Tensor) -> bool:
        return is_contiguous(self.laid_out(tensor))

    def offset(self, tensor: Tensor) -> Any:
        traced = self.laid_out(tensor)
        input_tensor, base = traced.memory.input_tensor, 0
        if input_tensor is not None:
            base = input_tensor._offset
            self.root.offsets_read.add(id(input_tensor))
        found = offset(traced, base)
        if found is None:
            self.break_graph(tensor, "the function calls storage_offset() on a view")
            return tensor._offset
        return found

    def version(self, tensor: Tensor) -> int:
        return self.traced(tensor).memory.version

    def keeps(self, saved: Any) -> None:
        """Note that the tape needs the tensor of `saved` as it is now, as long as `saved` lives."""
        self.root.kept.append(weakref.ref(saved))
        forward_lines[saved] = self.graph.location

    def check_kept(self, memory: FunctionalStorage, family: AliasFamily | None) -> None:
        """Raise RegionRefused if a backward would depend on whether memory of this graph is
        written.

        `family`: the alias family that counts these writes; None if the Storage counts them.
        """
        if self.is_kept(memory, family):
            raise RegionRefused("it writes a tensor whose old value an outer gradient needs")

    def is_kept(self, memory: FunctionalStorage, family: AliasFamily | None) -> bool:
        """Return True if a backward needs memory of this graph as it is, and notices writes to it.

        It notices those that `family` counts, or the Storage if `family` is None.
        """
        storage = None if memory.input_tensor is None else memory.input_tensor._storage
        for saved in (found() for found in self.root.kept):
            if saved is None:
                continue
            tensor = saved.tensor
            if tensor._traced is not None:
                is_it = tensor._traced.memory is memory
            else:
                is_it = tensor._storage is storage
            if is_it and counting_family(tensor) is family:
                return True
        return False

    def write(self, tensor: Tensor, value: Any) -> None:
        """Let the tensor's memory hold `value` where the tensor looks at it."""
        self.operands((tensor, value))
        content, traced = self._operand(value), self.traced(tensor)
        input_tensor = traced.memory.input_tensor
        if input_tensor is not None and input_tensor._storage.readonly:
            self.flush()
            with self.paused():
                write_memory(tensor, value)  # raises
        exposed = bool(self.root.exported_storages) and self._is_exposed(tensor) or is_meta(tensor)
        if exposed or self.overlaps(traced):
            if exposed:
                self.flush()
            else:
                self.break_graph(
                    tensor, "the function writes a tensor that overlaps itself or another tensor")
            tensor = canonical(tensor)
            self._write_now(tensor, value)
            # the write has counted in the Storage alone
            counter = self.version_counters.get(id(tensor._storage))
            if counter is not None:
                counter.count = tensor._storage.version
            return
        tracked = is_grad_enabled() and (tensor._requires_grad or value._requires_grad)
        family = counting_family(tensor)
        if self.remains(lambda: self._must_know(traced.memory, tracked, family)):
            self.break_graph(
                tensor, "a tensor's value decides which tensor the function writes")
            self._write_now(canonical(tensor), value)
            return
        self.graph.location, self.graph.detached = user_location(), True
        happens = self.write_predicate is not False
        counted = happens and counting_family(tensor) is None
        if happens and not counted:
            bump_version(tensor)
            traced.memory.data_writes += self.counts_outside(tensor)
        traced.write(content, counted, self.if_asked(traced.memory, self.write_predicate))
        self.sharing.written(traced.memory, counted)

    def remains(self, holds: Callable[[], bool]) -> bool:
        """Return True if `holds()`, without what only garbage keeps alive.

        Garbage is collected only while the call may become an entry.
        """
        return remains(holds) if self.root.cacheable else holds()

    def _must_know(
        self, memory: FunctionalStorage, tracked: bool, family: AliasFamily | None
    ) -> bool:
        """Return True if a write must know now which other memory this memory is.

        History (`tracked`) must know, and a backward that needs the other. The program itself
        counts writes to the caller's.
        """
        return any(tracked or other.input_tensor is None and self.is_kept(other, family)
                   for other, _ in self.sharing.partners(memory))

    def _write_now(self, tensor: Tensor, value: Any) -> None:
        """Write to a concrete tensor now. A write that did not happen is not counted."""
        with self.paused():
            check_writable(tensor, overlap=True)
            write_memory(tensor, value)
            if not bool(self.write_predicate):
                bump_version(tensor, -1)

    @contextmanager
    def writing_under(self, happened: Any) -> Iterator[None]:
        """Count writes meanwhile only if `happened` (True, False, or a flag) holds.

        The written values are chosen already: where it does not hold, they are what memory held
        before.
        """
        self.write_predicate = happened
        try:
            yield
        finally:
            self.write_predicate = True

    def counts_outside(self, tensor: Tensor) -> bool:
        """Return True if the alias family of a tensor of the caller's counts writes to this one."""
        input_tensor, family = self.traced(tensor).memory.input_tensor, counting_family(tensor)
        return (family is not None and input_tensor is not None
                and counting_family(input_tensor) is family)

    def exposes(self, tensor: Tensor) -> None:
        """Note that an array over a concrete tensor's memory is given away.

        Ops on that memory run at once from now on, between the array's reads and writes.
        """
        self.root.exported_storages[id(tensor._storage)] = tensor._storage

    def exposes_what(self, buffer: Any) -> None:
        """Note that code may write tensors' memory from now on, through an array of the caller's.

        Flush, since what was recorded reads the memory as it is.
        """
        found = {id(storage): storage for storage in shown_in(buffer)}
        if found.keys() - self.exported_storages.keys():
            self.exported_storages.update(found)
            if not self.speculation_depth:  # a trial is refused anyway
                self.flush()

    def _is_exposed(self, x: Any) -> bool:
        if type(x) is tuple:
            return any(map(self._is_exposed, x))
        if not is_a(x, Tensor):
            return False
        input_tensor = x if x._traced is None else x._traced.memory.input_tensor
        return input_tensor is not None and id(input_tensor._storage) in self.root.exported_storages

    def if_asked(self, memory: FunctionalStorage, happened: Any) -> Any:
        """Return `happened` if a version depends on it: of the caller's memory, or in a region.
        Else return True, since memory that the call made counts the write anyway."""
        return happened if memory.input_tensor is not None or self.root is not self else True

    def outer_memory(self, memory: FunctionalStorage) -> FunctionalStorage | None:
        """Return the memory of the recording around that this stands for; None if it was made in
        this one."""
        return None

    def same_leaves(self, one: set[Node], other: set[Node]) -> None:
        """Require that sides of a branch lead to the same leaves."""
        if one != other:
            raise RegionRefused("a tensor gets a gradient in one branch only")

    def carries(self, tensor: Tensor) -> bool:
        """Return True if a tensor stands for a loop variable at the start of an iteration."""
        return False

    def before(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors that such a placeholder is in the first iteration."""
        return []

    def may_be(self, result: Tensor, other: Tensor, flag: Tensor) -> None:
        """Note that `result` is the very tensor `other` if `flag` holds when the program runs."""
        self.sharing.identify(result, other, flag)

    def may_share(
        self, memory: FunctionalStorage, other: FunctionalStorage, flag: Tensor, whole: bool = True
    ) -> None:
        """Note that `memory` is `other` if `flag` holds when the program runs; `whole`: the tensors
        are one then."""
        self.sharing.add(memory, other, flag, whole)

    def overlaps(self, traced: FunctionalTensor) -> bool:
        """Return True if a write may reach other elements of this memory, or of what may be the
        same."""
        memories = [traced.memory, *(other for other, _ in self.sharing.partners(traced.memory))]
        return any(may_overlap(op.name, attributes) for op, _, attributes in traced.views) or any(
            m.overlaps_other or self.repeats(m)
            or m.input_tensor is not None and has_internal_overlap(m.input_tensor)
            for m in memories
        )

    def repeats(self, memory: FunctionalStorage) -> bool:
        """Return True if elements of this memory share an address. The answer is guarded."""
        return memory.strides is not UNKNOWN and any(s == 0 for s in memory.strides or ())

    def item(self, tensor: Tensor) -> Any:
        """Return the only element as a number, whose value may be pending."""
        return host_reads.read(self, tensor)

    def defers(self) -> bool:
        """Return True if the call may still become a program, so that values may stay pending."""
        over = self.breaks or self.speculation_depth or self.converting or self.keys
        return self.cacheable and not over and self.root is self

    def fold_constant(self, tensor: Tensor, of_sizes: bool = True) -> Tensor | None:
        """Return the tensor as a concrete one if no input of the call decides what it holds; else
        None."""
        return fold_constant(self, tensor, of_sizes)

    def break_graph(self, tensor: Tensor | None, reason: str, hint: str = "",
                    cause: RegionRefused | None = None) -> None:
        """Add a break and run what was recorded: a value is needed now."""
        if cause is None and self.root.reads_source:
            reason, hint = with_unread(reason, hint)
        self.add_break(reason, hint, cause)
        self.flush()
        if self.lifted:  # flush ran nothing, but what is known of lifted tensors is over
            self.start()
            self.restarted = True

    def add_break_later(self, reason: str, hint: str = "") -> None:
        """Do as `add_break` from code that may not raise: a trial is refused when it ends."""
        if self.speculation_depth:
            self.refusals.append((reason, hint))
        else:
            self.add_break(reason, hint)

    def asks(self, ask: Callable[[Any], Any], what: Any) -> None:
        self.root.asked[ask, what] = None

    def belongs_to(self, owner: Any) -> None:
        """Let an entry serve only calls in which this very object is where it was found."""
        self.root.owners.append(owner)
        self.root.identities.asked.add(id(owner))

    def add_break(self, reason: str, hint: str = "", cause: RegionRefused | None = None) -> None:
        """Record why this call cannot be replayed. Raise if the user asked for one graph, or in a
        trial."""
        if self.speculation_depth:
            raise RegionRefused(reason, hint)
        found = break_here(reason, hint, cause)
        kept = self.root.cached
        self.only_once = self.only_once and kept is not None and kept.runs()
        add_break_to(self.breaks, found)
        if self.fullgraph:
            raise CaptureError(str(found))

    def random_state(self, generator: random.Generator) -> tuple[Any, int]:
        """Return the generator's state as a tensor of this graph, and the number of draws recorded
        before."""
        draws = self.rng_input_of(generator)
        draws.count, draws.offset = draws.count + 1, draws.offset + 1
        return draws.tensor, draws.offset - 1

    def rng_input_of(self, generator: random.Generator) -> RngInput:
        """Return the input from which this graph draws for a generator."""
        return rng_input_of(self, generator)

    def alias(self, tensor: Tensor) -> Tensor:
        """Return a tensor over the same memory through the same views, without history
        (`detach()`)."""
        traced = self.traced(tensor)
        return self._wrap(FunctionalTensor(self, traced.memory, traced.views, traced.read()))

    def severed(self, tensor: Tensor) -> Tensor:
        """Return the tensor itself: no other tape has history of it."""
        return tensor

    def refuses_views(self, tensor: Tensor) -> None:
        """Guard that the tensor is no view: the plain function raises for one."""
        if tensor._traced is None:
            self.root.views_refused.add(id(tensor))

    def forgets(self, tensor: Tensor) -> None:
        """Let gradients stop at the tensor's present value."""
        traced = tensor._traced
        self.graph.location = user_location()
        traced._value = self.graph.append(REGISTRY["stop_gradient"], (traced.read(),), {})

    def hides(self, tensors: Sequence[Any]) -> None:
        """Note that the user's own code made a node of the tape."""
        self.runs_code = True

    def ran(self, op: Op, operands: tuple, attributes: dict, result: Any) -> None:
        """Do nothing: no tape besides records the op."""

    def pushes(self, tensors: Sequence[Any]) -> None:
        """Return None: no tensor has a tangent."""

    # -- lifting -------------------------------------------------------------------------------
    def traced(self, tensor: Tensor) -> FunctionalTensor:
        """Return the tensor's state here; lift a concrete tensor at its first use."""
        state = tensor._traced
        if state is not None:
            if state.tracer is self:
                return state
            raise CaptureError(leaked(state))
        lifted = self.lifted.get(id(tensor))
        return lifted.traced if lifted is not None else lift(self, tensor)  # type: ignore[return-value]

    def has_met(self, tensor: Tensor) -> bool:
        """Return True if the tensor's state is known, here or around."""
        return tensor._traced is not None or id(tensor) in self.lifted

    def operands(self, operands: tuple) -> tuple:
        """Return graph values for tensors and runtime numbers; other operands as they are."""
        while True:
            graph = self.graph
            values = tuple([self._operand(x) for x in operands])
            if graph is self.graph:  # lifting one may have ended the segment
                return values

    def _operand(self, x: Any) -> Any:
        if is_a(x, Tensor):
            return self.traced(x).read()
        # a number of the running program
        graph_value = getattr(x, "graph_value", None) if is_stand_in(x) else None
        if graph_value is not None:
            return graph_value(self)
        if is_a(x, np.ndarray):
            return self.traced(self.constant(of_array(x.copy()))).read()
        return float(x) if issubclass(type(x), float) else x  # a float of the user's class too

    # -- results -------------------------------------------------------------------------------
    def _result(
        self, op: Op, operands: tuple, values: tuple, attributes: dict, made: Value
    ) -> Tensor:
        if op.views and is_a(operands[0], Tensor):
            parent = self.traced(operands[0])
            if self._result_is_view(op, parent, attributes):
                return self._wrap(parent.viewed(op, values[1:], attributes, made))
        return self._wrap(FunctionalTensor(self, FunctionalStorage(made)))

    def selected(self, tensor: Tensor, dim: int, index: Tensor) -> Tensor:
        """Return `tensor.select(dim, index)`, a view, where only the program knows the index."""
        return select_at(tensor, dim, index)

    def can_view_as(self, tensor: Tensor, shape: tuple) -> bool:
        """Return True if `view` may show the tensor in another shape."""
        return self._result_is_view(REGISTRY["reshape"], self.laid_out(tensor), {"shape": shape})

    def may_turn(self, tensor: Tensor) -> bool:
        """Return True if the tensor may become a view of its own memory in place.

        It may in memory that the call made, unless it stands for a variable of a loop.
        """
        traced = tensor._traced
        made = traced is not None and traced.tracer is self and traced.memory.input_tensor is None
        return made and not self.carries(tensor)

    def _result_is_view(self, op: Op, parent: FunctionalTensor, attributes: dict) -> bool:
        """Return True if eager mode would share memory here; a reshape of a permuted tensor
        copies."""
        memory = parent.memory
        ordered = not parent.views and memory.input_tensor is None and memory.strides is None
        if op.name != "reshape" or ordered:
            return True
        return reshape_is_view(parent, attributes["shape"])

    def _wrap(self, traced: FunctionalTensor, track: bool = True) -> Tensor:
        value = traced._value
        tensor = make(None, 0, traced.shape, None, value.type.dtype, value.type.device or CPU)
        tensor._traced = traced
        if track:
            self.deferred.append(weakref.ref(tensor))
        return tensor

    def _run_now(self, op: Op, operands: tuple, attributes: dict) -> Any:
        """Run an op eagerly whose result's shape depends on values.

        If no input of the call decides the values, the segment goes on; else it ends first.
        """
        made = run_on_constants(self, op, operands, attributes)
        if made is not None:
            return tuple(map(self.constant, made)) if type(made) is tuple else self.constant(made)
        reason = f"the shape of {op.name}'s result depends on a tensor's values"
        self.break_graph(None, reason, op.dynamic)
        with self.paused():
            return Tensor.dispatch(op, operands, attributes)

    def paused(self) -> Paused:
        """Return a context in which ops run eagerly, on concrete tensors."""
        return Paused(self)

    # -- numbers and gradients that are read ---------------------------------------------------
    def convert_call(self, function: Any) -> Any:
        """Return the form of a user's function or method that is recorded."""
        target = attribute_of(function, "__func__")
        if target is None:
            return self.root.adapt(function)
        found = self.root.adapt(target)
        return function if found is target else MethodType(found, function.__self__)

    def number(self, container: Any, key: Any, value: int | float) -> Any:
        """Return `container[key]` as a runtime number."""
        return self.sym_env.item(container, key, value, NumberSource(container, key))

    def grad_read(self, tensor: Tensor) -> None:
        """Note that the program depends on whether the caller's tensor has a gradient."""
        if tensor._traced is None and id(tensor) not in self.grads_known:
            self.grads_known[id(tensor)] = tensor
            self.grads_read.append((tensor, tensor._grad))

    def applies(self, node: Any) -> None:
        """Break if a backward pass runs a node made before the call: the next call may have another
        one."""
        if node.sequence < self.first_node:
            self.add_break(
                "backward() runs through history from before the call",
                "detach the input, or compute it inside the captured function",
            )

    def gave(self, given: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients that a node of a backward pass made, linked to those it was
        given."""
        tracker = self.tangent_tracker
        return results if tracker is None else tracker.linked(given, results)

    def tracks(self) -> bool:
        """Return True if each gradient of a backward pass is linked to what it was made of."""
        return self.tangent_tracker is not None

    def undecided(self) -> None:
        """Break the graph or refuse the region: a value decides if a gradient arrives, and that
        matters."""
        reason = "runs a hook or overwritten history only if a tensor's value says so"
        if self.differentiating:
            raise RegionRefused(reason)
        self.break_graph(None, f"a backward {reason}")

    def grad_written(self, tensor: Tensor) -> None:
        """Note that the program sets the gradient: its value before the call no longer matters."""
        self.grads_known.setdefault(id(tensor), tensor)
        if tensor._traced is None:
            self.grads_set[id(tensor)] = tensor

    def history_written(self, tensor: Tensor) -> None:
        """Do nothing; a region refuses to change requires_grad, history or hooks of tensors made
        outside."""

    def same_place(self, one: Tensor, other: Tensor) -> bool:
        """Return True if two tensors look at one memory in the same way."""
        a, b = self.traced(one), self.traced(other)
        return a.memory is b.memory and (a.views is b.views or not a.views and not b.views)

    def constant(self, tensor: Tensor) -> Tensor:
        """Record a tensor just made from Python data: each run of the program works on a fresh
        copy."""
        if tensor._traced is not None:
            return tensor
        self.constants[id(tensor)] = tensor
        made = self.run(REGISTRY["clone"], (tensor,), {})
        if made._traced is not None:
            self.constant_values[made._traced.read().node.inputs[0]] = tensor
        return made

    def concretize_tree(self, data: Any) -> Any:
        """Return Python data with runtime numbers and sizes made plain, and guarded."""
        if is_exactly(data, (list, tuple)):
            return type(data)(self.concretize_tree(x) for x in data)
        if is_a(data, SymNumber) or type(data) is SymInt:
            return data.concretize()
        return data

    def owned(self, containers: Sequence[Any]) -> None:
        """Do nothing; a region remembers the containers that it made."""

    def commit_container(self, container: Any) -> None:
        """Take what the container holds now as the state from which replays start."""
        self.commit_to_state(container)

    def tangent(self, like: Tensor) -> Tensor:
        """Make a deferred tensor standing for the gradient of `like`: a new input of the graph."""
        value = self.graph.input(like_type(self.traced(like)), source="tangent")
        return self.untracked(value)

    def untracked(self, value: Value) -> Tensor:
        """Make a tensor that holds a value, and does not become concrete when the segment ends."""
        return self._wrap(FunctionalTensor(self, FunctionalStorage(value)), track=False)

    # -- ending a segment ----------------------------------------------------------------------
    def alive(self) -> list[Tensor]:
        """Return the deferred tensors that are still referenced, oldest first."""
        return [t for t in (r() for r in self.deferred) if t is not None and t._traced is not None]

    def lifted_tensors(self) -> list[LiftedInput]:
        return [item for item in self.lifted.values() if item.traced is not None]

    def written(self) -> list[FunctionalStorage]:
        """Return the caller's memory that the recording writes."""
        memories = [i.traced.memory for i in self.lifted.values() if i.traced is not None]
        return [m for m in dict.fromkeys(memories) if m.mutations]

    def input_sources(self) -> dict[Value, Any]:
        """Return what each graph input stands for: a tensor, a Generator, a SymNumber."""
        found: dict[Value, Any] = {}
        for item in self.lifted.values():
            found.setdefault(item.value, item.tensor)
        for number, value in self.scalars:
            found[value] = number
        for draws in self.generators.values():
            found[draws.value] = draws
        for words, value in self.groups.values():
            found[value] = words
        return found

    def flush(self) -> None:
        """Compile and run what was recorded; deferred tensors that are alive become concrete."""
        unwatched(flush.flush, self)

    def abandon(self) -> None:
        """Run what was recorded before an exception in the user's code: for the user it has
        happened."""
        active.tracer = self
        try:
            self.flush()
        finally:
            active.tracer = None


def like_type(traced: FunctionalTensor) -> TensorType:
    return traced.read().type


class Paused:
    """Context manager inside which nothing is recorded."""

    def __init__(self, tracer: Tracer):
        self.tracer = tracer

    def __enter__(self) -> None:
        active.tracer = None

    def __exit__(self, *exc: object) -> None:
        active.tracer = self.tracer
