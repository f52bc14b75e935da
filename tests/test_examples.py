"""The examples run, say that all is as it should be, and notice when it is not."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.fixture
def example(request, monkeypatch, tmp_path):
    """A fresh module of the example named by the test's parameter, run where it may write."""
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(request.param, EXAMPLES / f"{request.param}.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses with string annotations look their module up by name.
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


def test_there_are_examples():
    assert set(NAMES) >= {"train_digits", "black_scholes", "custom_function", "debug_nan"}


@pytest.mark.parametrize("example", NAMES, indirect=True)
def test_quick_run_is_right(example, capsys):
    status = example.main(["--quick"])
    out = capsys.readouterr().out
    assert status == 0, out
    assert out.rstrip().endswith("all as it should be")
    assert "WRONG" not in out


@pytest.mark.parametrize("example", ["train_digits"], indirect=True)
def test_digits_plot_and_report(example, capsys, tmp_path):
    assert example.main(["--quick", "--plot", "losses.png"]) == 0
    picture = (tmp_path / "losses.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    out = capsys.readouterr().out
    assert "the last of each epoch 29" in out
    assert "captures 1" in out and "breaks 0" in out
    assert "def " in out.split("as generated:")[1], "a kernel's source is shown"
    assert out.split("guarded (")[1].count("\n    ") >= 2, "guards are shown"


@pytest.mark.slow
@pytest.mark.parametrize("example", ["train_digits"], indirect=True)
def test_digits_reaches_the_accuracy(example, capsys):
    assert example.main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("example", "limit"),
    [("train_digits", "TOLERANCE"), ("black_scholes", "PRICE_TOLERANCE"),
     ("custom_function", "TOLERANCE")],
    indirect=["example"],
)
def test_an_example_notices_a_difference(example, limit, monkeypatch, capsys):
    monkeypatch.setattr(example, limit, -1.0)
    assert example.main(["--quick"]) == 1
    assert "WRONG" in capsys.readouterr().out
