"""PyTorch scripts: the names they use, and running them on tracejit."""

import sys
import textwrap

import pytest

import tracejit
from tracejit.debug.torch_scripts import has, names_in, run_script

SCRIPT = textwrap.dedent("""\
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


def test_names_with_lines_and_presence():
    found = {name.dotted: name for name in names_in(SCRIPT)}
    missing = {name.dotted: name.line for name in found.values() if not name.present}
    assert missing == {"torch.mps.load": 9, "torch.nn.functional.no_such_loss": 10,
                       "torch.nn.NoSuchLayer": 11, "torch.mps": 3}
    present = {"torch.ones", "torch.nn.Linear", "torch.long", "torch.optim",
               "torch.optim.lr_scheduler.StepLR"}
    assert present <= set(found)
    assert not any("path" in name or "load" == name for name in found)


def test_other_libraries_are_not_ours():
    assert names_in("import numpy as torch2\ntorch2.fft.rfft([1])\nself.torch.x") == []


@pytest.mark.parametrize(("dotted", "there"), [
    ("torch.nn.functional.gelu", True), ("torch.Tensor.backward", True),
    ("torch.float32", True), ("torch.nn.utils.clip_grad_norm_", True), ("torch.mps", False),
    ("torch.nn.functional.no_such", False), ("torch.utils.data.DataLoader.no_such", False),
])
def test_has(dotted, there):
    assert has(dotted) is there


def test_what_needs_a_package_of_an_extra_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "tracejit.utils.tensorboard", raising=False)
    assert has("torch.utils.tensorboard.SummaryWriter")


def run(tmp_path, text, *arguments):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    return run_script(str(script), arguments)


@pytest.fixture
def without_torch(monkeypatch):
    """As in the process of `python -m tracejit run`, whatever other tests imported."""
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)


def test_torch_means_tracejit(tmp_path, without_torch):
    names = run(tmp_path, """
        import sys
        import torch
        import torch.nn.functional as F
        from torch import nn
        from torch.optim import SGD
        from torch.optim.lr_scheduler import StepLR
        model = nn.Linear(3, 1)
        optimizer = SGD(model.parameters(), lr=0.1)
        loss = F.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 1))
        loss.backward()
        optimizer.step()
        arguments, name = sys.argv[1:], __name__
        """, "--epochs", "3")
    assert names["torch"] is tracejit and names["nn"] is tracejit.nn
    assert names["F"] is tracejit.nn.functional
    assert isinstance(names["loss"], tracejit.Tensor)
    assert names["arguments"] == ["--epochs", "3"] and names["name"] == "__main__"


def test_functions_named_like_their_modules_stay_functions(tmp_path, without_torch):
    names = run(tmp_path, """
        import torch.nn.utils.weight_norm as weight_norm
        import torch.nn.utils.spectral_norm
        import torch
        layer = weight_norm(torch.nn.Linear(2, 2))
        other = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2))
        """)
    assert names["weight_norm"] is tracejit.nn.utils.weight_norm
    assert callable(tracejit.nn.utils.weight_norm) and callable(tracejit.nn.utils.spectral_norm)


def test_nothing_is_left_behind(tmp_path, without_torch):
    argv, paths, finders = sys.argv, sys.path[:], sys.meta_path[:]
    run(tmp_path, "import torch.nn")
    assert (sys.argv, sys.path, sys.meta_path) == (argv, paths, finders)
    assert "torch" not in sys.modules and "torch.nn" not in sys.modules
    assert tracejit.__spec__.name == "tracejit" and tracejit.nn.__spec__.name == "tracejit.nn"


def test_a_missing_module_says_who_lacks_it(tmp_path, without_torch):
    with pytest.raises(ModuleNotFoundError, match=r"'torch.mps': tracejit has no tracejit.mps"):
        run(tmp_path, "import torch.mps")


def test_pytorch_itself_must_not_be_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", type(sys)("torch"))
    with pytest.raises(ImportError, match="imported already"):
        run(tmp_path, "")
