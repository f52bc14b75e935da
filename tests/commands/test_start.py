"""Commands in processes of their own: they start where little works, and fail in one line."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def command(*words, cwd=None, path="", **variables):
    """Run `python -m tracejit`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [path, str(ROOT)]))}
    environment |= {k: v for k, v in variables.items() if v is not None}
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
    return subprocess.run([sys.executable, "-m", "tracejit", *words], env=environment,
                          cwd=cwd or ROOT, capture_output=True, text=True, timeout=240)


@pytest.fixture
def without(tmp_path):
    """A folder for PYTHONPATH with packages that cannot be imported."""

    def make(*names, text="raise ImportError('it is damaged')"):
        folder = tmp_path / "broken"
        for name in names:
            package = folder / name
            package.mkdir(parents=True)
            (package / "__init__.py").write_text(text)
        return str(folder)

    return make


def findings(done):
    assert "Traceback" not in done.stderr, done.stderr
    return {row["subject"]: row for row in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize("name", [
    "numpy", "numba", *(pytest.param(name, marks=pytest.mark.full)
                        for name in ("llvmlite", "ml_dtypes", "scipy"))])
def test_the_doctor_starts_without_a_package(without, name):
    done = command("doctor", "--json", path=without(name))
    found = findings(done)
    assert done.returncode == 1 and found["packages"]["state"] == "broken"
    assert f"{name} " in found["packages"]["text"] and "it is damaged" in found["packages"]["text"]
    assert name in found["packages"]["fix"]


@pytest.mark.parametrize("text", ["raise ValueError('x\\ny')", "1 +"])
def test_the_doctor_starts_whatever_an_import_raises(without, text):
    done = command("doctor", path=without("numpy", text=text))
    assert "packages" in done.stdout and "numpy" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_doctor_starts_if_cupy_is_damaged(without):
    done = command("doctor", "--json", path=without("cupy", "numba_cuda"))
    found = findings(done)
    assert found["cuda"]["state"] == "broken" and "it is damaged" in found["cuda"]["text"]
    assert found["kernels"]["state"] == "ok"


def test_the_doctor_starts_without_a_home_and_with_a_damaged_cache(tmp_path):
    folder = tmp_path / "cache"
    (folder / "native-0123456789abcdef").mkdir(parents=True)
    (folder / "native-0123456789abcdef" / f"{'0' * 32}.pack").write_bytes(b"\0")
    done = command("doctor", "--json", HOME=None, XDG_CACHE_HOME=None,
                   TRACEJIT_CACHE_DIR=str(folder))
    found = findings(done)
    assert found["cache"]["state"] == "broken" and "1 files damaged" in found["cache"]["text"]
    assert "HOME: not set" in found["environment"]["text"] and found["kernels"]["state"] == "ok"
    folder.chmod(0)
    done = command("doctor", "--json", HOME="/dev/null/nobody", TRACEJIT_CACHE_DIR="/dev/null/x")
    assert findings(done)["cache"]["state"] == "broken"


def test_the_doctor_names_a_bad_flag():
    done = command("doctor", "--json", TRACEJIT_MODE="slow")
    found = findings(done)
    assert "TRACEJIT_MODE: expected one of eager" in found["tracejit"]["text"]
    assert done.returncode == 1 and "TRACEJIT_MODE=slow" in found["environment"]["text"]


def test_other_commands_name_the_package(without):
    done = command("cache", path=without("numpy"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("tracejit cannot be imported: ImportError: it is damaged; "
                           "`python -m tracejit doctor` says more\n")


def test_other_modules_keep_their_tracebacks(without, tmp_path):
    package = tmp_path / "user"
    package.mkdir()
    (package / "__init__.py").write_text("import tracejit")
    (package / "__main__.py").write_text("")
    path = os.pathsep.join([without("numpy"), str(tmp_path), str(ROOT)])
    done = subprocess.run([sys.executable, "-m", "user", "doctor"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path}, timeout=60)
    assert "Traceback" in done.stderr and "it is damaged" in done.stderr and done.stdout == ""


# -- run -----------------------------------------------------------------------------------------


def script(tmp_path, text, name="script.py"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    return str(path)


@pytest.mark.parametrize(("text", "status", "line"), [
    (None, 2, "no such file or directory"),
    (b"\x7fELF\0\0", 1, "source code"),
    ("import torch\n1 +\n", 1, "script.py:2: invalid syntax"),
    (b"x = '\xff'", 1, "script.py"),
])
def test_what_cannot_be_run(tmp_path, text, status, line):
    path = str(tmp_path / "script.py") if text is None else script(tmp_path, text)
    done = command("run", path)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert line in done.stderr and done.stderr.count("\n") == 1
    assert done.stderr.startswith("tracejit run: ")


def test_a_module_that_is_not_there(tmp_path):
    done = command("run", "-m", "nosuch.module", "--lr", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "tracejit run: no module named nosuch.module\n")


def test_the_module_of_a_package(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    script(package, "import sys, torch\nprint(torch.__name__, sys.argv[1:])", "train.py")
    done = command("run", "-m", "package.train", "--lr", "-m", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "torch ['--lr', '-m']\n"), done.stderr


def test_an_error_of_the_program_shows_its_frames_alone(tmp_path):
    path = script(tmp_path, """
        import torch
        def f():
            raise KeyError("mine")
        f()
        """)
    done = command("run", path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert "runpy" not in done.stderr and "tracejit" not in done.stderr
    assert done.stderr.count("  File ") == 2 and done.stderr.endswith("KeyError: 'mine'\n")


@pytest.mark.parametrize(("text", "status", "error"), [
    ("raise SystemExit(7)", 7, ""), ("raise SystemExit('bye')", 1, "bye\n"),
    ("import sys; sys.exit()", 0, ""),
])
def test_the_status_of_the_program_is_ours(tmp_path, text, status, error):
    done = command("run", script(tmp_path, text))
    assert (done.returncode, done.stderr) == (status, error)


def _hears_ctrl_c():
    """A shell's job in the background ignores the signal, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_is_a_line(tmp_path):
    path = script(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "tracejit", "run", path], stdout=subprocess.PIPE, cwd=ROOT,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=_hears_ctrl_c,
    )  # fmt: skip
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (130, "tracejit run: interrupted\n")


# -- pipes ---------------------------------------------------------------------------------------


def test_a_closed_pipe_ends_quietly(tmp_path):
    text = "import torch\n" + "\n".join(f"torch.{'nosuch' * 20}{k}" for k in range(3000))
    path = script(tmp_path, text)
    running = subprocess.Popen(
        [sys.executable, "-m", "tracejit", "check", path], stdout=subprocess.PIPE, cwd=ROOT,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert running.stdout.readline().startswith(path)
    running.stdout.close()
    assert running.stderr.read() == "" and running.wait(60) == 141


def test_a_pipe_that_is_closed_from_the_start(tmp_path):
    """The text is short: it is refused when it is flushed, at the end."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tracejit", "cache"], stdout=subprocess.PIPE, cwd=ROOT,
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    running.stdout.close()
    time.sleep(0.01)
    assert running.stderr.read() == "" and running.wait(60) == 141


def test_a_bug_of_ours_is_a_line(tmp_path, monkeypatch, capsys):
    from tracejit.commands import failures

    def broken():
        raise KeyError("x")

    assert failures.status_of("tracejit x", broken) == 1
    assert capsys.readouterr().err == ("tracejit x: KeyError: 'x' (`python -X dev -m tracejit` "
                                       "shows the traceback)\n")
