"""Functions whose source cannot be read, so that their branches end the graph."""

from __future__ import annotations

import importlib.util
import linecache
import pathlib
import tempfile

from tests.errors.control_flow import data
from tests.errors.entries import breaks
from tracejit.jit.capture.hints import DEFINED

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


def unread(cause, name="f", line=2):
    """The program breaks, since the source of a function cannot be read for this cause."""
    return breaks(f"the source of {name} cannot be read: {cause}; Python needs to know if a tensor "
                  f"is true\nhint: {DEFINED}", at={line})


@unread("it comes from <string>, which is no file (exec, -c, a prompt)")
def text_that_no_file_has(jit):
    names = {}
    exec(TEXT, names)
    jit(names["f"])(data())


@unread("<folder>/edited.py is not there")
def file_is_gone(jit):
    called(jit, lambda path: path.unlink())


@unread("<folder>/edited.py is empty or no text file")
def file_is_empty(jit):
    called(jit, lambda path: path.write_text(""))


@unread("it does not begin at line 1 of <folder>/edited.py: the file has changed")
def function_is_elsewhere(jit):
    called(jit, lambda path: path.write_text("\n\n" + TEXT))


@unread("the code at line 1 of <folder>/edited.py is not the code that runs: the file has changed")
def function_is_another(jit):
    called(jit, lambda path: path.write_text(TEXT.replace("x * 2", "x * 3")))


@unread("2 lambdas begin at line 1 of <folder>/edited.py, and tracejit cannot tell which it is",
        "<lambda>", 1)
def lambdas_of_one_line(jit):
    text = "f, g = lambda x: x * 2 if x.sum() > 0 else x, lambda x: x * 3 if x.sum() > 0 else x\n"
    called(jit, lambda path: path.write_text(text.replace("*", "+")), text)
