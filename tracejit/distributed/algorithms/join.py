"""Processes with different numbers of inputs; PyTorch's `Join`.

In: objects that do collectives in each iteration. Out: processes whose inputs are over take part in
the collectives of the others until all are done. Used by `DistributedDataParallel.join`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

from tracejit.core.ops.creation import ones, zeros
from tracejit.core.ops.types import int64
from tracejit.distributed.collectives import all_reduce
from tracejit.distributed.work import Work

EARLY = (
    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
)


class JoinHook:
    """Part that a process without inputs does for one object. Both methods do nothing here.

    >>> hook = JoinHook()
    >>> hook.main_hook(), hook.post_hook(is_last_joiner=True)
    (None, None)
    """

    def main_hook(self) -> None:
        """Take part in one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Do what is left when all are done. `is_last_joiner`: this process had inputs to the
        end."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


class Joinable(ABC):
    """Object that does collectives in each iteration, such as a DistributedDataParallel module.

    Classes derived from it have `join_hook`, `join_device` and `join_process_group`. They call
    `Join.notify_join_context(self)` at the start of an iteration.

    >>> import tracejit
    >>> issubclass(tracejit.nn.parallel.DistributedDataParallel, Joinable)
    True
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig(False, False, False)

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that does its part for processes without inputs."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of its collectives."""


class Join:
    """Context in which processes may have different numbers of inputs.

    joinables  objects that do collectives, in the order of their calls in an iteration
    enable     False: the context does nothing
    throw_on_early_termination  raise RuntimeError in all processes when the first has no more

    Raises ValueError for an empty list or several groups, TypeError for what is no Joinable.

    In two processes, each may have another number of inputs in the loop.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> model = tracejit.nn.parallel.DistributedDataParallel(tracejit.nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for x in tracejit.ones(3 + dist.get_rank(), 1, 2):
    ...         model(x).sum().backward()
    >>> model.module.bias.grad
    tensor([3.])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True,
        throw_on_early_termination: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for one in joinables:
            if not isinstance(one, Joinable):
                raise TypeError(f"The join context manager requires Joinable objects, got "
                                f"{type(one).__name__}")
        if any(j.join_process_group is not joinables[0].join_process_group for j in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable = joinables, enable
        self._throw = throw_on_early_termination
        self._hooks = [one.join_hook(**kwargs) for one in joinables]
        self._group = joinables[0].join_process_group
        for k, one in enumerate(joinables):
            one._join_config = _JoinConfig(enable, throw_on_early_termination, k == 0)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if self._enable and kind is None:
                self._accompany()
        finally:
            for one in self._joinables:
                one._join_config = _JoinConfig(False, False, False)

    def _accompany(self) -> None:
        """Take part in the others' iterations until nobody has inputs."""
        last = True
        while True:
            active = zeros(1, dtype=int64)
            all_reduce(active, group=self._group)
            if not int(active):
                break
            if self._throw:
                self._tell_end()
                raise RuntimeError(EARLY)
            for hook in self._hooks:
                hook.main_hook()
            last = False
        for hook in self._hooks:
            hook.post_hook(last)

    def _tell_end(self) -> None:
        all_reduce(ones(1, dtype=int64), group=self._group)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Say that this process begins an iteration. An object's forward calls it first."""
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group = joinable.join_process_group
        active = ones(1, dtype=int64)
        all_reduce(active, group=group)
        if config.throw_on_early_termination and int(active) < group.size():
            all_reduce(zeros(1, dtype=int64), group=group)
            raise RuntimeError(EARLY)
        return None
