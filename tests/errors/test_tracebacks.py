"""Tracebacks show the user's frames and one line of ours, wherever the error comes from."""

from __future__ import annotations

import bdb
import concurrent.futures
import importlib.util
import io
import logging
import os
import statistics
import subprocess
import sys
import threading
import traceback
import warnings
from pathlib import Path

import pytest

import tracejit
from tests.errors.mistakes import PROGRAMS, failure, plain, printed, shown
from tracejit import config
from tracejit.core.eager import tracebacks, wrong_calls

PACKAGE = str(Path(tracejit.__file__).parent)
RUNS = {"eager": plain, "captured": tracejit.script}
ALLOWED = 25


@pytest.fixture(autouse=True)
def short():
    with config.override(tracebacks="short"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def caught(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next  # this function's own
        return error
    raise AssertionError("nothing was raised")


def files(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def wrong():
    return tracejit.ones(2, 3) @ tracejit.ones(2, 3)


# -- a table of mistakes ---------------------------------------------------------------------------
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_only_frames_of_the_user(name, run, tmp_path):
    lines = printed(name, tracejit, RUNS[run], tmp_path)
    assert len(lines) <= ALLOWED
    assert not [line for line in lines if PACKAGE in line], "\n".join(lines)
    assert sum(line.startswith("tracejit: ") for line in lines) <= 2
    assert "During handling of the above exception, another exception occurred:" not in lines


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_hiding_changes_neither_the_error_nor_its_lines(name, run, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAMS[name])
    hidden = failure(path, tracejit, RUNS[run])
    with config.override(tracebacks="full"):
        full = failure(path, tracejit, RUNS[run])
    assert (type(hidden), str(hidden)) == (type(full), str(full))
    assert users_lines(hidden) == users_lines(full)
    assert not hasattr(full, "__notes__")


def users_lines(error):
    """The program's lines; of a branch and the function that it is part of the innermost."""
    found = []
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.endswith("program.py"):
            if found and found[-1][0] == frame.name:
                found.pop()
            found.append((frame.name, frame.lineno))
    return found


@pytest.mark.oracle
def test_lines_beside_pytorchs(tmp_path):
    import torch

    more = []
    for name in PROGRAMS:
        theirs = len(printed(name, torch, plain, tmp_path))
        more += [len(printed(name, tracejit, run, tmp_path)) - theirs for run in RUNS.values()]
    assert len(PROGRAMS) > 30
    assert statistics.median(more) <= 2 and max(more) <= 2


# Programs whose error says the same in other words.
OTHER_WORDS = {
    "no such device": "Expected one of cpu, cuda, meta device type",
    "missing argument": "matmul() missing 1 required positional argument: 'other'",
    "unknown keyword": "sum() got an unexpected keyword argument 'dims'",
    "unknown keyword of a method": "sum() got an unexpected keyword argument 'dims'",
    "a function in vmap": "inconsistent tensor size",
    "modified in place": "which is output 0 of AddBackward0, is at version 1",
}


@pytest.mark.oracle
@pytest.mark.parametrize("run", RUNS)
def test_texts_beside_pytorchs(run, tmp_path):
    import torch

    path = tmp_path / "program.py"
    for name in PROGRAMS:
        path.write_text(PROGRAMS[name])
        ours, theirs = failure(path, tracejit, RUNS[run]), failure(path, torch, plain)
        assert type(ours).__name__ == type(theirs).__name__
        if name in OTHER_WORDS:
            assert OTHER_WORDS[name] in str(ours)
        else:
            assert str(ours).replace("tracejit.", "torch.") == str(theirs), name


# -- the note --------------------------------------------------------------------------------------
def notes(error):
    return getattr(error, "__notes__", [])


def test_note_of_an_eager_op():
    assert notes(caught(wrong)) == ["tracejit: in matmul"]


def test_notes_of_captured_calls(tmp_path):
    def note(name):
        return printed(name, tracejit, tracejit.script, tmp_path)[-1]

    assert note("matmul of wrong shapes") == (
        "tracejit: in matmul, while capturing f (matmul_of_wrong_shapes.py:1)")
    assert note("a replayed call") == (
        "tracejit: in getitem, while replaying f (a_replayed_call.py:1)")
    assert note("an assert") == "tracejit: while capturing f (an_assert.py:1)"
    assert note("input of a wrong size") == (
        "tracejit: in Sequential > Linear, while capturing Sequential")


def test_wrong_keywords_list_the_signature():
    x = tracejit.ones(2)
    assert notes(caught(lambda: tracejit.sum(x, dims=1))) == [
        "tracejit: in sum(input, dim=None, keepdim=False, *, dtype=None)"]
    assert notes(caught(lambda: x.sum(dims=1))) == notes(caught(lambda: tracejit.sum(x, dims=1)))
    assert notes(caught(lambda: tracejit.exp(x, foo=1))) == ["tracejit: in exp(input, *, out=None)"]


REFUSED = {
    "nn.Linear(2, 3, biass=True)":
        "Linear(in_features, out_features, bias=True, device=None, dtype=None)",
    "nn.Linear()": "Linear(in_features, out_features, bias=True, device=None, dtype=None)",
    "nn.ReLU()(tracejit.ones(2), dim=1)": "ReLU.forward(input)",
    "layer.train(modee=True)": "ReLU.train(mode=True)",
    "tracejit.optim.lr_scheduler.StepLR(None, step=2)":
        "StepLR(optimizer, step_size, gamma=0.1, last_epoch=-1)",
    "nn.Parameter(data=None, grad=1)": "Parameter(data=None, requires_grad=True)",
    "tracejit.script(fullgrap=True)":
        "script(fn_or_module=None, *, dynamic=None, fullgraph=False, numerics=None, mode=None)",
    "x.backward(keep=1)":
        "Tensor.backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)",
    "tracejit.save(1, ff=2)": "save(obj, f, pickle_module=..., pickle_protocol=2, ",
}


@pytest.mark.parametrize("call", REFUSED)
def test_calls_that_python_refuses_list_the_signature(call):
    names = {"tracejit": tracejit, "nn": tracejit.nn, "layer": tracejit.nn.ReLU(),
             "x": tracejit.ones(2)}
    error = caught(eval, call, names)
    wrong_calls.explain(error)  # as where it ends the program
    assert notes(error)[0].startswith(f"tracejit: in {REFUSED[call]}")


def test_a_wrong_call_within_a_layer_lists_the_signature():
    class Net(tracejit.nn.Module):
        def forward(self, x):
            return tracejit.nn.Dropout(pp=0.5)(x)

    assert notes(caught(Net(), tracejit.ones(1))) == ["tracejit: in Dropout(p=0.5, inplace=False)"]


def test_the_users_functions_get_no_signature():
    def linear(x):
        return x

    class Linear:
        pass

    for function in (linear, Linear):
        error = caught(lambda: function(y=2))  # noqa: B023
        wrong_calls.explain(error)
        assert notes(error) == []


def test_a_program_that_ends_with_a_wrong_call():
    text = """
        import threading
        import tracejit.nn as nn

        def make():
            nn.Linear(2, 3, biass=True)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        make()
        """
    printed = run_program(text)
    assert printed.count("tracejit: in Linear(in_features, out_features, bias=True") == 2
    assert "tracejit: in" not in run_program(text, TRACEJIT_TRACEBACKS="full")


def test_users_own_error_has_no_note_where_nothing_is_captured():
    class Net(tracejit.nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    error = caught(Net(), tracejit.ones(1))
    assert (files(error), notes(error)) == ([__file__], [])


def test_doctests_see_the_error_last(tmp_path):
    path = tmp_path / "page.txt"
    path.write_text(">>> import tracejit\n"
                    ">>> tracejit.ones(2, 3) @ tracejit.ones(2, 3)\n"
                    "Traceback (most recent call last):\n    ...\n"
                    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)\n")
    assert run_python("-m", "doctest", str(path)) == ""


# -- the chain -------------------------------------------------------------------------------------
def test_exceptions_of_the_user_stay_in_the_chain():
    def handler():
        try:
            {}["k"]
        except KeyError:
            tracejit.ones(2).to("nowhere")

    error = caught(handler)
    assert type(error.__context__) is KeyError and not error.__suppress_context__
    assert "During handling" in "".join(traceback.format_exception(error))


def test_exceptions_inside_leave_the_chain(tmp_path):
    error = caught(tracejit.save, lambda x: x, tmp_path / "function.pt")
    assert (error.__context__, error.__cause__) == (None, None)


@pytest.mark.parametrize("run", RUNS)
def test_from_none_of_the_user(run):
    @RUNS[run]
    def f(x):
        try:
            return x @ tracejit.ones(5)
        except RuntimeError as error:
            f.inner = error
            raise ValueError("mine") from None

    error = caught(f, tracejit.ones(2))
    assert error.__suppress_context__ and type(error.__context__) is RuntimeError


def test_the_same_object_goes_on():
    mine = ValueError("mine")

    @tracejit.script
    def f(x):
        raise mine

    assert caught(f, tracejit.ones(1)) is mine


def test_groups_keep_their_members():
    class Net(tracejit.nn.Module):
        def forward(self, x):
            raise ExceptionGroup("both", [ValueError("a"), KeyError("b")])

    error = caught(Net(), tracejit.ones(1))
    assert [type(x) for x in error.exceptions] == [ValueError, KeyError]


def test_signals_pass_as_they_are():
    class Net(tracejit.nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    error = caught(Net(), tracejit.ones(1))
    assert type(error) is KeyboardInterrupt and any(PACKAGE in file for file in files(error))


def test_what_a_handler_sees():
    seen = {}

    def handler():
        try:
            wrong()
        except RuntimeError as error:
            seen["same"] = sys.exc_info()[1] is error
            seen["trace"] = sys.exc_info()[2] is error.__traceback__
            seen["files"] = files(error)
            raise

    error = caught(handler)
    assert seen == {"same": True, "trace": True, "files": [__file__, __file__]}
    assert files(error) == [__file__, __file__]


# -- classes, gates, modes -------------------------------------------------------------------------
def test_classes_that_override():
    text = """
        import tracejit, traceback

        class Mine(tracejit.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})

        x = tracejit.ones(2, 3).as_subclass(Mine)
        for f in (lambda: x @ x, lambda: tracejit.ones(2, 3) @ tracejit.ones(2, 3),
                  lambda: tracejit.nn.Linear(2, 3)(x), lambda: x.view(7)):
            try:
                f()
            except RuntimeError:
                traceback.print_exc()
        """
    printed = run_program(text)
    assert printed.count("RuntimeError: ") == 4
    assert PACKAGE not in printed


# -- full mode, debuggers --------------------------------------------------------------------------
def test_full_keeps_every_frame():
    with config.override(tracebacks="full"):
        error = caught(wrong)
    assert sum(PACKAGE in file for file in files(error)) > 5
    assert files(error)[-1].startswith(PACKAGE), "a post-mortem debugger begins where it failed"


def test_full_by_the_environment():
    text = "import tracejit\ntracejit.ones(2, 3) @ tracejit.ones(2, 3)\n"
    assert PACKAGE in run_program(text, TRACEJIT_TRACEBACKS="full")
    assert PACKAGE not in run_program(text)


def test_a_debugger_that_traces_sees_every_frame():
    class Debugger(bdb.Bdb):
        def user_exception(self, frame, info):
            pass

    debugger = Debugger()
    found = []
    debugger.runcall(lambda: found.append(caught(wrong)))
    assert any(PACKAGE in file for file in files(found[0]))
    assert not tracebacks.is_under_debugger(sys._getframe())


def test_post_mortem_reaches_the_frames_in_full_mode(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import tracejit\ntracejit.ones(2, 3) @ tracejit.ones(2, 3)\n")
    text = run_python("-m", "pdb", "-c", "continue", str(script), input="where\nquit\nquit\n")
    assert os.path.join(PACKAGE, "core", "eager", "dispatch.py") in text


# -- other ways to print ---------------------------------------------------------------------------
def run_python(*arguments, input=None, **variables):
    environment = {name: text for name, text in os.environ.items() if name != "TRACEJIT_TRACEBACKS"}
    environment |= {"PYTHONPATH": str(Path(PACKAGE).parent), "IPYTHONDIR": os.devnull} | variables
    run = subprocess.run([sys.executable, *arguments], env=environment, input=input, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
    return run.stdout


def run_program(text, **variables):
    lines = text.splitlines()
    indent = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
    return run_python("-c", "\n".join(x[indent:] for x in lines), **variables)


def test_logging():
    stream = io.StringIO()
    log = logging.Logger("test")
    log.addHandler(logging.StreamHandler(stream))
    try:
        wrong()
    except RuntimeError:
        log.exception("failed")
    assert PACKAGE not in stream.getvalue()
    assert stream.getvalue().splitlines()[-1] == "tracejit: in matmul"


def test_threads():
    found = []
    before, threading.excepthook = threading.excepthook, lambda x: found.append(x.exc_value)
    try:
        thread = threading.Thread(target=wrong)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pooled = pool.submit(tracejit.matmul, tracejit.ones(2, 3), tracejit.ones(2, 3))
        found.append(pooled.exception())
    for error in found:
        assert not any(PACKAGE in file for file in files(error))


def test_workers_of_a_loader():
    class Data(tracejit.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, k):
            return wrong()

    def passes():
        for _ in tracejit.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
            pass

    error = caught(passes)
    text = "\n".join(shown(error))
    assert text.count("in wrong") == 1 and "in __getitem__" in text
    assert PACKAGE not in text
    assert str(error).startswith("Caught RuntimeError in DataLoader worker process 0.\nOriginal ")


def test_pytest_shows_the_users_frames(tmp_path):
    path = tmp_path / "test_mistakes.py"
    path.write_text("import tracejit\n\ndef test_one():\n    wrong(tracejit.ones(2, 3))\n\n"
                    "@tracejit.script\ndef wrong(x):\n    return (x + 1) @ x\n")
    text = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path),
                      "-c", os.devnull, str(path))
    assert PACKAGE not in text and "core/" not in text
    assert "E       tracejit: in matmul, while capturing wrong (test_mistakes.py:6)" in text


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
def test_ipython_shows_the_users_frames():
    cells = ("import tracejit as t\na = t.ones(2, 3)\na @ a\n"
             "f = t.script(lambda x: (x + 1) @ x)\nf(a)\n")
    text = run_python("-m", "IPython", "--simple-prompt", "--colors=NoColor", "--no-banner",
                      "--quick", input=cells)
    assert text.count("RuntimeError: mat1 and mat2") == 2
    assert PACKAGE not in text
    assert "tracejit: in matmul, while capturing <lambda> (In[4]:1)" in text


def test_scripts_of_pytorch(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\n\ntorch.ones(2, 3) @ torch.ones(2, 3)\n")
    text = run_python("-m", "tracejit", "run", str(script))
    assert PACKAGE not in text and "runpy" not in text
    assert len(text.splitlines()) == 6


# -- cost of questions -----------------------------------------------------------------------------
def test_questions_for_attributes_add_no_note():
    model = tracejit.nn.Linear(2, 3)
    assert not hasattr(model, "nothing")
    error = caught(getattr, model, "nothing")
    assert (files(error), notes(error)) == ([], [])


def test_the_hook_itself_never_raises(monkeypatch):
    def fails(error, caller):
        raise OSError("in the hook")

    monkeypatch.setattr(tracebacks, "shorten", fails)
    error = caught(wrong)
    assert type(error) is RuntimeError and error.__context__ is None


def test_a_deep_recursion_through_layers_shows_the_users_frames_alone():
    class Deep(tracejit.nn.Module):
        def forward(self, n):
            if n == 0:
                raise ValueError("bottom")
            return self(n - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        with config.override(tracebacks="short"), pytest.raises(ValueError) as found:
            Deep()(700)
    finally:
        sys.setrecursionlimit(limit)
    assert len(traceback.extract_tb(found.value.__traceback__)) == 702
