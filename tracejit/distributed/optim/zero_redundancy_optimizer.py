"""ZeroRedundancyOptimizer: each process keeps the optimizer's state of a part of the parameters.

In: parameters that all processes have, with equal gradients. Out: each process updates its part
and gives it to the others. The state takes 1/N of the memory on N processes. So do the gradients
with `shard_gradients=True`: then the reducer of DistributedDataParallel gives a mean to the process
alone that updates the parameter.

Source: Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
2020, stages 1 and 2.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.core.eager.construction import tensor
from tracejit.core.ops.types import float64
from tracejit.distributed.algorithms.join import Join, Joinable, JoinHook
from tracejit.distributed.collectives import all_reduce, broadcast
from tracejit.distributed.errors import refuse
from tracejit.distributed.groups import member
from tracejit.distributed.objects import gather_object
from tracejit.distributed.reduce_op import ReduceOp
from tracejit.distributed.reducer import of_parameters
from tracejit.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from tracejit.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

NOT_CONSOLIDATED = (
    "Optimizer state has not been consolidated on this rank. Please call "
    "`consolidate_state_dict(to={rank})` on all ranks beforehand if you meant to save the global "
    "state."
)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Optimizer whose state is spread over the processes of a group.

    params           tensors of any shapes, or dicts of them with options
    optimizer_class  the optimizer of each part, such as `tracejit.optim.Adam`
    process_group    the default one if None
    parameters_as_bucket_view  taken, and without effect: parameters travel from their own memory
    overlap_with_ddp  refused with NotImplementedError
    shard_gradients  after a backward a process has only the gradients of its part (tracejit's own)
    **defaults       options of the optimizer

    A parameter belongs to one process, so that all have about as many elements. `state_dict` needs
    `consolidate_state_dict` first. All processes must call `step` equally often.

    `shard_gradients=True` needs a DistributedDataParallel module that has the parameters. Their
    `grad` is None in the other processes; clip gradients by `clip_grad_norm_` of this optimizer.
    Raises RuntimeError for a parameter without such a module, and outside the group; ValueError for
    a module of another group.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = ZeroRedundancyOptimizer([p], tracejit.optim.SGD, lr=0.25, momentum=0.9)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> optimizer.consolidate_state_dict(to=0)
    >>> p.item(), optimizer.state_dict()["state"]
    (0.5, {0: {'momentum_buffer': tensor([2.])}})
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        *,
        shard_gradients: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            refuse("ZeroRedundancyOptimizer(overlap_with_ddp=True)")
        group = member(process_group, "ZeroRedundancyOptimizer")
        if group is None:
            raise RuntimeError("ZeroRedundancyOptimizer: this process is not in the group")
        self.process_group, self._optimizer_class = group, optimizer_class
        self.shard_gradients = shard_gradients
        self.world_size, self.rank = group.size(), group.rank()
        self.optim: Optimizer | None = None
        self._gathered: list[dict[str, Any]] | None = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self._distribute()

    # -- whose parameter is whose ----------------------------------------------------------------

    def _distribute(self) -> None:
        """Give each parameter to a process, the largest first to who has least; make the own
        optimizer."""
        loads = [0] * self.world_size
        self._owner: dict[int, int] = {}
        for group in self.param_groups:
            for p in sorted(group["params"], key=lambda p: -p.numel()):
                rank = loads.index(min(loads))
                loads[rank] += p.numel()
                self._owner[id(p)] = rank
        before = self.optim.state if self.optim is not None else {}
        parts = self._groups_of(self.rank)
        self.optim = self._optimizer_class(parts, **self.defaults)
        for p, state in before.items():
            self.optim.state[p] = state
        self.state = self.optim.state
        self._take_options(self.optim.param_groups, self.param_groups)
        if self.shard_gradients:
            self._shard_gradients()

    def _shard_gradients(self) -> None:
        """Let the reducers of these parameters give each mean to its parameter's process alone."""
        every = [p for group in self.param_groups for p in group["params"]]
        found = of_parameters(every)
        alone = [k for k, p in enumerate(every) if not any(one.averages(p) for one in found)]
        if alone:
            raise RuntimeError(
                f"shard_gradients=True: parameter {alone[0]} is in no DistributedDataParallel "
                "module; make that module before this optimizer"
            )
        for one in found:
            if one.group.ranks != self.process_group.ranks:
                raise ValueError("shard_gradients=True: the module and the optimizer have "
                                 "different process groups")
            one.shard(self._owner)

    def _groups_of(self, rank: int) -> list[dict[str, Any]]:
        """Return the groups with the parameters of one process only; each may be empty."""
        return [
            {**group, "params": [p for p in group["params"] if self._owner[id(p)] == rank]}
            for group in self.param_groups
        ]

    @staticmethod
    def _take_options(given: list[dict[str, Any]], taken: list[dict[str, Any]]) -> None:
        for one, other in zip(given, taken):
            for name in one:
                if name in ("params", "param_names"):
                    continue
                if name not in other or other[name] is not one[name]:
                    other[name] = one[name]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to train from now on; all processes must add the same."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self._distribute()

    # -- steps -----------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the own parameters, and exchange all. Returns what the closure returns."""
        assert self.optim is not None
        if self._join_config.enable:
            Join.notify_join_context(self)
        self._take_options(self.param_groups, self.optim.param_groups)
        found = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._exchange()
        self._take_options(self.optim.param_groups, self.param_groups)
        return found

    @no_grad()
    def _exchange(self) -> None:
        """Give every process the parameters of all."""
        group = self.process_group
        waiting = [
            broadcast(p.detach(), group=group, async_op=True, group_src=self._owner[id(p)])
            for each in self.param_groups for p in each["params"]
        ]  # fmt: skip
        for work in waiting:
            if work is not None:
                work.wait()

    @no_grad()
    def clip_grad_norm_(
        self, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
    ) -> Any:
        """Scale all gradients so that their norm is at most `max_norm`; return the norm before.

        All processes must call it: each knows the norm of its part. Raises RuntimeError for a norm
        that is not finite, if asked to.
        """
        own = [
            p.grad for group in self._groups_of(self.rank) for p in group["params"]
            if p.grad is not None
        ]  # fmt: skip
        p = float(norm_type)
        none = math.inf if p == -math.inf else 0.0
        norm = get_total_norm(own, norm_type).double() if own else tensor(none, dtype=float64)
        if math.isinf(p):
            all_reduce(norm, ReduceOp.MAX if p > 0 else ReduceOp.MIN, self.process_group)
        else:
            norm = norm**p
            all_reduce(norm, ReduceOp.SUM, self.process_group)
            norm = norm ** (1 / p)
        if error_if_nonfinite and not bool(norm.isfinite()):
            raise RuntimeError(f"The total norm of order {norm_type} for gradients is non-finite, "
                               "so it cannot be clipped")
        every = [p for group in self.param_groups for p in group["params"]]
        norm = norm.to(every[0].dtype)
        clip_grads_with_norm_(every, max_norm, norm)
        return norm

    # -- state -----------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all parts in the process `to` of the group; all must call it."""
        assert self.optim is not None
        self._take_options(self.param_groups, self.optim.param_groups)
        here = self.rank == to
        every: list[Any] = [None] * self.world_size
        gather_object(
            self.optim.state_dict(), every if here else None, group=self.process_group,
            group_dst=to,
        )  # fmt: skip
        self._gathered = every if here else None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as the plain optimizer would.

        Raises RuntimeError where it was not consolidated.
        """
        if self._gathered is None:
            raise RuntimeError(NOT_CONSOLIDATED.format(rank=self.rank))
        whole = super().state_dict()
        whole["state"] = {}
        numbers = self._numbers()
        for rank, part in enumerate(self._gathered):
            owned = [p for group in self._groups_of(rank) for p in group["params"]]
            for k, state in part["state"].items():
                whole["state"][numbers[id(owned[k])]] = state
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def _numbers(self) -> dict[int, int]:
        every = [p for group in self.param_groups for p in group["params"]]
        return {id(p): k for k, p in enumerate(every)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's part of the state of all parameters."""
        assert self.optim is not None
        given = copy.copy(state_dict)
        self._take_options(given["param_groups"], self.param_groups)
        numbers = self._numbers()
        part = self.optim.state_dict()
        owned = [p for group in self._groups_of(self.rank) for p in group["params"]]
        part["state"] = {
            k: given["state"][numbers[id(p)]]
            for k, p in enumerate(owned) if numbers[id(p)] in given["state"]
        }  # fmt: skip
        self._take_options(given["param_groups"], part["param_groups"])
        self.optim.load_state_dict(part)
        self.state = self.optim.state
        self._gathered = None

    # -- inputs that end early in some processes -------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that takes steps for a process without inputs."""
        return _ZeroJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group over which the state is spread."""
        return self.process_group


class _ZeroJoinHook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """Update the own parameters as the others do theirs."""
        self.optimizer.step()
