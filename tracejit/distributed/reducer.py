"""Reducer: averages gradients over processes while the backward still runs.

In: parameters, whose gradients arrive one by one. Out: `.grad` of each is the mean over all
processes when the backward is over. Called by `DistributedDataParallel`.

A bucket is sent when its last gradient is there, and all buckets before it were sent: so every
process sends the same ones in the same order. The communication thread carries them on meanwhile.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.autograd.variable import Variable
from tracejit.core.eager.construction import tensor
from tracejit.core.eager.nodes import AccumulateGrad
from tracejit.core.eager.recording import active
from tracejit.core.ops.creation import zeros
from tracejit.core.ops.types import int32, int64
from tracejit.distributed.buckets import Bucket, GradBucket, make_buckets
from tracejit.distributed.collectives import all_reduce, broadcast, reduce, start_all_reduce
from tracejit.distributed.device_groups import carrier, on_cpu
from tracejit.distributed.groups import ProcessGroup
from tracejit.distributed.recorded import records_for
from tracejit.distributed.recorded_gradients import recording_of
from tracejit.distributed.reduce_op import ReduceOp
from tracejit.distributed.sparse_gradients import SparseMean
from tracejit.distributed.work import Work

Hook = Callable[[Any, GradBucket], Any]
UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. "
    "Parameters that got no gradient there: {names}. If the loss does not depend on all "
    "parameters, pass find_unused_parameters=True to DistributedDataParallel; and make sure that "
    "all outputs of forward take part in the loss."
)
TWICE = (
    "Expected to mark a variable ready only once, but {name} got its gradient twice: it is used in "
    "several backward passes of one iteration."
)


class Reducer:
    """Averages the gradients of some parameters over a group.

    module       whose attribute `expects_gradients` says if the next backward is averaged
    names        of the parameters, for errors
    first, most  bytes of the first bucket, and of the others
    unused       find parameters that a backward will not reach
    as_views     gradients are views of the buckets, so nothing is copied back
    static       the same parameters are used in every iteration
    sparse       numbers of the parameters whose gradients are sparse
    """

    def __init__(
        self, module: Any, parameters: Sequence[Any], names: Sequence[str], group: ProcessGroup,
        first: int, most: int, unused: bool, as_views: bool, static: bool,
        sparse: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.parameters, self.names, self.group = list(parameters), list(names), group
        self.first, self.most = first, most
        self.unused, self.as_views, self.static = unused, as_views, static
        self.layouts = 0  # how often parameters were distributed over buckets
        self.sparse = frozenset(sparse)
        self.owners: dict[int, int] = {}
        self.divisor = group.size()
        self.hook: Hook | None = None
        self.hook_state: Any = None
        self.iteration = 0
        self._module = weakref.ref(module)
        self._arrived: set[int] = set()
        self._order: list[int] = []
        self._rebuilt = False
        self._sent = 0
        self._skipped: list[int] = []  # parameters that the next backward does not reach
        self._unreached: set[int] = set()  # they have gradients of an earlier backward
        self._never: frozenset[int] = frozenset()  # of a static graph, after its first iteration
        self._numbers = {id(one): k for k, one in enumerate(self.parameters)}
        self._place(range(len(self.parameters) - 1, -1, -1))
        self._number = next(_numbers)
        _alive[self._number] = self
        self._handles = [
            one.register_post_accumulate_grad_hook(_arrival(self._number, k))
            for k, one in enumerate(self.parameters)
        ]
        self._owner_handles: list[Any] = []

    @property
    def expecting(self) -> bool:
        """True if the next backward is averaged. The module keeps it, so that captured functions
        see `forward` set it."""
        module = self._module()
        return module is not None and module.expects_gradients

    @expecting.setter
    def expecting(self, value: bool) -> None:
        module = self._module()
        if module is not None:
            module.expects_gradients = value

    def __del__(self) -> None:
        for handle in (*getattr(self, "_handles", ()), *getattr(self, "_owner_handles", ())):
            handle.remove()

    def _place(self, order: Iterable[int]) -> None:
        """Distribute the parameters over buckets."""
        self._placed = list(order)
        self.layouts += 1
        self.buckets = make_buckets(
            self._placed, self.parameters, self.first, self.most, self.owners, self.sparse
        )
        self._bucket_of = {
            index: (bucket, k)
            for bucket in self.buckets for k, index in enumerate(bucket.indices)
        }  # fmt: skip

    def shard(self, owners: dict[int, int]) -> None:
        """Let only one process have the mean of a gradient from now on.

        owners  rank in the group for the id of each parameter, which all processes know alike

        Raises RuntimeError if a hook combines the gradients, or if one is sparse.
        """
        if self.hook is not None:
            raise RuntimeError("gradients cannot be sharded: a communication hook gives every "
                               "process the means")
        found = {self._numbers[one]: rank for one, rank in owners.items() if one in self._numbers}
        for index in sorted(self.sparse & set(found)):
            raise RuntimeError(f"gradients cannot be sharded: that of {self.names[index]} is "
                               "sparse")
        self.owners = found
        for handle in self._owner_handles:
            handle.remove()
        self._owner_handles = [
            self.parameters[index].register_hook(_before(self._number))
            for index, rank in found.items() if rank == self.group.rank()
        ]
        self._place(self._placed)

    def averages(self, parameter: Any) -> bool:
        """Return True if this is one of the parameters."""
        return id(parameter) in self._numbers

    @no_grad()
    def before(self) -> None:
        """Prepare for gradients that add to the means which this process alone has.

        The others have nothing there, so the next mean takes a part of it only.
        """
        module = self._module()
        if module is None or not module.has_own_means:
            return
        module.has_own_means = False
        for index, rank in self.owners.items():
            grad = self.parameters[index].grad
            if rank == self.group.rank() and grad is not None:
                grad.mul_(self.group.size())

    # -- one iteration ---------------------------------------------------------------------------

    def expect(self, outputs: Any) -> None:
        """Get ready for the backward of these outputs.

        Raises RuntimeError if gradients of the last one are still missing.
        """
        if self.expecting and self._arrived:
            missing = [n for k, n in enumerate(self.names) if k not in self._arrived]
            raise RuntimeError(UNFINISHED.format(names=", ".join(missing)))
        if active.tracer is not None and (self.unused or self.static):
            active.tracer.add_break("DistributedDataParallel looks for parameters that a backward "
                                    "does not reach",
                                    "pass neither find_unused_parameters nor static_graph")
        elif active.tracer is not None and self.sparse:
            active.tracer.add_break("DistributedDataParallel averages sparse gradients, whose "
                                    "sizes no program knows")
        elif active.tracer is not None and not on_cpu(self.parameters):
            active.tracer.add_break("DistributedDataParallel averages gradients on a CUDA device, "
                                    "which NCCL does outside of programs")
        if self.static:
            self._skipped = list(self._never)
        elif self.unused:
            reached = reached_leaves(outputs)
            self._skipped = [k for k, p in enumerate(self.parameters) if id(p) not in reached]

    def arrived(self, index: int) -> None:
        """Take note that a parameter's gradient is there."""
        if not self.expecting:
            return
        plain = self.unused or self.static or self.sparse
        if records_for(self.parameters[index]) and not plain:
            tracer: Any = active.tracer
            tracer.asks(settings_of, self._number)
            recording_of(self).arrived(index)
            return
        if index in self._arrived:
            if self._first_iteration:
                return
            raise RuntimeError(self.twice(index))
        if not self._arrived:
            self._begin()
        self._order.append(index)
        if self._first_iteration:
            self._arrived.add(index)
            return
        self._ready(index, True)

    def twice(self, index: int) -> str:
        """Return the error's text for a second gradient of a parameter in one backward."""
        return TWICE.format(name=self.names[index])

    def told_of(self, arrived: set[int]) -> None:
        """Take over which gradients a recording met, so that the next forward names the others."""
        self._arrived = arrived

    def keep_order(self) -> None:
        """Leave the parameters in their buckets: a program has been recorded with these."""
        self._rebuilt = True

    def bucket_number(self, index: int) -> int:
        """Return the number of a parameter's bucket."""
        return self.buckets.index(self._bucket_of[index][0])

    def _begin(self) -> None:
        """Do what comes first in a backward."""
        self._order, self._sent = [], 0
        self._unreached.clear()
        self._first_iteration = self.static and self.iteration == 0
        for bucket in self.buckets:
            bucket.missing, bucket.future = len(bucket.indices), None
        self.used = zeros(len(self.parameters), dtype=int32)
        Variable._execution_engine.queue_callback(self._finish)
        if not self._first_iteration:
            for index in self._skipped:
                self._ready(index, False)

    @no_grad()
    def _ready(self, index: int, used: bool) -> None:
        """Copy a gradient to its bucket, and send what is complete."""
        self._arrived.add(index)
        bucket, place = self._bucket_of[index]
        parameter = self.parameters[index]
        if used:
            self.used[index] = 1
        if bucket.sparse:
            if used and not parameter.grad.is_sparse:
                raise RuntimeError("Expected variable to have sparse gradient: that of "
                                   f"{self.names[index]} is dense")
        else:
            self._put(index, bucket, place, used)
        bucket.missing -= 1
        while self._sent < len(self.buckets) and not self.buckets[self._sent].missing:
            self._send(self.buckets[self._sent])
            self._sent += 1

    def _put(self, index: int, bucket: Bucket, place: int, used: bool) -> None:
        parameter = self.parameters[index]
        bucket.open()
        grad, view = parameter.grad, bucket.views[place]
        if grad is None:
            view.zero_()
        elif grad.is_sparse:
            raise RuntimeError(f"DistributedDataParallel: the gradient of {self.names[index]} is "
                               "sparse, and its layer does not say so by sparse=True")
        elif grad.data_ptr() != view.data_ptr() or grad.stride() != view.stride():
            view.copy_(grad)
            if self.as_views and used and bucket.owner is None:
                parameter.grad = view
        if bucket.owner is not None:
            if grad is not None and not used:
                self._unreached.add(index)
            parameter.grad = None  # its memory goes now, not at the end of the backward

    def _send(self, bucket: Bucket) -> None:
        if bucket.sparse:
            (parameter,), (index,) = bucket.parameters, bucket.indices
            grad = parameter.grad if int(self.used[index]) else None
            bucket.future = SparseMean(grad, parameter, self.divisor, self.group)
            return
        if bucket.owner is not None:
            bucket.flat.div_(self.divisor)
            bucket.future = reduce(
                bucket.flat, op=ReduceOp.SUM, group=self.group, async_op=True,
                group_dst=bucket.owner,
            )  # fmt: skip
            if bucket.owner != self.group.rank():
                bucket.close()
            return
        if self.hook is not None:
            last = bucket is self.buckets[-1]
            bucket.future = self.hook(self.hook_state, GradBucket(bucket, self._sent, last))
            return
        bucket.flat.div_(self.divisor)
        operation = start_all_reduce(
            bucket.flat, ReduceOp.SUM, carrier(self.group, bucket.flat),
            f"all_reduce of gradients, bucket {self._sent}", True,
        )  # fmt: skip
        bucket.future = Work([operation], [bucket.flat], self.group.seconds).get_future()

    @no_grad()
    def _finish(self) -> None:
        """Wait for the buckets, and bring the means to the gradients: the backward is over."""
        if self._first_iteration:
            self._never = frozenset(range(len(self.parameters))) - self._arrived
            arrived, self._arrived = self._arrived, set()
            for index in range(len(self.parameters)):
                self._ready(index, index in arrived)
        if self._sent < len(self.buckets):
            return  # the next forward says what is missing
        self._bring_all_back()
        self.expecting, self._arrived = False, set()
        self.iteration += 1
        self._rebuild()

    def _used_anywhere(self) -> list[int] | None:
        """Return 1 for each parameter that some process used; None if all are."""
        if not self.unused and not self.static:
            return None
        all_reduce(self.used, ReduceOp.MAX, self.group)
        return [int(one) for one in self.used.tolist()]

    def _bring_all_back(self) -> None:
        """Wait for the buckets, and bring the means to the gradients."""
        everywhere = self._used_anywhere()
        for bucket in self.buckets:
            found = bucket.future.wait()
            bucket.future = None
            if bucket.sparse:
                if everywhere is None or everywhere[bucket.indices[0]]:
                    bucket.parameters[0].grad = found
                continue
            if bucket.owner is not None:
                for index, view in zip(bucket.indices, bucket.close()):
                    if everywhere is None or everywhere[index] or index in self._unreached:
                        self.parameters[index].grad = view
                continue
            found = found[0] if isinstance(found, (list, tuple)) else found
            if found.data_ptr() != bucket.flat.data_ptr():
                bucket.flat.copy_(found)
            self._bring_back(bucket, everywhere)
        self.note_own_means()

    def note_own_means(self) -> None:
        """Take note that gradients of this process are means, where others have none."""
        module = self._module()
        if self.owners and module is not None:
            module.has_own_means = True

    def _bring_back(self, bucket: Bucket, everywhere: list[int] | None) -> None:
        for index, view in zip(bucket.indices, bucket.views):
            parameter = self.parameters[index]
            if everywhere is not None and not everywhere[index]:
                continue  # its gradient, if there is one, stays
            if self.as_views:
                if parameter.grad is None or parameter.grad.data_ptr() != view.data_ptr():
                    parameter.grad = view
            elif parameter.grad is None:
                parameter.grad = view.clone()
            else:
                parameter.grad.copy_(view)

    def _rebuild(self) -> None:
        """Put the parameters in the order in which their gradients came, that of rank 0, once."""
        if self._rebuilt or not self.iteration or self.unused:
            return
        self._rebuilt = True
        rest = [k for k in range(len(self.parameters)) if k not in self._order]
        order = tensor([*self._order, *rest], dtype=int64)
        broadcast(order, group=self.group, group_src=0)
        self._place(order.tolist())
        if self.as_views:
            self._keep_as_views()

    @no_grad()
    def _keep_as_views(self) -> None:
        """Let gradients that are views of the old buckets be views of the new ones."""
        for bucket in self.buckets:
            for parameter, view in zip(bucket.parameters, bucket.views):
                if parameter.grad is not None and bucket.owner is None:
                    view.copy_(parameter.grad)
                    parameter.grad = view

    # -- inputs that end early in some processes -------------------------------------------------

    @no_grad()
    def send_zeros(self) -> None:
        """Take part in one backward of the others, without gradients of its own."""
        self.used = zeros(len(self.parameters), dtype=int32)
        for number, bucket in enumerate(self.buckets):
            bucket.open()
            if not bucket.sparse:
                bucket.flat.zero_()
            self._sent = number
            self._send(bucket)
        self._bring_all_back()  # an optimizer with a part of the state takes steps here too
        self.iteration += 1
        self._rebuild()


_alive: weakref.WeakValueDictionary[int, Reducer] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def settings_of(number: int) -> tuple[Any, ...]:
    """Return what decides how a reducer averages. Guards of captured functions ask it."""
    found = _alive.get(number)
    if found is None:
        return ()
    return id(found.hook), id(found.hook_state), found.static, found.unused, found.layouts


def _arrival(number: int, index: int) -> Callable[[Any], None]:
    """Return a parameter's hook. It holds numbers, which captured functions can look at."""

    def arrive(parameter: Any) -> None:
        reducer = _alive.get(number)
        if reducer is not None:
            reducer.arrived(index)

    return arrive


def _before(number: int) -> Callable[[Any], None]:
    """Return the hook of a parameter whose mean only this process has."""

    def prepare(grad: Any) -> None:
        reducer = _alive.get(number)
        if reducer is not None:
            reducer.before()

    return prepare


def of_parameters(parameters: Iterable[Any]) -> list[Reducer]:
    """Return the reducers that average gradients of some of these parameters, in the order in
    which they were made."""
    given = list(parameters)
    return [
        one for _, one in sorted(_alive.items()) if any(one.averages(each) for each in given)
    ]


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in an output: a tensor, or lists, tuples, dicts and dataclasses of
    them."""
    from tracejit.core.eager.tensor import Tensor

    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in tensors_in(part)]
    return []


def reached_leaves(outputs: Any) -> set[int]:
    """Return the ids of the leaves that the backward of these outputs gives gradients to."""
    waiting = [one.grad_fn for one in tensors_in(outputs) if one.grad_fn is not None]
    found = {id(one) for one in tensors_in(outputs) if one.grad_fn is None}
    seen = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad):
            found.add(id(node.variable))
        waiting += [before for before, _ in node.next_functions if before is not None]
    return found
