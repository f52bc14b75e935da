"""DistributedDataParallel: the same module in every process, its gradients averaged.

In: a module, whose parameters and buffers become those of rank 0. Out: a module that computes the
same, and whose gradients after a backward are the means over all processes. The work is done by
`tracejit.distributed.reducer`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.core.eager.construction import tensor
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.devices import device as as_device
from tracejit.core.ops.creation import empty, zeros
from tracejit.core.ops.types import int64, uint8
from tracejit.distributed import groups
from tracejit.distributed.algorithms.ddp_comm_hooks import default_hooks
from tracejit.distributed.algorithms.join import Join, Joinable, JoinHook
from tracejit.distributed.buckets import BuiltinCommHookType
from tracejit.distributed.collectives import all_reduce, broadcast
from tracejit.distributed.exchanges import all_gather_single
from tracejit.distributed.objects import all_gather_object
from tracejit.distributed.reducer import Reducer
from tracejit.nn.embedding import Embedding, EmbeddingBag
from tracejit.nn.module import Module

__all__ = ["DistributedDataParallel"]

_MEGABYTE = 1024 * 1024


class DistributedDataParallel(Module, Joinable):
    """Module in every process of a group, which averages gradients while the backward runs.

    module               its parameters, of any shapes and dtypes, and its buffers become those of
                         rank 0
    device_ids, output_device  None for modules on the CPU
    broadcast_buffers    before each forward in training, buffers become those of rank 0
    init_sync            make parameters and buffers those of rank 0 when this is made
    process_group        the default one if None
    bucket_cap_mb        megabytes of gradients that travel at once; 25 if None
    find_unused_parameters  some parameters may get no gradient in a backward
    gradient_as_bucket_view gradients are views of the memory that travels: saves a copy
    static_graph         the same parameters get gradients in every iteration
    skip_all_reduce_unused_params  taken, and without effect

    Input and output are those of the module. Its state dict has the prefix "module.", as PyTorch's
    has. Each process divides its gradients by the number of processes: the mean of the losses'
    gradients results. Raises RuntimeError if no parameter requires a gradient, or if the processes'
    parameters differ. Every process must call forward and backward equally often, or use `join`.

    Two processes with other inputs get the same gradients: the mean of both.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> model = tracejit.nn.parallel.DistributedDataParallel(tracejit.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    >>> model(tracejit.tensor([[1.0, 2.0]])).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 2.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        group = groups.member(process_group, "DistributedDataParallel")
        if group is None:
            raise RuntimeError("DistributedDataParallel: this process is not in the group")
        _refuse_missing(mixed_precision, device_mesh, delay_all_reduce_named_params)
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, one) for name, one in named if name not in ignored]
        if not named:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have "
                               "any parameters that require a gradient.")
        _check_devices([one.device for _, one in named], device_ids, output_device)
        self.module = module
        self.device = named[0][1].device
        self.device_ids = [self.device.index or 0] if device_ids else None
        self.output_device = self.device_ids and self.device_ids[0]
        self.dim, self.process_group = dim, group
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.expects_gradients = self.has_own_means = False
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MEGABYTE)
        self.parameters_to_ignore = ignored
        # not of the module: neither copied with it nor in its state
        self.__dict__["_named"] = named
        self._make_reducer(bucket_cap_mb is None)
        self._check_same()
        if init_sync:
            self._take_state_of_first()

    def _make_reducer(self, small_first: bool) -> None:
        names, parameters = zip(*self._named)
        first = min(_MEGABYTE, self.bucket_bytes_cap) if small_first else self.bucket_bytes_cap
        self.__dict__["reducer"] = Reducer(
            self, parameters, names, self.process_group, first, self.bucket_bytes_cap,
            self.find_unused_parameters, self.gradient_as_bucket_view, self.static_graph,
            _sparse(self.module, parameters),
        )  # fmt: skip

    def _check_same(self) -> None:
        """Raise RuntimeError in all processes if their parameters, buckets or options differ."""
        buckets = {
            index: number for number, bucket in enumerate(self.reducer.buckets)
            for index in bucket.indices
        }  # fmt: skip
        told: list[tuple[Any, ...]] = [
            (f"parameter {name} {tuple(one.shape)} {one.dtype}",
             f"parameter {name} in bucket {buckets[k]}")
            for k, (name, one) in enumerate(self._named)
        ]  # fmt: skip
        for option in ("find_unused_parameters", "static_graph", "broadcast_buffers"):
            told.append((f"{option}={getattr(self, option)}",))
        _check_told(told, self.process_group)

    @no_grad()
    def _take_state_of_first(self) -> None:
        for name, one in [*self.module.named_parameters(), *self.module.named_buffers()]:
            if name not in self.parameters_to_ignore:
                broadcast(one.detach(), group=self.process_group, group_src=0)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._join_config.enable:
            Join.notify_join_context(self)
        training = active.grad_enabled and self.require_backward_grad_sync
        if self._join_config.enable:
            self._tell_joined(training)
        if self.require_forward_param_sync and self.broadcast_buffers and self.training:
            self._share_buffers()
        if self.device_ids:
            inputs, kwargs = _moved((inputs, kwargs), self.device)
        result = self.module(*inputs, **kwargs)
        if training:
            self.reducer.expect(result)
        self.expects_gradients = training
        self.require_forward_param_sync = training
        return result

    @no_grad()
    def _share_buffers(self) -> None:
        root = 0
        if self._join_config.enable:
            root = _highest_with_inputs(self.process_group, True)
        for name, one in self.module.named_buffers():
            if name not in self.parameters_to_ignore:
                broadcast(one, group=self.process_group, group_src=root)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients to this process alone in the `with` block; they add up for the next
        backward outside it."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Let `hook(state, bucket)` combine the gradients of a bucket over the processes.

        hook  takes a `GradBucket`, returns a future of a tensor like its buffer

        Raises TypeError for what cannot be called, RuntimeError if there is a hook already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.owners:
            raise RuntimeError("register_comm_hook: gradients are sharded, so that no process has "
                               "all means")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be "
                               "called once.")
        self.reducer.hook, self.reducer.hook_state = hook, state

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Let a hook with a name combine the gradients."""
        compress = comm_hook_type is BuiltinCommHookType.FP16_COMPRESS
        hook = default_hooks.fp16_compress_hook if compress else default_hooks.allreduce_hook
        self.register_comm_hook(self.process_group, hook)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Iterable[str]
    ) -> None:
        """Let modules of this class leave some parameters and buffers of a module alone, by name.

        Call it before the module is given to this class.
        """
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Return what PyTorch's modules tell of themselves."""
        sizes = [bucket.nbytes for bucket in self.reducer.buckets]
        return {
            "world_size": self.process_group.size(), "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__, "iteration": self.reducer.iteration,
            "bucket_cap_bytes": self.bucket_bytes_cap, "bucket_sizes": ", ".join(map(str, sizes)),
            "num_parameter_tensors": len(self._named), "broadcast_buffers": self.broadcast_buffers,
            "total_parameter_size_bytes": sum(one.nbytes for _, one in self._named),
            "find_unused_parameters": self.find_unused_parameters,
            "gradient_as_bucket_view": self.gradient_as_bucket_view,
            "static_graph": self.static_graph, "can_set_static_graph": False,
            "backend_name": self.process_group.name(),
        }  # fmt: skip

    def _set_static_graph(self) -> None:
        """Say that every iteration uses the same parameters."""
        self.static_graph = self.reducer.static = True

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("reducer", "process_group", "_named"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__["process_group"] = groups.world()
        self.__dict__["_named"] = [
            (name, one) for name, one in self.module.named_parameters()
            if one.requires_grad and name not in self.parameters_to_ignore
        ]  # fmt: skip
        self.__dict__.setdefault("require_forward_param_sync", True)
        self._make_reducer(True)

    # -- inputs that end early in some processes -------------------------------------------------

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:  # fmt: skip
        """Return a context in which processes may have different numbers of inputs.

        divide_by_initial_world_size  else gradients are divided by those that still have inputs
        throw_on_early_termination    raise RuntimeError in all when the first has no more
        """
        return Join(
            [self], enable, throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )  # fmt: skip

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that does this module's part for processes without inputs."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group over which gradients are averaged."""
        return self.process_group

    def _tell_joined(self, training: bool) -> None:
        """Say to processes without inputs what they must take part in."""
        flags = tensor([int(training), int(self._shares_buffers()), 1], dtype=int64)
        all_reduce(flags, group=self.process_group)
        if not self.reducer_divides_by_all:
            self.reducer.divisor = int(flags[2])

    def _shares_buffers(self) -> bool:
        return self.require_forward_param_sync and self.broadcast_buffers and self.training

    reducer_divides_by_all = True


class _DDPJoinHook(JoinHook):
    """What a process without inputs does in each iteration of the others."""

    def __init__(self, module: DistributedDataParallel, divide_by_all: bool) -> None:
        self.module = module
        module.reducer_divides_by_all = divide_by_all

    def main_hook(self) -> None:
        """Take part in one forward and one backward of the others."""
        module = self.module
        flags = zeros(3, dtype=int64)
        all_reduce(flags, group=module.process_group)
        training, shares, count = flags.tolist()
        if not module.reducer_divides_by_all:
            module.reducer.divisor = count
        if shares:
            root = _highest_with_inputs(module.process_group, False)
            with no_grad():
                for name, one in module.module.named_buffers():
                    if name not in module.parameters_to_ignore:
                        broadcast(one, group=module.process_group, group_src=root)
        module.require_forward_param_sync = bool(training)
        if training:
            module.reducer.send_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the state of a process that had inputs to the end."""
        module = self.module
        module.reducer.divisor = module.process_group.size()
        root = _highest_with_inputs(module.process_group, is_last_joiner)
        with no_grad():
            for name, one in [*module.module.named_parameters(), *module.module.named_buffers()]:
                if name not in module.parameters_to_ignore:
                    broadcast(one.detach(), group=module.process_group, group_src=root)


def _highest_with_inputs(group: Any, has_inputs: bool) -> int:
    """Return the highest rank in the group of those that say True."""
    from tracejit.distributed.reduce_op import ReduceOp

    found = tensor([group.rank() if has_inputs else -1], dtype=int64)
    all_reduce(found, ReduceOp.MAX, group)
    return int(found)


def _sparse(module: Module, parameters: Sequence[Any]) -> list[int]:
    """Return the numbers of the parameters whose layers make sparse gradients."""
    found = {
        id(one.weight) for one in module.modules()
        if isinstance(one, (Embedding, EmbeddingBag)) and one.sparse
    }  # fmt: skip
    return [k for k, one in enumerate(parameters) if id(one) in found]


def _refuse_missing(mixed_precision: Any, device_mesh: Any, delayed: Any) -> None:
    for name, value in (("mixed_precision", mixed_precision), ("device_mesh", device_mesh),
                        ("delay_all_reduce_named_params", delayed)):  # fmt: skip
        if value is not None:
            raise NotImplementedError(f"DistributedDataParallel: {name} is not available in "
                                      "tracejit")


def _check_devices(devices: Sequence[Any], device_ids: Any, output_device: Any) -> None:
    """Raise ValueError for parameters on several devices, and for a choice that they are not on."""
    names = sorted({str(one) for one in devices})
    if len(names) > 1:
        raise ValueError("DistributedDataParallel's input module must be on the same type of "
                         f"devices, but input module parameters locate in {set(names)}.")
    chosen = [*(device_ids or ()), *([] if output_device is None else [output_device])]
    if chosen and (devices[0].type == "cpu" or len(device_ids or ()) > 1 or any(
            (one.type, one.index or 0) != ("cuda", devices[0].index or 0)
            for one in map(as_device, chosen))):
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {names}."
        )


def _moved(value: Any, device: Any) -> Any:
    """Return arguments with the tensors in their lists, tuples and dicts on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if type(value) in (list, tuple):
        return type(value)(_moved(one, device) for one in value)
    if type(value) is dict:
        return {key: _moved(one, device) for key, one in value.items()}
    return value


def _check_told(told: Sequence[tuple[Any, ...]], group: Any) -> None:
    """Raise RuntimeError in all processes if they tell different things, naming the first that
    differs."""
    own = list(hashlib.sha256(repr(told).encode()).digest())
    digests = empty((group.size(), len(own)), dtype=uint8)
    all_gather_single(digests, tensor(own, dtype=uint8), group)
    if all(row == own for row in digests.tolist()):
        return
    everybody: list[Any] = [None] * group.size()
    all_gather_object(everybody, told, group)
    for rank, theirs in enumerate(everybody):
        for here, there in zip_longest(everybody[0], theirs, fillvalue=("none",)):
            for one, other in zip_longest(here, there, fillvalue="none"):
                if one != other:
                    raise RuntimeError(
                        "DistributedDataParallel expects same model across all ranks: the first "
                        f"that differs is {one} in rank {group.ranks[0]}, {other} in rank "
                        f"{group.ranks[rank]}"
                    )
