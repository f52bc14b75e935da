"""Devices of several processes in rows; PyTorch's `torch.distributed.device_mesh`, as it is named.

In: nothing. Out: a class for annotations; making one raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tracejit.distributed import refuse


class DeviceMesh:
    """Devices of several processes in rows; for annotations only: none are made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("DeviceMesh")


def init_device_mesh(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: there is one process."""
    refuse("init_device_mesh")
