"""Places of processes, as variables of several launchers tell them."""

from __future__ import annotations

import pytest

from tracejit.distributed import environment
from tracejit.distributed.environment import Place

TORCHRUN = {
    "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1",
    "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500",
}  # fmt: skip
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_RANK": "3",
}  # fmt: skip
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_FD": "9", "MPI_LOCALRANKID": "1",
         "MPI_LOCALNRANKS": "2"}  # fmt: skip
SRUN = {
    "SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_NODEID": "1",
    "SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}  # fmt: skip


def test_launchers() -> None:
    read = environment.read
    assert read(TORCHRUN) == Place(3, 4, 1, 2, 1, "10.0.0.1", 29500, "torchrun", False)
    assert read(OPENMPI) == Place(3, 4, 1, 2, -1, "", 0, "openmpi", True)
    assert read(HYDRA) == Place(3, 4, 1, 2, -1, "", 0, "pmi", True)
    assert read(SRUN) == Place(3, 4, 1, 2, 1, "", 0, "slurm", False)
    assert read({**SRUN, "PMIX_RANK": "3"}) == Place(3, 4, 1, 2, 1, "", 0, "slurm", True)
    assert read({"PATH": "/bin"}) is None


def test_a_batch_script_is_no_task() -> None:
    assert environment.read({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}) is None


def test_uneven_hosts_of_slurm() -> None:
    tasks = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "4(x2),1"}
    sizes = [environment.read({**tasks, "SLURM_NODEID": str(n)}) for n in range(4)]
    assert [place and place.local_world_size for place in sizes] == [4, 4, 1, -1]
    broken = environment.read({**tasks, "SLURM_STEP_TASKS_PER_NODE": "x"})
    assert broken is not None and broken.local_world_size == -1


def test_slurm_tells_where_the_first_task_is() -> None:
    told = {**SRUN, "SLURM_STEP_NODELIST": "gpu[08-09,12],login", "SLURM_JOB_ID": "1234567"}
    place = environment.read(told)
    assert place is not None and (place.master_addr, place.master_port) == ("gpu08", 19567)
    assert environment.read({**told, "SLURM_STEP_ID": "3"}).master_port == 19570  # type: ignore
    alone = environment.read({**told, "SLURM_STEP_NODELIST": "gpu[08]"})
    assert alone is not None and alone.master_addr == "127.0.0.1"
    own = environment.read({**told, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"})
    assert own is not None and (own.master_addr, own.master_port) == ("10.0.0.1", 29500)
    for broken in ("gpu[08-", "gpu[a-b]", "gpu[1-99999999]", ""):
        place = environment.read({**told, "SLURM_STEP_NODELIST": broken})
        assert place is not None and place.master_addr == ""


def test_variables_of_two_launchers() -> None:
    """A wrapper may translate the launcher's variables; an agent below mpiexec has another."""
    both = environment.read({**HYDRA, **TORCHRUN})
    assert both == Place(3, 4, 1, 2, 1, "10.0.0.1", 29500, "pmi", True)
    other = environment.read({**HYDRA, **TORCHRUN, "WORLD_SIZE": "8"})
    assert other is not None and (other.world_size, other.by_mpi) == (8, False)
    below = environment.read({**HYDRA, **TORCHRUN, "TORCHELASTIC_RUN_ID": "a"})
    assert below is not None and (below.started_by, below.by_mpi) == ("torchrun", False)


def test_incomplete() -> None:
    assert environment.read({"RANK": "1"}) is None
    assert environment.read({"RANK": "", "WORLD_SIZE": "2"}) is None
    found = environment.read({"RANK": "1", "WORLD_SIZE": "2"})
    assert found == Place(1, 2, started_by="torchrun")


@pytest.mark.parametrize(
    "variables, text",
    [
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK is 'one'"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 and WORLD_SIZE=2 contradict"),
        ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "x"}, "MASTER_PORT is 'x'"),
    ],
)
def test_errors(variables: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        environment.read(variables)


def test_children_are_no_ranks() -> None:
    kept = environment.without_launcher({**HYDRA, **OPENMPI, "PATH": "/bin", "PMIX_MCA_a": "b"})
    assert kept == {"PATH": "/bin", "PMIX_MCA_a": "b"}
