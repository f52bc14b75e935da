"""Processes that work together; PyTorch's `torch.distributed`, on MPI.

In: tensors of each process. Out: what all of them have together. `init_process_group` starts MPI,
which comes with the extra `distributed`; without it the functions say so.
"""

from __future__ import annotations

import importlib
from typing import Any

from tracejit.distributed.all_to_all_exchanges import all_to_all, all_to_all_single
from tracejit.distributed.availability import (
    is_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
)
from tracejit.distributed.backends import (
    BackendConfig,
    get_default_backend_for_device,
    get_pg_count,
    is_backend_available,
    is_ucc_available,
    is_xccl_available,
    supports_complex,
)
from tracejit.distributed.buckets import BuiltinCommHookType, GradBucket
from tracejit.distributed.collectives import (
    all_reduce,
    all_reduce_coalesced,
    barrier,
    broadcast,
    reduce,
)
from tracejit.distributed.debug_level import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from tracejit.distributed.device_mesh import DeviceMesh, init_device_mesh
from tracejit.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from tracejit.distributed.exchanges import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    gather,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from tracejit.distributed.group_ranks import (
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)
from tracejit.distributed.groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    group,
    init_process_group,
    is_initialized,
    new_group,
)
from tracejit.distributed.monitored_barrier import monitored_barrier
from tracejit.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from tracejit.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from tracejit.distributed.reduce_op import ReduceOp
from tracejit.distributed.shrinking import shrink_group
from tracejit.distributed.splitting import split_group
from tracejit.distributed.stops import breakpoint, record_comm
from tracejit.distributed.store import (
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)
from tracejit.distributed.subgroups import new_subgroups, new_subgroups_by_enumeration
from tracejit.distributed.unavailable import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    Logger,
    ProcessGroupGloo,
    ReduceOptions,
    Reducer,
    ReduceScatterOptions,
    ScatterOptions,
    register_rendezvous_handler,
)
from tracejit.distributed.work import Work

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "Backend", "BackendConfig",
    "BarrierOptions", "BroadcastOptions", "BuiltinCommHookType", "DebugLevel", "DeviceMesh",
    "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
    "GatherOptions", "GradBucket", "GroupMember", "HashStore", "Logger", "P2POp", "PrefixStore",
    "ProcessGroup", "ProcessGroupGloo", "QueueEmptyError", "ReduceOp", "ReduceOptions",
    "ReduceScatterOptions", "Reducer", "ScatterOptions", "Store", "TCPStore", "Work", "all_gather",
    "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier",
    "batch_isend_irecv", "breakpoint", "broadcast", "broadcast_object_list", "default_pg_timeout",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_backend_config",
    "get_debug_level", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size",
    "group", "init_device_mesh", "init_process_group", "irecv", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "isend", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
    "record_comm", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "register_rendezvous_handler", "scatter", "scatter_object_list",
    "send", "send_object_list", "set_debug_level", "set_debug_level_from_env", "shrink_group",
    "split_group", "supports_complex",
]  # fmt: skip

# PyTorch's package has these; here whoever asks for one loads it.
_MODULES = ("algorithms", "constants", "distributed_c10d", "rpc", "utils")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tracejit.distributed.{name}")
    raise AttributeError(f"module 'tracejit.distributed' has no attribute {name!r}")
