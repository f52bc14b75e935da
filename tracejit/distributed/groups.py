"""Groups of processes: the default one, and others over some of its ranks.

In: where this process stands among its peers. Out: `ProcessGroup` objects, each over one
communicator of MPI. Called by programs, and by every collective for the group it works in.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.memory import forks
from tracejit.distributed import mpi, nccl_library, rendezvous
from tracejit.distributed.debug_level import get_debug_level
from tracejit.distributed.store import PrefixStore, Store
from tracejit.jit.capture.collectives import backward_calls

default_pg_timeout = timedelta(minutes=30)
NOT_INITIALIZED = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class Backend(str):
    """Name of the library by which processes talk: a str in small letters.

    name  such as "mpi", "gloo", "nccl" or "cpu:mpi,cuda:nccl"

    Names of PyTorch's backends are attributes, such as `Backend.MPI`. Raises ValueError for what is
    no name.

    >>> Backend("MPI") == Backend.MPI == "mpi"
    True
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    FAKE = "fake"
    backend_list = ("undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake")
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl"}  # as PyTorch has them

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class Posted:
    """The collectives that this process posted in a group, to tell the others at its end.

    known  False if others cannot compare the count: captured programs begin collectives too
    """

    def __init__(self) -> None:
        self.count, self.known = 0, True


class ProcessGroup:
    """Some of the job's processes, in order, with a communicator of their own.

    Programs get one from `init_process_group` (`group.WORLD`) and `new_group`, and make none. It is
    the argument `group` of collectives. `ranks` are the global ranks of its processes.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> whole = dist.group.WORLD
    >>> whole.rank(), whole.size(), whole.name()
    (0, 1, 'mpi')
    >>> dist.destroy_process_group()
    """

    def __init__(self, communicator: Any, ranks: Sequence[int], backend: Backend,
                 timeout: timedelta, name: str, store: Store | None,
                 description: str) -> None:  # fmt: skip
        found = mpi.started()
        if found is None:
            raise RuntimeError(NOT_INITIALIZED)
        communicator.Set_errhandler(found.mpi.ERRORS_RETURN)
        self.library = found
        self.communicator = communicator
        self.handle = found.handle(communicator)
        self.ranks = list(ranks)
        self.backend, self.timeout = backend, timeout
        self.group_name, self.group_desc, self.store = name, description, store
        self.bound_device_id = None
        self.number = next(_numbers)
        self._rank, self._size = communicator.Get_rank(), communicator.Get_size()
        self.ring = found.ring
        before = _posted.get(name)
        if before is not None:
            before.known = False  # two groups of one name
        self.posted = Posted()
        self.posted.known = before is None
        _posted[name] = self.posted

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        note_use(self)
        return self._rank

    def size(self) -> int:
        """Return the number of processes."""
        note_use(self)
        return self._size

    def name(self) -> str:
        """Return the backend's name."""
        note_use(self)
        return str(self.backend)

    @property
    def _device_types(self) -> list[Any]:
        """The kinds of devices whose tensors may travel."""
        from tracejit.core.memory.devices import device

        return [device("cpu")]

    def get_group_store(self) -> Store | None:
        """Return the store of the group's processes."""
        return self.store

    def set_timeout(self, timeout: timedelta) -> None:
        """Give collectives this long from now on."""
        from tracejit.distributed import recorded

        self.timeout = timeout
        recorded.set_seconds(self)

    @property
    def seconds(self) -> float:
        """Seconds that a collective may take."""
        return self.timeout.total_seconds()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a ProcessGroup: other processes have their own")

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self


class GroupMember:
    """The default group, and the value that stands for a group that this process is not in.

    WORLD             the default group; None before `init_process_group`
    NON_GROUP_MEMBER  `new_group` returns it in the processes outside

    >>> GroupMember.WORLD is None, GroupMember.NON_GROUP_MEMBER
    (True, -100)
    """

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class _Group:
    """The default group, under PyTorch's older name."""

    @property
    def WORLD(self) -> ProcessGroup | None:
        return GroupMember.WORLD

    @WORLD.setter
    def WORLD(self, value: ProcessGroup | None) -> None:
        GroupMember.WORLD = value


group = _Group()
_lock = forks.rlock()
_made: list[ProcessGroup] = []
_numbers = itertools.count()  # of this process's groups: a number is never used again
_posted: dict[str, Posted] = {}  # by the group's name, also of those that are gone
_count = [0]  # groups ever made: all processes count alike
_told_of_gloo = [False]


def is_initialized() -> bool:
    """Return True if there is a default group.

    >>> is_initialized()
    False
    """
    _note_read()
    return GroupMember.WORLD is not None


def default_process_group(_: Any) -> int:
    """Return the number of the default group, -1 if there is none or if MPI belongs to a parent
    process. Guards of captured functions ask it."""
    found = GroupMember.WORLD
    return -1 if found is None or found.ring.forked else found.number


def _note_read() -> None:
    """Let a recording depend on the default group."""
    asks = getattr(active.tracer, "asks", None)
    if asks is not None:
        asks(default_process_group, None)


def is_there(number: int) -> bool:
    """Return True if this process can use the group of a number. Guards of captured functions ask
    it."""
    return any(one.number == number and not one.ring.forked for one in _made)


def note_use(group: ProcessGroup) -> None:
    """Let a recording depend on which group this is, and on whether it is there."""
    tracer: Any = active.tracer
    if tracer is None or not hasattr(tracer, "asks"):
        return
    if group is GroupMember.WORLD:
        tracer.asks(default_process_group, None)
        return
    tracer.asks(is_there, group.number)
    while not hasattr(tracer, "belongs_to"):  # of a mapped function
        tracer = tracer.below
        if tracer is None:
            return
    tracer.belongs_to(group)


def break_recording() -> None:
    """End a recording's segment: joining and leaving is no part of a program."""
    if active.tracer is not None:
        active.tracer.break_graph(None, "the function joins, makes or leaves a process group",
                                  "do it before the captured function runs")


def _backend_of(name: str | None) -> Backend:
    """Return the backend for tensors on the CPU, with PyTorch's errors for names that are none."""
    if name is None:
        return Backend("mpi")
    whole = Backend(name)
    parts = dict(part.split(":", 1) for part in whole.split(",")) if ":" in whole else {"": whole}
    for one in parts.values():
        if one not in ("mpi", "gloo", "nccl"):
            raise ValueError(f"Unknown backend {one!r}: tracejit has mpi for tensors on the CPU "
                             "and nccl for those on CUDA devices")
    from tracejit import cuda

    if "nccl" in parts.values() and not cuda.is_available() and "cpu" not in parts:
        raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
    if "nccl" in parts.values() and cuda.is_available():
        nccl_library.load()
    if "gloo" in parts.values() and not _told_of_gloo[0]:
        _told_of_gloo[0] = True
        warnings.warn("backend='gloo': tracejit's processes talk by MPI, under this name",
                      stacklevel=3)  # fmt: skip
    return whole


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the other processes of the job; all must call it. Collectives work from then on.

    backend      "mpi" (default); "gloo" means MPI; "cpu:mpi,cuda:nccl"
    init_method  "env://" (default), "tcp://address:port" or "file:///path"
    timeout      of every collective; 30 minutes
    rank, world_size  if neither the variables nor the launcher say them
    store        where the processes find each other, in place of `init_method`

    Raises ValueError for arguments that contradict or miss something, and if there is a default
    group already; RuntimeError if there is no MPI or the others do not come.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group("mpi", rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
    """
    break_recording()
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError("Expected timeout argument to be of type"
                        f"datetime.timedelta, got {timeout}")
    found_backend = _backend_of(backend)
    get_debug_level()  # a recorded collective that read the variable first would change objects
    with _lock:
        joined = rendezvous.join(
            init_method, rank, world_size, store, timeout or default_pg_timeout
        )
        with joined.library.ring:
            communicator = joined.library.world.Dup()
        size = joined.library.size
        made = ProcessGroup(
            communicator, range(size), found_backend, timeout or default_pg_timeout,
            group_name or str(_count[0]), joined.store, "default_pg",
        )  # fmt: skip
        _count[0] += 1
        _made.append(made)
        GroupMember.WORLD = made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Give up a group; without one, all groups of the job. All its processes call it.

    group  a `ProcessGroup`; None or the default one: all groups

    Processes may join again by `init_process_group`. Raises AssertionError if there is no default
    group, ValueError for a group that is gone.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.destroy_process_group()
    >>> dist.is_initialized()
    False
    """
    break_recording()
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    found = GroupMember.WORLD if group is None else group
    if found is None:
        raise AssertionError("Process group cannot be None")
    if found not in _made:
        raise ValueError("Invalid process group specified or has been destroyed.")
    gone = list(_made) if found is GroupMember.WORLD else [found]
    for one in gone:
        _made.remove(one)
        _free(one)
    if found is GroupMember.WORLD:
        GroupMember.WORLD = None


def _free(group: ProcessGroup) -> None:
    """Give the communicator back, which all its processes must do; not where one has failed."""
    from tracejit.distributed import device_groups, recorded

    recorded.forget(group)
    device_groups.forget(group)
    watch = group.ring.watch
    if not group.ring.waiting() and (watch is None or watch.failed is None):
        with group.ring:
            group.communicator.Free()


def world() -> ProcessGroup:
    """Return the default group; ValueError if there is none."""
    _note_read()
    found = GroupMember.WORLD
    if found is None:
        raise ValueError(NOT_INITIALIZED)
    return found


def member(group: Any, name: str) -> ProcessGroup | None:
    """Return the group that a collective works in, the default one for None.

    Warns and returns None if this process is not in it.
    """
    if getattr(active.tracer, "differentiating", False):
        raise backward_calls(name)
    if group is None:
        return world()
    if group == GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"Running {name} on global rank {world().rank()} which does not "
                      "belong to the given group.", stacklevel=3)  # fmt: skip
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"{name}: expected group to be a ProcessGroup, got {type(group).__name__}")
    if group not in _made:
        raise ValueError("Invalid process group specified or has been destroyed.")
    return group


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some global ranks; all processes of the job must call it, in one order.

    ranks       all of them if None
    timeout     a `timedelta` for its collectives; that of the default group if None
    backend     as for `init_process_group`; that of the default group if None
    group_desc  a text that its attribute `group_desc` keeps
    sort_ranks  False: ranks in the group follow the order of `ranks`
    use_local_synchronization  True: only the members call it

    Returns `GroupMember.NON_GROUP_MEMBER` in processes outside. Raises ValueError for ranks that do
    not exist, RuntimeError for one that is there twice.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> first = dist.new_group([0], group_desc="first")
    >>> dist.get_rank(first), dist.get_world_size(first), first.group_desc
    (0, 1, 'first')
    >>> dist.destroy_process_group()
    """
    break_recording()
    base = world()
    chosen = list(base.ranks) if ranks is None else [int(r) for r in ranks]
    if sort_ranks:
        chosen.sort()
    if len(chosen) > base.size():
        raise ValueError("the new group's world size should be less or equal to "
                         "the world size set by init_process_group")
    for rank in chosen:
        if not 0 <= rank < base.size():
            raise ValueError("The new group's rank should be within "
                             "the world_size set by init_process_group")
    if len(set(chosen)) != len(chosen):
        raise RuntimeError("the new group has a rank twice")
    inside = base.rank() in chosen
    if use_local_synchronization and not inside:
        return GroupMember.NON_GROUP_MEMBER
    return _new_group(base, chosen, inside, timeout, backend, use_local_synchronization, group_desc)


def made() -> list[ProcessGroup]:
    """Return the groups that are there, those that were destroyed excepted."""
    return list(_made)


def posted() -> dict[str, int]:
    """Return how many collectives this process posted in each group, by the group's name."""
    return {name: one.count for name, one in _posted.items() if one.known}


def made_since_start() -> int:
    """Return the number of groups that were ever made."""
    return _count[0]


def start_again(made: ProcessGroup) -> None:
    """Forget all groups, without a word to other processes, for a new default one."""
    _made[:] = [made]
    _count[0] += 1
    GroupMember.WORLD = made


def adopt(parent: ProcessGroup, communicator: Any, ranks: list[int], timeout: timedelta | None,
          backend: Backend, description: str) -> ProcessGroup:  # fmt: skip
    """Return a group over a part of another one's processes, whose communicator is there."""
    name = f"{parent.group_name}/{_count[0]}"
    _count[0] += 1
    store = None if parent.store is None else PrefixStore(f"group/{name}/{ranks}", parent.store)
    made = ProcessGroup(
        communicator, ranks, backend, timeout or parent.timeout, name, store, description
    )
    _made.append(made)
    return made


def _new_group(base: ProcessGroup, ranks: list[int], inside: bool, timeout: timedelta | None,
               backend: str | None, alone: bool, description: str | None) -> Any:  # fmt: skip
    mpi_module = base.library.mpi
    # every process counts the groups, so names agree
    name = str(_count[0]) if not alone else f"{sorted(ranks)}"
    _count[0] += 1
    with base.ring:
        if alone:
            members = base.communicator.Get_group().Incl(ranks)
            communicator = base.communicator.Create_group(members)
        else:
            color = 0 if inside else mpi_module.UNDEFINED
            place = ranks.index(base.rank()) if inside else 0
            communicator = base.communicator.Split(color, place)
    if not inside:
        return GroupMember.NON_GROUP_MEMBER
    store = None if base.store is None else PrefixStore(f"group/{name}", base.store)
    made = ProcessGroup(
        communicator, ranks, base.backend if backend is None else _backend_of(backend),
        timeout or base.timeout, name, store, description or "undefined",
    )  # fmt: skip
    _made.append(made)
    return made
