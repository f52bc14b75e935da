"""Checkpoints: read by other numbers of processes, whole after a kill, never code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tracejit
import tracejit.distributed as dist
from tests.distributed.ranks import Ranks
from tests.distributed.test_data_parallel import _network
from tracejit.distributed import checkpoint

ROOT = Path(__file__).resolve().parents[2]


def _state(factor: float = 1.0, rank: int = 0) -> dict[str, Any]:
    model = _network()
    with tracejit.no_grad():
        for p in model.parameters():
            p.mul_(factor)
    optimizer = tracejit.optim.Adam(model.parameters(), lr=0.01 * factor)
    model(tracejit.ones(1, 6)).sum().backward()
    optimizer.step()
    return {
        "model": model, "optimizer": optimizer, "step": int(7 * factor), "name": f"run{factor}",
        f"own.{rank}": tracejit.full((3,), float(rank)), "list": [1, tracejit.ones(2) * factor],
    }  # fmt: skip


def _saves(folder: str) -> list[str]:
    checkpoint.save(_state(2.0, dist.get_rank()), checkpoint_id=folder)
    return sorted(os.listdir(folder))


def _loads(folder: str, rank: int = 0) -> list[Any]:
    state = _state(1.0, rank)
    checkpoint.load(state, checkpoint_id=folder)
    weights = state["model"].state_dict()
    return [
        weights["0.weight"].tolist(), state["optimizer"].state_dict()["param_groups"][0]["lr"],
        state["step"], state["name"], state["list"][0], state["list"][1].tolist(),
        state[f"own.{rank}"].tolist(),
    ]  # fmt: skip


def _expected(rank: int) -> list[Any]:
    state = _state(2.0, rank)
    return [
        state["model"].state_dict()["0.weight"].tolist(), 0.02, 14, "run2.0", 1, [2.0, 2.0],
        [float(rank)] * 3,
    ]  # fmt: skip


def test_another_number_of_processes_reads_it(two: Ranks, four: Ranks, tmp_path: Path) -> None:
    files = two(_saves, str(tmp_path))
    assert files[0] == files[1] and len(files[0]) == 3  # one a rank, and the index
    assert _loads(str(tmp_path), 1) == _expected(1)  # one process, without a group
    assert four(_loads, str(tmp_path), 0) == [_expected(0)] * 4
    assert four(_saves, str(tmp_path))[0][0] == "index.json"
    assert len(os.listdir(tmp_path)) == 5  # those of before are gone
    assert two(_loads, str(tmp_path), 3) == [_expected(3)] * 2


def _fails(folder: str) -> str:
    state = _state(3.0, dist.get_rank())
    if dist.get_rank() == 1:
        state["own.1"] = object()  # the safe format refuses it
    try:
        checkpoint.save(state, checkpoint_id=folder)
    except checkpoint.CheckpointException as error:
        return str(error)
    return ""


def test_an_error_of_one_is_an_error_of_all_and_the_old_state_stays(
    two: Ranks, tmp_path: Path
) -> None:
    two(_saves, str(tmp_path))
    for text in two(_fails, str(tmp_path)):
        assert "rank 1:" in text
    assert _loads(str(tmp_path), 1) == _expected(1)


def test_wrong_states_and_files(tmp_path: Path) -> None:
    checkpoint.save({"a": tracejit.ones(2)}, checkpoint_id=tmp_path)
    for state, text in (
        ({"b": tracejit.ones(2)}, "Missing key in checkpoint state_dict: b."),
        ({"a": tracejit.ones(3)}, "Size mismatch"),
    ):
        with pytest.raises(checkpoint.CheckpointException, match=text):
            checkpoint.load(state, checkpoint_id=tmp_path)
    with pytest.raises(checkpoint.CheckpointException, match="no checkpoint in"):
        checkpoint.load({}, checkpoint_id=tmp_path / "nowhere")
    index = json.loads((tmp_path / "index.json").read_text())
    index["keys"]["a"]["file"] = "../elsewhere.safetensors"
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(checkpoint.CheckpointException, match="not in the checkpoint's folder"):
        checkpoint.load({"a": tracejit.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(RuntimeError, match="overwrite is False"):
        writer = checkpoint.FileSystemWriter(tmp_path, overwrite=False)
        checkpoint.save({"a": tracejit.ones(2)}, storage_writer=writer)


def test_what_killed_processes_left_goes_with_the_next_save(tmp_path: Path) -> None:
    left = ("index.json.0123", "rank5-0123.safetensors", "rank5-0123.safetensors.part")
    for name in (*left, "mine"):
        (tmp_path / name).touch()
    checkpoint.save({"a": tracejit.ones(2)}, checkpoint_id=tmp_path)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names[:2] == ["index.json", "mine"] and len(names) == 3


def test_empty_dicts_get_what_was_saved(tmp_path: Path) -> None:
    """An optimizer without steps has no state yet: keys are those of the checkpoint."""
    saved = {"optimizer": _state(2.0)["optimizer"], "more": {"a.b": {"c%": 3}, "0": [1, 2]}}
    checkpoint.save(saved, checkpoint_id=tmp_path)
    model = _network()
    fresh: dict[str, Any] = {
        "optimizer": tracejit.optim.Adam(model.parameters(), lr=1.0), "more": {}
    }  # fmt: skip
    checkpoint.load(fresh, checkpoint_id=tmp_path)
    assert fresh["more"] == {"a.b": {"c%": 3}, 0: {0: 1, 1: 2}}  # lists are not told apart
    found, expected = fresh["optimizer"].state_dict(), saved["optimizer"].state_dict()
    assert found["param_groups"][0]["lr"] == 0.02
    assert sorted(found["state"]) == sorted(expected["state"]) == list(range(6))
    for k, state in expected["state"].items():
        assert all((found["state"][k][name] == value).all() for name, value in state.items())


WRITER = """
import sys, tracejit
from tracejit.distributed import checkpoint
k = 0
while True:
    checkpoint.save({"a": tracejit.full((100_000,), float(k)), "k": k}, checkpoint_id=sys.argv[1])
    print(k, flush=True)
    k += 1
"""


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.full)])
def test_kills_in_the_middle_of_a_save(tmp_path: Path, kills: int) -> None:
    for round_ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert process.stdout is not None
        for _ in range(3):
            last = int(process.stdout.readline())
        time.sleep(0.0007 * (round_ * 37 % 20))
        process.send_signal(signal.SIGKILL)
        last = max([last, *map(int, process.stdout.read().split())])
        process.wait()
        state: dict[str, Any] = {"a": tracejit.zeros(100_000), "k": -1}
        checkpoint.load(state, checkpoint_id=tmp_path)
        assert state["k"] in (last, last + 1)
        assert (state["a"] == state["k"]).all()
