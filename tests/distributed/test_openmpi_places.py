"""Stand-ins of ranks, started by a program that does what Open MPI's launcher does.

The real one runs in `make test-openmpi`.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tracejit.distributed import openmpi_places

pytest.importorskip("mpi4py")
LAUNCHER = """#!/bin/sh
echo "options $*"
while [ "$1" != -n ]; do shift; done
count=$2 rank=0
shift 2
while [ $rank -lt $count ]; do
    PMIX_RANK=$rank PMIX_NAMESPACE=job OTHER=1 "$@" &
    rank=$((rank + 1))
done
wait
"""


def _launcher(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "prterun"
    file.write_text(text)
    file.chmod(0o700)
    monkeypatch.setattr(openmpi_places, "launcher", lambda: str(file))


def test_ranks_get_the_variables_of_stand_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _launcher(tmp_path, LAUNCHER, monkeypatch)
    made = openmpi_places.StandIns(range(2))
    made.launch({"localhost": 2})
    found = made.variables()
    assert [found[rank]["PMIX_RANK"] for rank in range(2)] == ["0", "1"]
    assert "OTHER" not in found[0] and found[1]["PMIX_NAMESPACE"] == "job"
    begun = time.monotonic()
    for rank in range(2):
        openmpi_places.leave(found[rank])
    made.close()
    assert time.monotonic() - begun < 2
    assert not Path(found[0]["TRACEJIT_STAND_IN"]).parent.exists()


def test_a_launcher_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _launcher(tmp_path, "#!/bin/sh\necho no such luck\nexit 1\n", monkeypatch)
    made = openmpi_places.StandIns(range(2))
    made.launch({"localhost": 2})
    with pytest.raises(RuntimeError, match="no such luck"):
        made.variables()
    made.abandon()
    monkeypatch.setattr(openmpi_places, "launcher", lambda: None)
    with pytest.raises(RuntimeError, match="start them by mpiexec, or use MPICH"):
        openmpi_places.StandIns(range(2))


def test_ranks_of_a_host_stand_in_one_row() -> None:
    openmpi_places._check(["a", "a", "b"])
    with pytest.raises(RuntimeError, match="number them so"):
        openmpi_places._check(["a", "b", "a"])
