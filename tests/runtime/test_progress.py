"""A compile that takes long shows a line on a terminal, which leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracejit import config
from tracejit.jit.runtime import progress

pty = pytest.importorskip("pty")
pytest.importorskip("rich")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''
import os, sys, threading, time
import tracejit
from tracejit.jit.lowering import native
from tracejit.jit.runtime import progress

whole, progress.DELAY = native._object, {delay}

def slowly(*texts):
    time.sleep({seconds})
    return whole(*texts)

native._object = slowly

@tracejit.script
def layer(x):
    return (x @ x).tanh().sum()

@tracejit.script
def broken(x):
    print("before", (x.exp() * 2).sum().item())
    time.sleep({seconds})
    os.write(1, b"after\\n")
    return x.cos() + 3

{call}
print("rich" in sys.modules, threading.active_count(), progress._going)
'''
CALL = "print(layer(tracejit.ones(3, 3)).shape)"
IN_THREAD = f"""
thread = threading.Thread(target=lambda: {CALL})
thread.start(); thread.join()
"""
DONE = "tracejit.Size([])\nTrue 1 []\n"


def on_terminal(tmp_path, call=CALL, delay=0.4, seconds=1.2, **variables):
    """Run the program with a terminal as its output; return all that it wrote there."""
    (tmp_path / "program.py").write_text(
        PROGRAM.format(call=call, delay=delay, seconds=seconds))
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "TRACEJIT_MODE": "compiled",
               "TRACEJIT_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "100", **variables}
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, env=environ,
                               stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux, once the other end is closed
            part = b""
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(60) == 0, written
    return written.decode()


def screen(text):
    """Return what a terminal shows in the end, as far as rich's line needs one."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[^\x1b]", text):
        number = re.sub(r"\D", "", part) or "1"
        if part == "\n":
            row += 1
            lines += [""] * (row - len(lines) + 1)
        elif part == "\r":
            column = 0
        elif part.startswith("\x1b"):
            if part.endswith("A"):
                row = max(0, row - int(number))
            elif part == "\x1b[2K":
                lines[row] = ""
            elif part[-1] not in "lhm":
                raise AssertionError(f"unknown sequence {part!r}")
        else:
            lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + 1:]
            column += 1
    return "\n".join(lines)


@pytest.mark.parametrize("call", [CALL, IN_THREAD], ids=["main thread", "another thread"])
@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.full), "2"])
def test_a_long_compile_shows_its_stage_and_kernels(tmp_path, call, threads):
    written = on_terminal(tmp_path, call, TRACEJIT_NUM_THREADS=threads)
    shown = re.findall(r"tracejit compiles layer: (.*?), [\d.]+ s", written)
    assert any(re.fullmatch(r"(lowering, )?kernels \d of [1-9] done, [1-9] written", text)
               for text in shown), written
    assert screen(written) == DONE
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1, "the cursor is back"


def test_what_the_function_prints_is_not_disturbed(tmp_path):
    call = CALL.replace("layer(tracejit.ones(3, 3))", "broken(tracejit.ones(4))")
    written = on_terminal(tmp_path, call)
    assert "tracejit compiles broken: " in written
    assert re.fullmatch(r"before 21\.7\d*\nafter\ntracejit.Size\(\[4\]\)\nTrue 1 \[\]\n",
                        screen(written))
    between = written[written.index("before"):written.index("after")]
    assert "\x1b" not in between, "no line while the user's code sleeps"


def test_a_short_compile_costs_nothing(tmp_path):
    assert progress.DELAY == 2.0
    written = on_terminal(tmp_path, delay=60, seconds=0)  # as if it were fast on any machine
    assert written.replace("\r", "") == DONE.replace("True", "False")


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TRACEJIT_PROGRESS": "0"}])
def test_nothing_is_shown_where_it_is_not_wanted(tmp_path, variables):
    written = on_terminal(tmp_path, **variables)
    assert written.replace("\r", "") == DONE.replace("True", "False")


def test_nothing_is_shown_without_rich(tmp_path):
    call = f"sys.modules['rich'] = None\n{CALL}"
    assert on_terminal(tmp_path, call).replace("\r", "") == DONE


def test_nothing_is_shown_without_a_terminal(monkeypatch):
    with progress.compiling("f", "recording"), config.override(progress=True):
        assert progress._now.compile is None and progress._going == []
    monkeypatch.setattr(sys, "stderr", None)
    with progress.compiling("f", "recording"):
        assert progress._going == []


def test_the_screen_of_the_test_keeps_what_is_not_erased():
    assert screen("a\r\nline\r\n\x1b[?25h\r\x1b[1A\x1b[2Kb\r\n") == "a\nb\n"
    assert screen("line\r\ndone\r\n") == "line\ndone\n"
