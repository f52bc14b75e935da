"""Where the source of a function cannot be read, the break says so, and why."""

from __future__ import annotations

import importlib.util
import linecache

import pytest

import tracejit as tj
from tracejit.jit.capture.breaks import CaptureError

TEXT = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"


def told(f):
    with pytest.raises(CaptureError) as error:
        tj.script(f, fullgraph=True)(tj.ones(2))
    captured = tj.script(f)
    assert captured(tj.ones(2)).tolist() == [2.0, 2.0]
    assert captured(-tj.ones(2)).tolist() == [-2.0, -2.0]
    assert str(error.value) in map(str, captured.report().breaks)
    return str(error.value)


def made(text, name="<string>"):
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"]


def from_file(path):
    spec = importlib.util.spec_from_file_location("unread", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def test_what_was_made_of_a_text():
    text = told(made(TEXT))
    assert "the source of f cannot be read" in text
    assert "<string>" in text and "hint: define it with `def` in a file" in text


def test_a_file_that_is_gone(tmp_path):
    path = tmp_path / "gone.py"
    path.write_text(TEXT)
    f = from_file(path)
    path.unlink()
    linecache.clearcache()
    assert f"{path} is not there" in told(f)


@pytest.mark.parametrize(("edited", "cause"), [
    (TEXT.replace("x * 2", "x * 3"), "is not the code that runs"),
    ("\n\n" + TEXT, "it does not begin at line 1"),
])
def test_a_file_that_was_edited_since(tmp_path, edited, cause):
    path = tmp_path / "edited.py"
    path.write_text(TEXT)
    f = from_file(path)
    path.write_text(edited)
    linecache.clearcache()
    assert cause in told(f)


def test_a_function_that_is_called(tmp_path):
    inner = made(TEXT)
    assert "the source of f cannot be read" in told(lambda x: inner(x))


def test_where_the_source_is_known_nothing_is_said():
    def g(x):
        return x * x.sum().item().hex().count("1")

    with pytest.raises(CaptureError) as error:
        tj.script(g, fullgraph=True)(tj.ones(2))
    assert "cannot be read" not in str(error.value)


def test_trace_reads_no_source_and_blames_none():
    f = tj.trace(made(TEXT))
    f(tj.ones(2))
    assert "source" not in str(f.report().breaks)
