"""Capture looks at the user's objects, and runs none of the user's code for that."""

from __future__ import annotations

import ast
import importlib.util
import sys
import unittest.mock
from pathlib import Path

import pytest

import tracejit as tj
from tests.capture.program_table import ROWS
from tests.capture.spies import CLASSES, Log, Meta, spying
from tests.shares import share

# These take apart code and its syntax trees, or lie below `is_a`.
OF_CODE = ("rewrite", "source", "library_effects", "instructions", "looking", "memory_words")
JITS = {"script": tj.script, "trace": tj.trace}
ONLY_SCRIPT = ("sizes_written_as_json",)  # the row does not hand its function to `trace` either


@pytest.fixture(autouse=True)
def log():
    Log.calls.clear()
    yield Log.calls
    Log.calls.clear()


def cases():
    """Each program with one class of spies, in one way; all of them over the table."""
    for k, row in enumerate(ROWS):
        cls = CLASSES[k % len(CLASSES)]
        way = "trace" if k % 3 == 0 and row.name not in ONLY_SCRIPT else "script"
        name = f"{row.name}-{cls.__mro__[0].__name__}-{way}"
        yield pytest.param(row, cls, way, id=name, marks=share(f"{row.name}-looks", 160))


@pytest.mark.parametrize(("row", "cls", "way"), [*cases()])
def test_nothing_of_a_spy_is_called_while_a_program_runs(row, cls, way, log):
    tj.manual_seed(0)
    row.run(spying(JITS[way], cls))
    assert log == []


@pytest.mark.parametrize(("way", "cls"), [
    pytest.param(way, cls, id=f"{way}-{k}", marks=share(f"{way}-{k}-replay", 4))
    for way in JITS for k, cls in enumerate(CLASSES)])  # fmt: skip
def test_a_replay_calls_nothing_of_a_spy(cls, way, log):
    f = spying(JITS[way], cls)(lambda x: x * 2)
    for _ in range(4):
        assert f(tj.ones(2)).tolist() == [2.0, 2.0]
    assert log == []


def test_spies_notice_what_the_plain_function_does(log):
    spy = type.__call__(CLASSES[0])
    f = tj.script(lambda x, s: (x * 2, s.anything)[0])
    with pytest.raises(AttributeError):
        f(tj.ones(1), spy)
    assert {"getattribute", "getattr"} <= {name.strip("_") for name, _ in log}
    log.clear()
    assert isinstance(spy, Meta) is False
    assert log


def test_a_lazy_module_is_not_loaded(tmp_path, monkeypatch):
    (tmp_path / "loads_late.py").write_text("LOADED = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = importlib.util.find_spec("loads_late")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "loads_late", module)
    spec.loader.exec_module(module)
    f = tj.script(lambda x, m: (x * 2, m)[0])
    for _ in range(3):
        f(tj.ones(1), module)
    assert "LOADED" not in object.__getattribute__(module, "__dict__")
    assert module.LOADED


def test_a_mock_with_the_class_of_a_tensor_is_no_tensor():
    mock = unittest.mock.Mock(spec=tj.Tensor)
    f = tj.script(lambda x, m: (x * 2, m))
    for _ in range(3):
        doubled, same = f(tj.ones(1), mock)
        assert doubled.item() == 2.0 and same is mock
    assert mock.mock_calls == []


class Wide:
    __slots__ = ("size", "empty")


class Narrow(Wide):
    __slots__ = ()
    size = 3  # hides the slot


@pytest.mark.parametrize("way", JITS)
def test_slots_that_a_subclass_hides(way):
    f = JITS[way](lambda x: (x * Narrow.size, Narrow()))
    for _ in range(3):
        tripled, made = f(tj.ones(1))
        assert tripled.item() == 3.0 and type(made) is Narrow and made.size == 3
        Wide.size.__set__(made, 7)


class Swapped:
    """Its `__dict__` is a made-up one."""

    def __init__(self):
        self.count = 0

    @property
    def __dict__(self):
        raise AssertionError("asked")


@pytest.mark.parametrize("way", JITS)
def test_an_attribute_behind_a_dict_that_is_made_up(way):
    kept = Swapped()

    @JITS[way]
    def f(x):
        kept.count += 1
        return x * kept.count

    assert [f(tj.ones(1)).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert kept.count == 4


def asks(node):
    """Whether a call or comparison asks an object, or a metaclass, what it is."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Call):
        return False
    of_type = isinstance(node.left.func, ast.Name) and node.left.func.id == "type"
    return of_type and isinstance(node.ops[0], (ast.In, ast.NotIn))


def test_no_file_of_capture_asks_objects_for_their_class():
    room = Path(tj.__file__).parent / "jit"
    paths = [p for p in (room / "capture").glob("*.py") if not p.name.startswith(OF_CODE)]
    paths += [room / "runtime" / name for name in ("session.py", "build.py")]
    found = [f"{path.name}:{node.lineno}" for path in paths
             for node in ast.walk(ast.parse(path.read_text())) if asks(node)]
    assert len(paths) > 60 and found == []
