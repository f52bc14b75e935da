"""Names that `dir` and `help` show: public ones alone, and nothing of the machine or its user."""

import functools
import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tracejit
from tracejit.additions import ADDITIONS

ROOT = Path(__file__).resolve().parent.parent
DUNDERS = {"__doc__", "__file__", "__name__", "__path__", "__version__"}
USED = ["_C", "_utils", "_assert", "_foreach_add", "_check", "_dynamo", "_segment_reduce", "bool_"]


@pytest.mark.parametrize("module", ["tracejit", "tracejit.jit", "tracejit.config"])
def test_dir_shows_public_names_alone(module):
    found = importlib.import_module(module)
    assert {name for name in dir(found) if name.startswith("_")} <= DUNDERS
    shown = [getattr(found, name) for name in dir(found)]
    modules = [value.__name__ for value in shown if isinstance(value, ModuleType)]
    rooms = ("core", "saving", "additions", "symbolic_numbers", "torch_names")
    rooms += ("jit.runtime", "jit.capture", "jit.ir", "jit.lowering", "jit.compiled_function")
    assert [name for name in modules if not name.startswith("tracejit.")] == []
    assert {name.removeprefix("tracejit.") for name in modules} & {*rooms} == set()
    assert {"Any", "Callable", "annotations", "copy", "importlib", "os", "sys"} & (
        {*dir(found)} - ({"annotations"} if module == "tracejit.jit" else set())) == set()


def test_dir_does_not_change_when_rooms_are_imported():
    before = dir(tracejit), dir(tracejit.jit)
    for name in ("saving.file_reader", "symbolic_numbers", "jit.capture.tracer", "additions"):
        importlib.import_module(f"tracejit.{name}")
    _ = tracejit.SymInt, tracejit.GradScaler, tracejit.jit.Future
    assert (dir(tracejit), dir(tracejit.jit)) == before


def test_everything_that_dir_shows_is_there():
    for module in (tracejit, tracejit.jit, tracejit.config):
        assert [name for name in dir(module) if not hasattr(module, name)] == []


@pytest.mark.parametrize("name", USED)
def test_names_that_dir_leaves_out_can_be_used(name):
    assert name not in dir(tracejit) and getattr(tracejit, name) is not None


def test_a_captured_function_shows_what_users_may_use():
    @tracejit.script
    def scaled(x):
        return x * 2

    scaled.note = "the user's"
    names = {name for name in dir(scaled) if not name.startswith("__")}
    assert names == {"graph", "graphs", "note", "profile", "report"}
    assert {"__call__", "__doc__", "__name__", "__wrapped__"} <= {*dir(scaled)}

    class Model:
        forward = scaled

    bound = {name for name in dir(Model().forward) if not name.startswith("__")}
    assert bound == names


def test_our_own_names_are_there():
    for name in ADDITIONS:
        functools.reduce(getattr, name.split("."), tracejit)
    assert [n for n in ADDITIONS if "." not in n and n not in dir(tracejit)] == []


@pytest.mark.oracle
def test_our_own_names_are_one_list():
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.onnx")
    not_pytorchs = {name for name in dir(tracejit) if not hasattr(torch, name)}
    assert not_pytorchs == {n for n in ADDITIONS if "." not in n and not hasattr(torch, n)}


SEARCH = """
import importlib, inspect, os, pkgutil, pydoc, sys
from types import FunctionType
import tracejit

SECRET, count = os.environ["SECRET"], 0

def tells(value):
    return SECRET in repr(value)

def members(owner):
    for value in list(vars(owner).values()):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        value = value.fget if isinstance(value, property) else value
        if isinstance(value, FunctionType):
            yield inspect.unwrap(value)
        elif isinstance(value, type) and value.__module__[:8] == "tracejit" and value not in seen:
            seen.add(value)
            yield from members(value)

seen = set()
for place in tracejit.__path__:
    for found in pkgutil.walk_packages([place], "tracejit."):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ImportError:
            continue  # an optional package is missing
for name, module in sorted(sys.modules.items()):
    if not name.startswith("tracejit"):
        continue
    for name_of, value in list(vars(module).items()):
        if not name_of.startswith("__") and isinstance(value, type(os.environ)):
            print("holds the environment:", name, name_of)
    for function in members(module):
        count += 1
        values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if any(value is os.environ or tells(value) for value in values):
            print("tells the environment:", name, function.__qualname__)
for name in ("", ".config", ".jit", ".debug", ".logs"):
    text = pydoc.plain(pydoc.render_doc("tracejit" + name))
    if SECRET in text:
        print("help tells the environment:", name)
print("functions", count)
"""


def test_no_signature_and_no_help_shows_the_environment():
    environ = {**os.environ, "SECRET": "xyzzy-2718", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", SEARCH], env=environ, capture_output=True,
                          text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    *found, last = done.stdout.splitlines()
    assert found == []
    assert int(last.removeprefix("functions ")) > 5000
