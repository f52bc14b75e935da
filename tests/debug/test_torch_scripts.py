"""PyTorch programs run on tracejit: scripts and modules."""

import sys
import textwrap

import pytest

import tracejit
from tracejit.debug.torch_scripts import run_module, run_script


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


NAMES = """
    import torch, torch.nn
    from torch import nn
    seen = torch.__name__, torch.__spec__.name, __import__("torch").__name__
    parts = "torch.nn.Linear".split(".")
    assert parts[0] == torch.__name__, "as pyro's patches of torch ask"
    """


def test_the_name_of_torch_is_torch(tmp_path, without_torch):
    names = run(tmp_path, NAMES)
    assert names["seen"] == ("torch", "tracejit", "torch")
    assert tracejit.__name__ == "tracejit", "afterwards"


def test_a_module_is_run_as_by_python_m(tmp_path, without_torch, monkeypatch):
    package = tmp_path / "some_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(textwrap.dedent(NAMES) + textwrap.dedent("""\
        import sys
        from some_package import other
        argv, name, value = list(sys.argv), __name__, other.VALUE
        """))
    (package / "other.py").write_text("import torch\nVALUE = torch.__name__\n")
    monkeypatch.chdir(tmp_path)
    names = run_module("some_package.train", ["--lr", "1"])
    assert names["name"] == "__main__" and names["argv"][1:] == ["--lr", "1"]
    assert names["argv"][0] == str(package / "train.py")
    assert names["seen"][0] == names["value"] == "torch"


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
