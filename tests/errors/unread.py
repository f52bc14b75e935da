"""Functions whose source cannot be read, so that their branches end the graph."""

from __future__ import annotations

import importlib.util
import linecache
import pathlib
import tempfile

from tests.errors.control_flow import data
from tests.errors.entries import breaks

TEXT = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"


def called(jit, edit):
    """Capture a function of a file that is edited after it was imported."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "edited.py"
        path.write_text(TEXT)
        spec = importlib.util.spec_from_file_location("edited", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        edit(path)
        linecache.clearcache()
        jit(module.f)(data())


@breaks(
    "its truth decided a branch; the source of f cannot be read: it is from <string>, a "
    "text that no file has (exec, -c, a prompt)\nhint: define it with `def` in a file "
    "that stays as it is, or decide with tensors (`where`)",
    at={2},
)
def text_that_no_file_has(jit):
    names = {}
    exec(TEXT, names)
    jit(names["f"])(data())


@breaks(
    "its truth decided a branch; the source of f cannot be read: <folder>/edited.py is "
    "not there\nhint: define it with `def` in a file that stays as it is, or decide with "
    "tensors (`where`)",
    at={2},
)
def file_is_gone(jit):
    called(jit, lambda path: path.unlink())


@breaks(
    "its truth decided a branch; the source of f cannot be read: <folder>/edited.py is "
    "empty or no text\nhint: define it with `def` in a file that stays as it is, or "
    "decide with tensors (`where`)",
    at={2},
)
def file_is_empty(jit):
    called(jit, lambda path: path.write_text(""))


@breaks(
    "its truth decided a branch; the source of f cannot be read: no such function begins "
    "at line 1 of <folder>/edited.py, which was edited since\nhint: define it with `def` "
    "in a file that stays as it is, or decide with tensors (`where`)",
    at={2},
)
def function_is_elsewhere(jit):
    called(jit, lambda path: path.write_text("\n\n" + TEXT))


@breaks(
    "its truth decided a branch; the source of f cannot be read: what is at line 1 of "
    "<folder>/edited.py does not compile to the code that runs: it was edited "
    "since\nhint: define it with `def` in a file that stays as it is, or decide with "
    "tensors (`where`)",
    at={2},
)
def function_is_another(jit):
    called(jit, lambda path: path.write_text(TEXT.replace("x * 2", "x * 3")))
