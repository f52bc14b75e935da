"""PyTorch's `torch.distributed.distributed_c10d`, from where programs import names of the package.

In: nothing. Out: the names of `tracejit.distributed`, and those of the default group.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed import *  # noqa: F403
from tracejit.distributed import groups
from tracejit.distributed.groups import Backend, ProcessGroup, default_pg_timeout
from tracejit.distributed.store import Store

__all__ = ["Backend", "ProcessGroup", "default_pg_timeout"]


def _get_default_group() -> ProcessGroup:
    return groups.world()


def _get_default_store() -> Store | None:
    return groups.world().store


def _rank_not_in_group(group: Any) -> bool:
    return group == groups.GroupMember.NON_GROUP_MEMBER
