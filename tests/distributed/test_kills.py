"""`kill -9` of a rank at random moments: named errors, whole checkpoints, the same losses."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import tracejit
from tests.distributed.kills import AFTER, Killed
from tests.distributed.launchers import MPIEXEC
from tracejit.distributed import checkpoint

pytest.importorskip("mpi4py")
PHASES = ("forward", "backward", "collective", "save")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[int, set[str]]]:
    """Losses by number of ranks, of as many steps as any test here makes."""
    return {}


def _losses(size: int, known: dict[int, dict[int, set[str]]], folder: Path) -> dict[int, set[str]]:
    if size not in known:
        folder.mkdir()
        known[size] = Killed(folder, size, [], steps=63).losses()
    return known[size]


def _of_one_process(steps: int) -> list[float]:
    """Return the losses of one process on whole batches."""
    tracejit.manual_seed(0)
    layers = [tracejit.nn.Linear(256, 256) for _ in range(3)]
    model = tracejit.nn.Sequential(layers[0], tracejit.nn.Tanh(), *layers[1:])
    optimizer = tracejit.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        tracejit.manual_seed(1000 + step)
        x = tracejit.randn(64, 256)
        optimizer.zero_grad()
        loss = (model(x) - x.flip(1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_restart(tmp_path: Path) -> None:
    """A kill in the middle of a save: the job goes on as one process does."""
    job = Killed(tmp_path, 2, ["save"])
    job.check()
    found = [float.fromhex(loss) for _, (loss,) in sorted(job.losses().items())]
    assert found == pytest.approx(_of_one_process(job.steps), rel=1e-6)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("phase", PHASES)
def test_twenty_kills(
    phase: str, size: int, tmp_path: Path, undisturbed: dict[int, dict[int, set[str]]]
) -> None:
    expected = _losses(size, undisturbed, tmp_path / "undisturbed")
    (tmp_path / "job").mkdir()
    job = Killed(tmp_path / "job", size, [phase] * 20, seed=int(os.environ.get("KILLS_SEED", "0")))
    job.check()
    found = job.losses()
    assert sorted(found) == list(range(job.steps))
    assert found == {step: expected[step] for step in found}
    restarts = job.restarts()
    print(f"\n{phase}, {size} ranks: from the kill to the end of the next step {min(restarts):.1f} "
          f"to {max(restarts):.1f} s, 20 kills in {job.seconds:.0f} s")  # fmt: skip
    assert min(restarts) < 2.5 * size  # other work may be on this machine


@pytest.mark.full
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("way", ["mpiexec", "spawn"])
def test_kills_without_restarts(way: str, phase: str, tmp_path: Path) -> None:
    """The others end, the rank is named, and what was saved before can be read."""
    if way == "mpiexec" and not MPIEXEC[0].exists():
        pytest.skip("no mpiexec beside Python")
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        job = Killed(folder, 2, [phase], seed, way=way)
        victim = job.victim(0)
        pid = job.read(f"pids.0.{victim}").split()[0]
        error = job.read(f"error.0.{1 - victim}")
        named = rf"cannot end: rank {victim} died \(pid {pid}\) (in|outside) \w"
        assert not error or re.search(named, error), error
        # MPICH's launcher has the process's number alone
        text = job.done.stdout + job.done.stderr + error
        known = rf"process {victim} terminated|rank {victim}|PID {pid}"
        assert job.done.returncode != 0 and re.search(known, text), text
        assert job.seconds < 30
        job.check_what_is_left()
        state = {"step": 0}
        checkpoint.load(state, checkpoint_id=folder / "saved")
        assert AFTER <= state["step"] <= AFTER + 1
