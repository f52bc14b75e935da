"""Samples: tensors that stand for all slices of another one while a function is mapped over them.

In: tensors and the dimension to map over, from `vmap`. Out: samples, whose ops run once, on the
whole tensors. A `Mapping` takes the place of the tracer, and answers for samples what tensors ask:
shapes, writes, values. Other questions go to the tracer before it: that of a captured call, another
mapping, or none. So there are two tapes. Derivatives within the function use the tape of samples;
those around it use the tape of whole tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType, SimpleNamespace
from typing import Any

from tracejit.core.eager import dispatch as eager
from tracejit.core.eager.nodes import Node, edge_of, leads_elsewhere
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import over_same_memory, version_of
from tracejit.core.eager.state import TensorState, make, shape_of, strides_of
from tracejit.core.eager.writing import assign, write_memory
from tracejit.core.ops.gather_scatter import read_at
from tracejit.core.ops.movement import expand, unsqueeze
from tracejit.core.ops.record import Op
from tracejit.func.mapping_rules import CLONE, Application, result_of

RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
NOT_MAPPED = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
    "`other` in extra_args that has more elements than `self`: what is written differs between "
    "samples, and the tensor written to is not mapped over. Please use an operator that makes a "
    "new tensor."
)
PART = (
    "vmap: inplace arithmetic on x[i], where i is a tensor without dimensions, is not possible: it "
    "is a copy here. Please write x[i] = value."
)
_NOBODY = SimpleNamespace(
    graph=SimpleNamespace(scope=None), root=SimpleNamespace(speculation_depth=0, exact=False),
    created_here=[])


class Sample:
    """State of a tensor that stands for all slices of `whole` along its first dimension.

    views  True if it is a view of another sample
    part   True if it is a copy that stands for a part of another tensor, or a view of such a copy
    """

    __slots__ = ("tracer", "whole", "views", "part", "__weakref__")
    origin = None

    def __init__(self, tracer: Mapping, whole: Any, views: bool):
        self.tracer, self.whole, self.views = tracer, whole, views
        self.part = False

    def alike(self, made: Any) -> Any:
        """Return a copy as a sample of its own: unlike `made` it may be written."""
        mapping = self.tracer
        return mapping.outside(lambda: mapping.sample(CLONE(mapping.whole(made))))

    def escaped(self) -> str:
        """Return the error text for a use of the tensor after the map is over."""
        return f"a tensor made inside {self.tracer.name} is used outside of it; return it"


class Mapping:
    """Call of a mapped function over `count` samples.

    below    the tracer for tensors that are no samples of this mapping, or None
    tracked  True if the tape around the function has seen a whole tensor
    """

    mapped = True
    differentiating = False

    def __init__(self, name: str, below: Any, count: Any, randomness: str):
        self.name, self.below, self.count, self.randomness = name, below, count, randomness
        self.tracked = bool(getattr(below, "mapped", False) and below.tracked)
        self.leaves: set[Node] = set()  # made by derivatives within the function
        self._outer: dict[Node, bool] = {}  # whether nodes lead to other leaves
        self._grads: list[Any] = []  # tensors that are no samples, whose gradients were touched

    def __getattr__(self, name: str) -> Any:
        found = getattr(_NOBODY if self.below is None else self.below, name)
        if type(found) is MethodType:
            return lambda *args, **kwargs: self.outside(found, *args, **kwargs)
        return found

    def outside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function` as the surroundings of the mapped function would."""
        before, active.tracer = active.tracer, self.below
        try:
            return function(*args, **kwargs)
        finally:
            active.tracer = before

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be the tracer while the mapped function runs."""
        active.tracer = self
        try:
            yield
            self._check_grads()
        finally:
            active.tracer = self.below

    def _check_grads(self) -> None:
        """Raise RuntimeError if a tensor from outside was given the gradients of all samples."""
        held = [x for x in self._grads if self.has(x._grad)]
        for x in held:
            x._grad = None
        if held:
            raise RuntimeError(f"{self.name}: a gradient that differs between samples was to be "
                               "added to .grad of a tensor that is not mapped over; use func.grad")

    # -- samples -----------------------------------------------------------------------------------
    def has(self, x: Any) -> bool:
        """Return True for a sample of this mapping."""
        return (isinstance(x, TensorState) and type(x._traced) is Sample
                and x._traced.tracer is self)

    def sample(self, whole: Any, views: bool = False) -> Any:
        """Return the tensor that stands for the slices of `whole`. Call it from outside."""
        self.tracked |= whole.requires_grad
        made = make(None, 0, tuple(shape_of(whole))[1:], None, whole._dtype, whole._device)
        made._traced = Sample(self, whole, views)
        return made

    def whole(self, x: Any) -> Any:
        """Return all samples of a tensor in one; of what is no sample, a copy for each. Call it
        from outside."""
        if self.has(x):
            return x._traced.whole
        return expand(unsqueeze(x, 0), self.count, *shape_of(x))

    # -- ops ---------------------------------------------------------------------------------------
    def run(self, op: Op, operands: tuple, attributes: dict) -> Any:
        """Run an op on all samples at once; the tape of samples is the caller's business."""
        if op.operands[:1] == ("state",):
            return self._draw(op, operands, attributes)
        if not any(map(self.has, operands)):
            return self.outside(self._below_run(), op, operands, attributes)
        if op.dynamic:
            raise RuntimeError("vmap: We do not support batching operators that can output "
                               f"dynamic shape: the size of {op.name}'s result depends on values")
        application = self._application(op, operands, attributes)
        if application.has_rule():
            return self.outside(self._mapped, application, operands)
        return self._opened(op, operands, attributes)

    def _below_run(self) -> Callable[..., Any]:
        return eager._run if self.below is None else self.below.run

    def ran(self, op: Op, operands: tuple, attributes: dict, result: Any) -> None:
        """Tell the tracer below of an op on its own tensors; ops on samples it saw when they
        ran."""
        if self.below is not None and not any(map(self.has, operands)):
            self.outside(self.below.ran, op, operands, attributes, result)

    def pushes(self, tensors: Any) -> Any:
        return None if self.below is None else self.outside(self.below.pushes, tensors)

    def same_place(self, one: Any, other: Any) -> bool:
        return self.below is not None and self.outside(self.below.same_place, one, other)

    def _application(self, op: Op, operands: tuple, attributes: dict) -> Application:
        known = [self._for_all(x) for x in operands]
        return Application(op, known, [self.has(x) for x in operands], attributes, self.count)

    def _for_all(self, x: Any) -> Any:
        """Return an operand for the tape around the function: without history from within the
        function."""
        if self.has(x):
            return x._traced.whole
        if isinstance(x, TensorState) and x._requires_grad and not self._leads_outside(x):
            return self.outside(over_same_memory, x)
        return x

    def _leads_outside(self, x: Any) -> bool:
        """Return True if the history of what is no sample ends at a leaf from outside the
        function."""
        node = edge_of(x)[0]
        if node not in self._outer:
            self._outer[node] = leads_elsewhere([x], self.leaves)
        return self._outer[node]

    def _mapped(self, application: Application, operands: tuple) -> Any:
        found = result_of(application)
        if type(found) is tuple:
            return tuple([self.sample(x) for x in found])
        views = application.op.views and eager.is_view(found, application.operands[0])
        made = self.sample(found, views)
        made._traced.part = views and self.has(operands[0]) and operands[0]._traced.part
        return made

    def _opened(self, op: Op, operands: tuple, attributes: dict) -> Any:
        """Run the body of a composite; its own rules differentiate it for samples."""
        before = active.grad_enabled
        around = self.tracked or any(
            isinstance(x, TensorState) and not self.has(x) and x._requires_grad
            and self._leads_outside(x) for x in operands)
        active.grad_enabled = before and around
        try:
            found = op.body(*operands, **attributes)  # type: ignore[misc]
        finally:
            active.grad_enabled = before
        if type(found) is tuple:
            return tuple([self._own(x, operands) for x in found])
        return self._own(found, operands)

    def _own(self, x: Any, operands: tuple) -> Any:
        """Return a body's result as a sample of its own, without the history of its making."""
        whole = self.outside(self.whole, x)
        if not self.has(x) or x._view is not None or any(x is y for y in operands):
            whole = self.outside(CLONE, whole)
        return self.outside(self.sample, whole)

    def _draw(self, op: Op, operands: tuple, attributes: dict) -> Any:
        """Draw random numbers: the same for all samples, or others for each."""
        application = self._application(op, operands, attributes)
        if self.randomness == "different":
            return self.outside(lambda: self.sample(application.drawn()))
        if any(application.mapped):
            return self.outside(lambda: self.sample(application.one_by_one()))
        return self.outside(self._below_run(), op, operands, attributes)

    # -- what tensors ask --------------------------------------------------------------------------
    def shape(self, tensor: Any) -> tuple:
        if self.has(tensor):
            return tuple(self.outside(shape_of, tensor._traced.whole))[1:]
        return self.outside(shape_of, tensor)

    def strides(self, tensor: Any) -> tuple:
        if self.has(tensor):
            return tuple(self.outside(tensor._traced.whole.stride))[1:]
        return strides_of(tensor) if self.below is None else self.outside(tensor.stride)

    def shared(self, tensor: Any) -> list[int]:
        return [d for d, s in enumerate(self.strides(tensor)) if s == 0]

    def actual(self, tensor: Any) -> Any:
        return tensor if self.below is None else self.outside(self.below.actual, tensor)

    def is_contiguous(self, tensor: Any) -> bool:
        if not self.has(tensor):
            return self.outside(tensor.is_contiguous)
        whole = tensor._traced.whole
        return self.outside(lambda: whole.select(0, 0).is_contiguous()
                            if self.count != 0 else whole.is_contiguous())

    def offset(self, tensor: Any) -> Any:
        found = tensor._traced.whole if self.has(tensor) else tensor
        return self.outside(found.storage_offset)

    def version(self, tensor: Any) -> int:
        return self.outside(version_of, tensor._traced.whole if self.has(tensor) else tensor)

    def selected(self, tensor: Any, dim: int, index: Any) -> Any:
        """Select a slice. Where the index differs between samples, it is a copy and no view of the
        whole."""
        if not self.has(index) and not self.has(tensor):
            return self.outside(tensor._selected, dim, index)
        if not self.has(index) and self.below is None:
            return None
        found = read_at(tensor, dim, index)
        found._traced.part = True
        return found

    def can_view_as(self, tensor: Any, shape: tuple) -> bool:
        if self.has(tensor):
            return self.outside(tensor._traced.whole._can_view, (self.count, *shape))
        return self.outside(tensor._can_view, shape)

    def may_turn(self, tensor: Any) -> bool:
        return False

    def keeps(self, saved: Any) -> None:
        if self.below is not None and not self.has(saved.tensor):
            self.outside(self.below.keeps, saved)

    def write(self, tensor: Any, value: Any) -> None:
        """Write all samples at once: the memory of a sample is that of its whole."""
        if self.has(tensor):
            if tensor._traced.part:
                raise RuntimeError(PART)
            self.outside(lambda: assign(tensor._traced.whole, self.whole(value)))
        elif self.has(value):
            raise RuntimeError(NOT_MAPPED)
        else:
            self.outside(write_memory, tensor, value)

    def fold_constant(self, tensor: Any, of_sizes: bool = True) -> None:
        """Do nothing: no code reads the values of samples."""

    def break_graph(self, tensor: Any, reason: str, hint: str = "", cause: Any = None) -> None:
        if self.has(tensor):
            raise RuntimeError(f"vmap: {reason}, but it has a value for each sample. A mapped "
                               "function must not need these values.")
        if self.below is not None:
            self.outside(self.below.break_graph, tensor, reason, hint)

    def asks(self, ask: Callable[[Any], Any], what: Any) -> None:
        if self.below is not None:
            self.below.asks(ask, what)

    def exposes(self, tensor: Any) -> None:
        if self.below is not None:
            self.outside(self.below.exposes, tensor)

    def item(self, tensor: Any) -> Any:
        if self.has(tensor):
            raise RuntimeError(
                "vmap: It looks like you're calling .item() on a Tensor, or using it in data-"
                "dependent control flow. It has a value for each sample: use tracejit.where")
        return self.outside(tensor.item)

    def random_state(self, generator: Any) -> tuple[Any, int]:
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        if self.below is None:
            return generator.take(), 0
        return self.outside(self.below.random_state, generator)

    def grad_read(self, tensor: Any) -> None:
        if not self.has(tensor):
            self._grads.append(tensor)
            if self.below is not None:
                self.outside(self.below.grad_read, tensor)

    def grad_written(self, tensor: Any) -> None:
        if not self.has(tensor):
            self._grads.append(tensor)
            if self.below is not None:
                self.outside(self.below.grad_written, tensor)

    def identify(self, tensor: Any, outputs: Any) -> None:
        if self.below is not None:
            self.outside(self.below.identify, tensor, outputs)

    def history_written(self, tensor: Any) -> None:
        if not self.has(tensor) and self.below is not None:
            self.outside(self.below.history_written, tensor)

    def applies(self, node: Any) -> None:
        if self.below is not None:
            self.outside(self.below.applies, node)

    def gave(self, given: Any, results: Any) -> Any:
        return results

    def tracks(self) -> bool:
        return False

    def constant(self, tensor: Any) -> Any:
        return tensor if self.below is None else self.outside(self.below.constant, tensor)

    def concretize_tree(self, data: Any) -> Any:
        return data if self.below is None else self.outside(self.below.concretize_tree, data)

    def commit_container(self, container: Any) -> None:
        if self.below is not None:
            self.outside(self.below.commit_container, container)

    def convert_call(self, function: Any) -> Any:
        return function if self.below is None else self.outside(self.below.convert_call, function)

    def alias(self, tensor: Any) -> Any:
        if not self.has(tensor):
            return self.outside(over_same_memory, tensor)
        state = tensor._traced
        return self.outside(self.sample, state.whole, state.views)

    def severed(self, tensor: Any) -> Any:
        """Return the tensor without its history on the tape around the function."""
        if not self.has(tensor):
            return tensor if self.below is None else self.outside(self.below.severed, tensor)
        state = tensor._traced
        return self.outside(lambda: self.sample(state.whole.detach(), state.views))

    def refuses_views(self, tensor: Any) -> None:
        if self.below is not None and not self.has(tensor):
            self.outside(self.below.refuses_views, tensor)

    def forgets(self, tensor: Any) -> None:
        """Do nothing: the tracer below has seen `severed`."""

    def hides(self, tensors: Any) -> None:
        """Refuse a node that only the tape of samples knows where the tape around records its
        operands."""
        known = [self._for_all(x) for x in tensors if isinstance(x, TensorState)]
        if active.grad_enabled and any(x._requires_grad for x in known):
            raise NotImplementedError(
                "vmap: an autograd.Function inside a function that is mapped is not supported "
                "where gradients are recorded around it")
