"""`check`: names, methods and keywords that are missing, in files, notebooks and folders."""

import json
import textwrap

import pytest

import tracejit
from tracejit import __main__ as command_line
from tracejit.commands import presence, tensor_types
from tracejit.commands.check import examine
from tracejit.commands.failures import UsageError
from tracejit.commands.presence import lack, lack_of_keyword
from tracejit.commands.torch_uses import uses_in

PROGRAM = textwrap.dedent("""\
    import torch
    import torch.nn as nn, torch.nn.functional as F
    from torch import optim, mps as h
    from torch.optim.lr_scheduler import StepLR
    import os

    x = torch.ones(2).sum()
    model = nn.Linear(2, 2)
    h.load("x")
    F.no_such_loss(model(x), dim=torch.long)
    nn.NoSuchLayer()
    os.path.join("torch", "fft")
""")


@pytest.fixture
def program(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def lacking(text):
    """{name or name(keyword): uses} of what a text lacks."""
    found = {}
    for use in uses_in(textwrap.dedent(text)).uses:
        why = lack_of_keyword(use.dotted, use.keyword) if use.keyword else lack(use.dotted)
        if why:
            name = f"{use.dotted}({use.keyword})" if use.keyword else use.dotted
            found[name] = found.get(name, 0) + 1
    return found


def test_names_with_their_first_lines(program):
    path = program(PROGRAM)
    found = examine([path])
    assert {row.name: row.first for row in found.lacking} == {
        "torch.mps.load": f"{path}:9", "torch.nn.functional.no_such_loss": f"{path}:10",
        "torch.nn.NoSuchLayer": f"{path}:11", "torch.mps": f"{path}:3",
    }  # fmt: skip
    names = {use.dotted for use in uses_in(PROGRAM).uses}
    assert {"torch.ones", "torch.nn.Linear", "torch.long", "torch.optim", "Tensor.sum",
            "torch.optim.lr_scheduler.StepLR"} <= names


def test_other_libraries_are_not_ours():
    assert uses_in("import numpy as torch2\ntorch2.fft.rfft([1])\nself.torch.x").uses == []


@pytest.mark.parametrize(("dotted", "there"), [
    ("torch.nn.functional.gelu", True), ("torch.Tensor.backward", True),
    ("torch.float32", True), ("torch.nn.utils.clip_grad_norm_", True), ("torch.mps", False),
    ("torch.nn.functional.no_such", False), ("torch.utils.data.DataLoader.no_such", False),
    ("Tensor.sum", True), ("Tensor.geqrf", False),
])
def test_presence(dotted, there):
    assert (lack(dotted) == "") is there


def test_what_needs_a_package_of_an_extra_is_there(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "tracejit.utils.tensorboard", raising=False)
    lack.cache_clear()
    assert lack("torch.utils.tensorboard.SummaryWriter") == ""


def test_the_most_used_comes_first(program):
    first = program("import torch\ntorch.nosuch(1)\ntorch.other(1)\ntorch.other(2)\n", "a/a.py")
    second = program("import torch\ntorch.other(1)\n", "a/b.py")
    rows = examine([str(second), str(first)]).lacking
    assert [(r.name, r.uses, r.files) for r in rows] == [("torch.other", 3, 2),
                                                         ("torch.nosuch", 1, 1)]
    assert rows[0].first == f"{second}:2"


def test_what_only_raises_is_missing():
    assert "NotImplementedError: onnx.export:" in lack("torch.onnx.export")
    assert lack("torch.profiler.schedule") and lack("torch.quasirandom.SobolEngine")
    assert lack("torch.onnx.is_in_onnx_export") == ""
    assert lack("torch.distributions.Distribution") == "", "its methods are for subclasses"


def test_methods_of_what_is_a_tensor_for_certain():
    assert lacking("""
        import torch
        from torch import Tensor, nn
        import torch.nn.functional as F

        def f(x: torch.Tensor, y: Tensor, z, flag=False):
            (x + 1).nosuch1()
            y.view(-1).relu_().nosuch2()
            F.relu(z).nosuch3()
            layer = nn.Linear(2, 2)
            layer(z)[0].nosuch4()
            t = torch.zeros(2)
            t = t * 2
            t.nosuch5()
            -t.T.nosuch6
        """) == {f"Tensor.nosuch{k}": 1 for k in range(1, 7)}


def test_nothing_is_said_of_what_may_be_something_else():
    assert lacking("""
        import torch
        from torch import nn, optim

        class Own(torch.Tensor):
            pass

        def f(z, n, flag):
            z.nosuch()
            t = torch.zeros(2) if flag else n
            t.nosuch()
            u = torch.zeros(2)
            u = u.numpy()
            u.nosuch()
            for v in torch.zeros(2):
                v.nosuch()
            ("%s" % torch.zeros(2)).nosuch()
            (torch.zeros(2) is n).nosuch()
            values, places = torch.zeros(2).sort()
            values.nosuch()
            w = torch.zeros(2)
            w.mine = 1
            w.mine.nosuch(); w.mine
            torch.max(w, 0).nosuch()
            optim = n
            optim.nosuch()
            global g
            g = n

        g = torch.ones(1)
        g.nosuch()
        """) == {}


def test_a_method_that_only_pytorch_has_is_known_by_its_name():
    assert lacking("def f(x):\n    x.geqrf()") == {"Tensor.geqrf": 1}
    assert [n for n in tensor_types.LACKING if hasattr(tracejit.Tensor, n)] == []


@pytest.mark.oracle
def test_methods_that_only_pytorch_has():
    import torch

    public = {name for name in dir(torch.Tensor) if not name.startswith("_")}
    assert {name for name in public if not hasattr(tracejit.Tensor, name)} == tensor_types.LACKING


def test_every_name_that_the_types_know_is_there():
    """A method of `_METHODS` that `Tensor` lacks would be taken for one that gives a tensor."""
    for names, holder in ((tensor_types._FUNCTIONAL, tracejit.nn.functional),
                          (tensor_types._LAYERS, tracejit.nn),
                          (tensor_types._ATTRIBUTES, tracejit.Tensor)):
        assert [name for name in sorted(names) if not hasattr(holder, name)] == []
    assert [name for name in sorted(tensor_types._METHODS)
            if not hasattr(tracejit.Tensor, name) and not hasattr(tracejit, name)] == []


def test_keywords():
    assert lacking("""
        import torch
        x = torch.ones(2)
        torch.sum(x, axis=0, keepdims=True); x.sum(dim=0); torch.add(x, x, out=x, alpha=2)
        torch.zeros(2, layout=None, pin_memory=True)
        torch.optim.SGD([x], lr=1.0, weight_decay=0.1)
        torch.nn.Linear(2, 2, bias=False, device=None)
        torch.sum(x, nosuch=1); x.sum(nosuch=2)
        torch.nn.Linear(2, 2, nosuch=1); torch.nn.functional.gelu(x, nosuch=1)
        torch.mps.load(nosuch=2)
        f(**{}); torch.sum(x, **{"nosuch": 1})
        """) == {"torch.sum(nosuch)": 1, "Tensor.sum(nosuch)": 1, "torch.nn.Linear(nosuch)": 1,
                 "torch.nn.functional.gelu(nosuch)": 1, "torch.mps.load": 1}


def test_asking_for_a_keyword_calls_nothing(monkeypatch):
    called = []

    def front(*args, **named):
        return inner(*args, **named)

    def inner(first, second=None):
        called.append(second)

    front.__wrapped__ = inner
    monkeypatch.setattr(tracejit, "nosuch_front", front, raising=False)
    assert lack_of_keyword("torch.nosuch_front", "third") == (
        "has no argument 'third' in tracejit")
    assert lack_of_keyword("torch.nosuch_front", "second") == "" and called == []


def test_a_refusal_is_known_through_a_function_that_raises():
    assert presence.refusal(lambda: 1) == ""

    def refuse(name):
        raise NotImplementedError(f"{name}: not here")

    def public(x):
        """Document."""
        refuse("public")

    assert presence.refusal(refuse) == "...: not here"
    public.__globals__["refuse"] = refuse
    try:
        assert presence.refusal(public) == "public"
    finally:
        del public.__globals__["refuse"]


def test_a_notebook(program):
    cells = [
        {"cell_type": "markdown", "source": ["import torch; torch.nosuch()"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install x\n",
                                         "import torch\n", "if True:\n", "    %time 1\n",
                                         "torch.ones?"]},
        {"cell_type": "code", "source": "%%bash\nnot python at all"},
        {"cell_type": "code", "source": ["x = torch.ones(1)\n", "x.nosuch()"]},
    ]
    path = program(json.dumps({"cells": cells, "nbformat": 4}), "n.ipynb")
    (row,) = examine([path]).lacking
    assert (row.name, row.first) == ("Tensor.nosuch", f"{path}:cell 4:2")


def test_a_folder(program, tmp_path):
    for name in ("src/a.py", "src/deep/b.py", "src/.hidden/c.py", "src/__pycache__/d.py",
                 "src/venv/lib/e.py"):
        program("import torch\ntorch.nosuch()\n", name)
    program("", "src/venv/pyvenv.cfg")
    program("torch.nosuch()", "src/readme.txt")
    found = examine([str(tmp_path / "src"), str(tmp_path / "src/a.py")])
    assert (found.files, found.lacking[0].files) == (2, 2)


def test_other_packages(program):
    program("", "src/own/__init__.py")
    path = program("""
        import os, numpy.linalg, torch, own.thing, nosuch_package
        from . import sibling
        from numpy import ones
        """, "src/a.py")
    found = {p.name: p for p in examine([path]).packages}
    assert set(found) == {"numpy", "nosuch_package"}
    assert found["numpy"].installed and not found["nosuch_package"].installed
    assert not found["numpy"].needs_torch


def test_packages_that_need_torch(monkeypatch):
    from tracejit.commands import check

    wanted = {"a": ["torch>=2.0"], "b": ["torch; extra == 'x'"], "c": ["torchvision"], "d": None,
              "e": ["numpy", "torch (>=1.8)"]}
    monkeypatch.setattr(check.importlib.metadata, "requires", wanted.get)
    assert [name for name in wanted if check._asks_for_torch(name)] == ["a", "e"]


@pytest.mark.parametrize(("name", "content", "why"), [
    ("a.py", b"def f(:\n", "line 1: invalid syntax"),
    ("b.py", b"x = '\xff'\n", "it is no text"),
    ("c.py", b"\x7fELF\x00\x01\n" * 9, "it is no text"),
    ("d.ipynb", b"{", "it is no notebook"),
    ("e.ipynb", b"[1]", "it is no notebook of format 4"),
    ("f.py", b"x = " + b"(" * 5000, "line 1: too many nested parentheses"),
])
def test_a_broken_file_is_a_line(tmp_path, capsys, name, content, why):
    path, good = tmp_path / name, tmp_path / "good.py"
    path.write_bytes(content)
    good.write_text("import torch\ntorch.ones(1)\n")
    assert command_line.main(["check", str(good), str(path)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith(f"{path}: cannot be read: {why}") and err == ""
    assert out.splitlines()[1] == "2 files: 1 uses of 1 names of torch, 0 missing"


def test_a_path_that_is_not_there_is_wrong_use(tmp_path, capsys):
    assert command_line.main(["check", str(tmp_path / "nosuch")]) == 2
    assert capsys.readouterr().err.endswith("nosuch: no such file or directory\n")
    with pytest.raises(UsageError, match="no .py file"):
        examine([str(tmp_path)])


def test_json(program, capsys):
    path = program(PROGRAM)
    assert command_line.main(["check", "--json", path]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == 1 and found["unreadable"] == {} and found["packages"] == []
    assert {"name": "torch.mps.load", "keyword": "", "why": "is not in tracejit", "uses": 1,
            "files": 1, "first": f"{path}:9"} in found["lacking"]
