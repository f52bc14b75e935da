"""Processes in a grid of any dimensions; PyTorch's `torch.distributed.device_mesh`.

In: the ranks of a job. Out: a group for each row of the grid in each dimension. Called by programs
that combine kinds of parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.construction import tensor
from tracejit.core.eager.tensor import Tensor
from tracejit.distributed import group_ranks, groups
from tracejit.distributed.groups import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Grid of ranks, with a group of this process's neighbours in each dimension.

    device_type     "cpu"
    mesh            ranks, in nested lists or an integer tensor of any shape
    mesh_dim_names  of the dimensions
    backend_override  taken, and without effect: all groups talk by MPI

    All processes of the job must make the same meshes. `mesh["name"]` is the part of the grid in
    one dimension in which this process is. Raises ValueError for names that do not fit, TypeError
    without ranks.

    Four processes and [[0, 1], [2, 3]]: rank 3 is at [1, 1], with the rows [1, 3] and [2, 3].

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> mesh = dist.DeviceMesh("cpu", [[0]], mesh_dim_names=("data", "model"))
    >>> mesh, mesh.shape, mesh.get_coordinate()
    (DeviceMesh((data=1, model=1), 'cpu'), (1, 1), [0, 0])
    >>> mesh.get_group("data").ranks
    [0]
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None, _init_backend: bool = True,
    ) -> None:  # fmt: skip
        if mesh is None:
            raise TypeError("DeviceMesh: expected mesh to be a tensor or nested lists of ranks")
        self.device_type = device_type
        self.mesh = mesh.clone() if isinstance(mesh, Tensor) else tensor(mesh)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        names = self.mesh_dim_names
        if names is not None and (len(names) != self.mesh.dim() or len(set(names)) != len(names)):
            raise ValueError(f"mesh_dim_names must be {self.mesh.dim()} different names, got "
                             f"{names}")
        self._groups: list[ProcessGroup | None] = []
        if _init_backend:
            if not groups.is_initialized():
                groups.init_process_group()
            self._make_groups()

    def _make_groups(self) -> None:
        """Make the groups of all rows: every process calls this for all of them."""
        rank = group_ranks.get_rank()
        for dim in range(self.mesh.dim()):
            rows = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            own = None
            for row in rows:
                made = groups.new_group(row, sort_ranks=False)
                if rank in row:
                    own = made
            self._groups.append(own)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks in each dimension."""
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.mesh.dim())

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks, in all or in one dimension."""
        return int(self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim])

    def _dimension(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions. Optional "
                                   "kwarg `mesh_dim` needs to be specified when device_mesh.ndim "
                                   "> 1.")
            return 0
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim}: the mesh has "
                               f"{self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """Return the group of this process's row in a dimension, by number or name."""
        return self._groups[self._dimension(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """Return the groups of all dimensions."""
        return list(self._groups)

    def get_coordinate(self) -> list[int] | None:
        """Return the place of this process in the grid; None outside."""
        found = (self.mesh == group_ranks.get_rank()).nonzero().tolist()
        return found[0] if found else None

    def get_rank(self) -> int:
        """Return the global rank of this process."""
        return group_ranks.get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the rank of this process in its row of a dimension."""
        return group_ranks.get_rank(self.get_group(mesh_dim))

    def __getitem__(self, names: str | Sequence[str]) -> DeviceMesh:
        """Return the part of the grid in some dimensions, by name, in which this process is."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        dims = [self._dimension(name) for name in wanted]
        here = self.get_coordinate()
        if here is None:
            raise RuntimeError("this process is not in the mesh")
        index = tuple(slice(None) if d in dims else here[d] for d in range(self.ndim))
        kept = sorted(dims)
        part = self.mesh[index].permute([kept.index(d) for d in dims])
        made = DeviceMesh(
            self.device_type, part, mesh_dim_names=wanted, _init_backend=False
        )
        made._groups = [self._groups[d] for d in dims]
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (
            self.mesh.tolist(), self.mesh_dim_names
        ) == (other.mesh.tolist(), other.mesh_dim_names)  # fmt: skip

    def __hash__(self) -> int:
        return hash((str(self.mesh.tolist()), self.mesh_dim_names))

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        if names is None:
            return f"DeviceMesh({self.shape}, {self.device_type!r})"
        sizes = ", ".join(f"{name}={size}" for name, size in zip(names, self.shape))
        return f"DeviceMesh(({sizes}), {self.device_type!r})"


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """Return a mesh of all ranks of the job in this shape, row by row.

    device_type     "cpu"
    mesh_shape      number of ranks in each dimension; their product is the number of processes
    mesh_dim_names  as many names as dimensions
    backend_override  taken, and without effect: all groups talk by MPI

    Makes the default group if there is none. Raises RuntimeError if the shape does not have as many
    places as there are processes, or the names do not fit.

    Four processes and the shape (2, 2) give the rows [0, 1] and [2, 3].

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"], mesh.get_local_rank("model")
    (DeviceMesh((data=1), 'cpu'), 0)
    >>> dist.destroy_process_group()
    """
    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError("mesh_shape and mesh_dim_names should have same length!")
    if not groups.is_initialized():
        groups.init_process_group()
    count = 1
    for size in mesh_shape:
        count *= size
    if count != group_ranks.get_world_size():
        raise RuntimeError(f"Mesh should not be bigger than default world size "
                           f"{group_ranks.get_world_size()}, but found {count} ranks!")
    ranks = tensor(list(range(count))).reshape(*mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
