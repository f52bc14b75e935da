"""Functions whose source cannot be read, so that their branches end the graph."""

from __future__ import annotations

import importlib.util
import linecache
import pathlib
import tempfile

from tests.errors.control_flow import data
from tests.errors.entries import breaks

TEXT = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"


def called(jit, edit, text=TEXT):
    """Capture a function of a file that is edited after it was imported."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "edited.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("edited", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        edit(path)
        linecache.clearcache()
        jit(module.f)(data())


@breaks(
    "Python needs to know if a tensor is true; tracejit cannot read the source of f: it comes "
    "from <string>, which is no file (exec, -c, a prompt)\nhint: define it with `def` in a file "
    "that does not change, or use `tracejit.where`",
    at={2},
)
def text_that_no_file_has(jit):
    names = {}
    exec(TEXT, names)
    jit(names["f"])(data())


@breaks(
    "Python needs to know if a tensor is true; tracejit cannot read the source of f: "
    "<folder>/edited.py is not there\nhint: define it with `def` in a file that does not change, "
    "or use `tracejit.where`",
    at={2},
)
def file_is_gone(jit):
    called(jit, lambda path: path.unlink())


@breaks(
    "Python needs to know if a tensor is true; tracejit cannot read the source of f: "
    "<folder>/edited.py is empty or no text file\nhint: define it with `def` in a file that does "
    "not change, or use `tracejit.where`",
    at={2},
)
def file_is_empty(jit):
    called(jit, lambda path: path.write_text(""))


@breaks(
    "Python needs to know if a tensor is true; tracejit cannot read the source of f: it does not "
    "begin at line 1 of <folder>/edited.py: the file has changed\nhint: define it with `def` in a "
    "file that does not change, or use `tracejit.where`",
    at={2},
)
def function_is_elsewhere(jit):
    called(jit, lambda path: path.write_text("\n\n" + TEXT))


@breaks(
    "Python needs to know if a tensor is true; tracejit cannot read the source of f: the code at "
    "line 1 of <folder>/edited.py is not the code that runs: the file has changed\nhint: define "
    "it with `def` in a file that does not change, or use `tracejit.where`",
    at={2},
)
def function_is_another(jit):
    called(jit, lambda path: path.write_text(TEXT.replace("x * 2", "x * 3")))


@breaks(
    "Python needs to know if a tensor is true; tracejit cannot read the source of <lambda>: 2 "
    "lambdas begin at line 1 of <folder>/edited.py, and tracejit cannot tell which it is\nhint: "
    "define it with `def` in a file that does not change, or use `tracejit.where`",
    at={1},
)
def lambdas_of_one_line(jit):
    text = "f, g = lambda x: x * 2 if x.sum() > 0 else x, lambda x: x * 3 if x.sum() > 0 else x\n"
    called(jit, lambda path: path.write_text(text.replace("*", "+")), text)
