"""`python -m tracejit`: each subcommand, its output and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracejit
from tracejit import __main__ as command_line
from tracejit import config
from tracejit.commands import bench
from tracejit.jit.runtime import cache, cache_upkeep
from tracejit.jit.runtime.packs import write_pack

ROOT = Path(tracejit.__file__).resolve().parent.parent


@pytest.fixture
def packs(tmp_path):
    """A cache directory with the kernels of one function."""
    with config.override(cache_dir=tmp_path / "cache"):
        directory = cache.native_directory()
        write_pack(directory, ["ab"], [b"object"], ["add_one"], "__main__.train_step")
        write_pack(directory, ["cd", "ef"], [b"1", b"22"], ["exp", "exp"], "model.Net.forward")
        yield directory


def test_doctor_prints_a_line_for_each_question(capsys):
    command_line.main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["tracejit", "ok", tracejit.version.tracejit + ","]
    assert any(line.startswith("kernels") and " ok " in line for line in lines)


def test_doctor_names_mpi_and_shows_no_key(monkeypatch, capsys):
    monkeypatch.setenv("TRACEJIT_JOB_KEY", "0123456789")
    command_line.main(["doctor"])
    found = capsys.readouterr().out
    assert "0123456789" not in found and "TRACEJIT_JOB_KEY=..." in found
    assert any(line.startswith("processes") for line in found.splitlines())


def test_doctor_fails_where_something_is_broken(monkeypatch, capsys):
    from tracejit.commands.findings import Finding
    from tracejit.debug import doctor

    monkeypatch.setattr(doctor, "examine", lambda: [Finding("x", "broken", "it is", "do")])
    assert command_line.main(["doctor"]) == 1
    capsys.readouterr()
    assert command_line.main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found == {"ok": False, "findings": [
        {"subject": "x", "state": "broken", "text": "it is", "fix": "do"}]}


def test_cache_lists_functions_and_prunes(packs, capsys):
    assert command_line.main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(packs.parent)
    assert {line.split()[-1]: line.split()[2] for line in lines[1:3]} == {
        "__main__.train_step": "1", "model.Net.forward": "2"}
    assert lines[3].startswith("3 kernels of 2 functions in 2 files, 0.00 MB")
    assert command_line.main(["cache", "prune", "--keep", "1"]) == 0
    assert len(cache_upkeep.entries()) == 2, "a megabyte may stay"
    assert command_line.main(["cache", "prune"]) == 0
    assert cache_upkeep.entries() == [] and not packs.exists()
    assert "removed" in capsys.readouterr().out


def test_cache_of_one_function(packs, capsys):
    assert command_line.main(["cache", "list", "train_step", "--kernels"]) == 0
    listed = capsys.readouterr().out
    assert "add_one" in listed and "model.Net" not in listed
    assert command_line.main(["cache", "list", "--json", "Net.*"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["functions"]
    assert (row["function"], row["kernels"]) == ("model.Net.forward", ["exp", "exp"])
    assert row["nbytes"] > 100 and row["used"].endswith("Z") and row["damaged"] == 0
    assert command_line.main(["cache", "prune", "nosuch"]) == 1
    assert "no kernels of nosuch" in capsys.readouterr().err
    assert command_line.main(["cache", "prune", "model.*"]) == 0
    assert [e.function for e in cache_upkeep.entries()] == ["__main__.train_step"]


def test_files_of_archives_that_are_not_there(packs, tmp_path, capsys):
    assert command_line.main(["cache", "import", str(tmp_path / "x.zip")]) == 2
    assert capsys.readouterr().err == f"tracejit cache: {tmp_path}/x.zip: no such file\n"
    (tmp_path / "broken.zip").write_bytes(b"x")
    assert command_line.main(["cache", "import", str(tmp_path / "broken.zip")]) == 1
    assert "is no archive of a kernel cache" in capsys.readouterr().err
    assert command_line.main(["cache", "export", str(tmp_path / "no/x.zip")]) == 1
    assert capsys.readouterr().err == (
        f"tracejit cache: {tmp_path}/no/x.zip: no such file or directory\n")


def test_kernels_name_their_function(tmp_path, capsys):
    with config.override(cache_dir=tmp_path):
        @tracejit.script
        def some_step(x):
            return (x * 2.125 - 0.875).exp()

        with config.override(mode="compiled"):
            some_step(tracejit.ones(3))
        command_line.main(["cache", "list", "some_step", "--json"])
        (row,) = json.loads(capsys.readouterr().out)["functions"]
        sources = list(tmp_path.glob("kernels/*.py"))
        assert row["function"].endswith("test_kernels_name_their_function.<locals>.some_step")
        assert any("exp" in name for name in row["kernels"]) and sources
        assert command_line.main(["cache", "prune", "some_step"]) == 0
        assert [e for e in cache_upkeep.entries() if e.serves(["some_step"])] == []
        assert len(list(tmp_path.glob("kernels/*.py"))) < len(sources)


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

    monkeypatch.setattr(bench.subprocess, "run", run)
    assert command_line.main(["bench", "--only", "gelu"]) == 3
    assert seen["command"][1:] == ["-m", "bench", "--only", "gelu"]
    assert (seen["cwd"] / "bench" / "__main__.py").exists()


def test_bench_outside_a_checkout_says_so(monkeypatch, tmp_path, capsys):
    installed = tmp_path / "tracejit" / "__init__.py"
    monkeypatch.setattr(tracejit, "__file__", str(installed))
    assert command_line.main(["bench"]) == 2
    assert "source checkout" in capsys.readouterr().err


@pytest.mark.parametrize("line", [
    [], ["no-such"], ["doctor", "--no-such"], ["cache", "nosuch"], ["check"], ["run"],
    ["run", "-m"], ["cache", "export"], ["cache", "prune", "--keep", "much"],
])
def test_a_wrong_line_is_refused_in_one_line(line, capsys):
    with pytest.raises(SystemExit) as refused:
        command_line.main(line)
    assert refused.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "--help" in err


@pytest.mark.parametrize("line", [["--version"], ["--help"], ["run", "--help"]])
def test_what_only_informs(line, capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(line)
    assert ended.value.code == 0
    assert tracejit.version.tracejit in capsys.readouterr().out or "--help" in line


def test_an_unknown_workload_is_refused():
    line = [sys.executable, "-m", "bench", "--only", "gelu,nosuch", "--peers", "none"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 2
    assert "no name contains 'nosuch'; there are" in done.stderr
    assert "cold start" in done.stderr and "dispatch" in done.stderr
