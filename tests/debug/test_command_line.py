"""`python -m tracejit`: each subcommand, its output and its exit status."""

import os
import subprocess
import sys

import pytest

import tracejit
from tracejit import __main__ as command_line
from tracejit import config
from tracejit.jit.runtime import cache, cache_upkeep
from tracejit.jit.runtime.packs import write_pack


@pytest.fixture
def packs(tmp_path):
    """A cache directory with the kernels of one function."""
    with config.override(cache_dir=tmp_path / "cache"):
        directory = cache.native_directory()
        write_pack(directory, ["ab"], [b"object"])
        yield directory


def test_doctor_prints_a_line_for_each_question(capsys):
    command_line.main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["tracejit", "ok", tracejit.version.tracejit + ","]
    assert any(line.startswith("kernels") and " ok " in line for line in lines)


def test_doctor_fails_where_something_is_broken(monkeypatch, capsys):
    from tracejit.debug import doctor

    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("x", "broken", "it is")])
    assert command_line.main(["doctor"]) == 1


def test_cache_lists_and_prunes(packs, capsys):
    assert command_line.main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert "1 kernels in 1 files" in listed and packs.name in listed
    assert command_line.main(["cache", "prune", "--keep", "1"]) == 0
    assert cache_upkeep.entries() != [], "a megabyte may stay"
    assert command_line.main(["cache", "prune"]) == 0
    assert cache_upkeep.entries() == [] and not packs.exists()
    assert "removed" in capsys.readouterr().out


def test_check_lists_what_is_missing(tmp_path, capsys):
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text("import torch\n\ntorch.mps.load('x')\n")
    good.write_text("import torch\ntorch.ones(2)\n")
    assert command_line.main(["check", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: 1 names of torch, 0 missing\n"
    assert command_line.main(["check", str(good), str(bad)]) == 1
    assert f"{bad}:3: torch.mps.load is not in tracejit" in capsys.readouterr().out


def test_run_in_a_process_of_its_own(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(torch.ones(2) + 1, sys.argv[1:])\n")
    done = subprocess.run([sys.executable, "-m", "tracejit", "run", str(script), "--lr", "1"],
                          capture_output=True, text=True, env={**os.environ})
    assert (done.returncode, done.stdout) == (0, "tensor([2., 2.]) ['--lr', '1']\n"), done.stderr


def test_bench_gets_the_rest_of_the_line(monkeypatch):
    seen = {}

    def run(command, cwd):
        seen["command"], seen["cwd"] = command, cwd
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(command_line.subprocess, "run", run)
    assert command_line.main(["bench", "--only", "gelu"]) == 3
    assert seen["command"][1:] == ["-m", "bench", "--only", "gelu"]
    assert (seen["cwd"] / "bench" / "__main__.py").exists()


def test_bench_outside_a_checkout_says_so(monkeypatch, tmp_path, capsys):
    installed = tmp_path / "tracejit" / "__main__.py"
    monkeypatch.setattr(command_line, "__file__", str(installed))
    assert command_line.main(["bench"]) == 2
    assert "source checkout" in capsys.readouterr().err


@pytest.mark.parametrize("line", [[], ["no-such"], ["doctor", "--no-such"]])
def test_a_wrong_line_is_refused(line, capsys):
    with pytest.raises(SystemExit) as refused:
        command_line.main(line)
    assert refused.value.code == 2
