"""Seconds that a collective may take unless a program says otherwise; PyTorch's
`torch.distributed.constants`.

In: nothing. Out: two timeouts. Called by packages.
"""

from datetime import timedelta

from tracejit.distributed.groups import default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout = timedelta(minutes=10)
