"""Questions about backends, the libraries by which processes talk.

In: names of backends and devices. Out: what there is. Called by programs before they join a group.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.memory.devices import device as as_device
from tracejit.distributed import groups, mpi
from tracejit.distributed.availability import is_nccl_available
from tracejit.distributed.groups import Backend
from tracejit.distributed.reduce_op import ReduceOp

# PyTorch's order, in which configurations are printed.
_DEVICES = {"mpi": ("cpu", "cuda"), "gloo": ("cpu", "cuda"), "nccl": ("cuda",)}


class BackendConfig:
    """The backend of each kind of device.

    backend  a `Backend`: one name for all kinds of devices, or pairs such as "cpu:gloo,cuda:nccl"

    Raises ValueError for what is no pair, and for a kind of device that is there twice.

    >>> BackendConfig(Backend("cpu:gloo,cuda:nccl"))
    cpu:gloo,cuda:nccl
    """

    def __init__(self, backend: Backend) -> None:
        name = str(backend).lower()
        if ":" in name:
            pairs = [pair.split(":") for pair in name.split(",")]
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError(f"Invalid device:backend pairing in {name}")
            if len({pair[0] for pair in pairs}) != len(pairs):
                raise ValueError(f"Duplicate device type in backend string: {name}")
            self.device_backend_map = {kind: Backend(one) for kind, one in pairs}
        else:
            if name == Backend.UNDEFINED:
                name = Backend.MPI
            self.device_backend_map = dict.fromkeys(_DEVICES.get(name, ("cpu", "cuda")),
                                                    Backend(name))  # fmt: skip

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Return the backends by kind of device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{kind}:{name}" for kind, name in self.device_backend_map.items())


def is_backend_available(backend: str) -> bool:
    """Return True if processes can talk by this backend, or by all of "cpu:mpi,cuda:nccl".

    >>> is_backend_available("ucc")
    False
    """
    known = {"mpi": mpi.is_installed, "gloo": mpi.is_installed, "nccl": is_nccl_available}
    names = BackendConfig(Backend(backend)).device_backend_map.values()
    return all(name in known and known[name]() for name in map(str, names))


def is_ucc_available() -> bool:
    """Return False: there is no UCC.

    >>> is_ucc_available()
    False
    """
    return False


def is_xccl_available() -> bool:
    """Return False: there is no XCCL.

    >>> is_xccl_available()
    False
    """
    return False


def get_default_backend_for_device(device: Any) -> str:
    """Return the name of the backend that PyTorch gives tensors of a device; "gloo" means MPI.

    Raises ValueError for a kind of device that has none.

    >>> get_default_backend_for_device("cpu")
    'gloo'
    """
    found = Backend.default_device_backend_map.get(as_device(device).type)
    if found is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Return True if the operation combines complex numbers, as PyTorch says it.

    reduceOp  a `ReduceOp`

    >>> supports_complex(ReduceOp.SUM), supports_complex(ReduceOp.MAX)
    (True, False)
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


def get_pg_count() -> int:
    """Return the number of groups that this process ever made, the default ones among them.

    >>> import tracejit.distributed as dist
    >>> before = dist.get_pg_count()
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_pg_count() - before
    1
    >>> dist.destroy_process_group()
    """
    return groups.made_since_start()
