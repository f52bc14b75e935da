"""PyTorch's `torch.distributed.distributed_c10d`, from where programs import names of the package.

In: nothing. Out: the names of `tracejit.distributed`, and those of the default group.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed import *  # noqa: F403
from tracejit.distributed import Backend, ProcessGroup, default_pg_timeout, groups
from tracejit.distributed.constants import default_pg_nccl_timeout
from tracejit.distributed.exchanges import all_gather_into_tensor, reduce_scatter_tensor
from tracejit.distributed.store import Store

__all__ = ["Backend", "ProcessGroup", "default_pg_nccl_timeout", "default_pg_timeout"]

_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor


def _get_default_group() -> ProcessGroup:
    return groups.world()


def _get_default_store() -> Store | None:
    return groups.world().store


def _rank_not_in_group(group: Any) -> bool:
    if group is None:
        return False
    return group == groups.GroupMember.NON_GROUP_MEMBER


def _get_process_group_name(pg: ProcessGroup) -> str:
    return str(pg.group_name)


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """Return the group of a name; ValueError if there is none."""
    for group in groups.made():
        if group.group_name == group_name:
            return group
    raise ValueError(f"Could not resolve the process group {group_name}")


def _get_pg_default_device(group: Any = None) -> Any:
    from tracejit.core.memory.devices import device

    return device("cpu")


def _set_pg_timeout(timeout: Any, group: Any = None) -> None:
    (groups.world() if group is None else group).set_timeout(timeout)
