"""Debuggers that a captured function calls: they stop in the user's frame, in each call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tracejit as tj

ROOT = Path(__file__).resolve().parents[2]


def test_the_hook_of_breakpoint_sees_the_users_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def hook() -> None:
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_locals["y"] is not None))

    monkeypatch.setattr(sys, "breakpointhook", hook)

    @tj.script
    def doubled(x):
        y = x * 2
        breakpoint()
        return y + 1

    for _ in range(3):
        assert doubled(tj.ones(2)).tolist() == [3.0, 3.0]
    assert seen == [("doubled", True)] * 3
    assert any("breakpoint" in one.reason for one in doubled.report().breaks)


@pytest.mark.parametrize("call", ["breakpoint()", "pdb.set_trace()"])
def test_pdb_reads_and_steps(call: str, tmp_path: Path) -> None:
    script = tmp_path / "stops.py"
    script.write_text(
        "import pdb\nimport tracejit as tj\n\n@tj.script\ndef doubled(x):\n    y = x * 2\n"
        f"    {call}\n    z = y + 1\n    return z\n\n"
        "for k in range(3):\n    print('gives', doubled(tj.ones(2) * k).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], input="p y.tolist()\nn\np z.tolist()\nc\n" * 3, text=True,
        capture_output=True, timeout=60, cwd=ROOT, check=True,
    )  # fmt: skip
    for k in range(3):
        assert f"(Pdb) {[2.0 * k] * 2}" in done.stdout
        assert f"(Pdb) {[2.0 * k + 1] * 2}" in done.stdout
        assert f"gives {[2.0 * k + 1] * 2}" in done.stdout
