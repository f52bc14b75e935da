"""The examples run, say that all is as it should be, and notice when it is not."""

import importlib.util
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.shares import share

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"runs"})
# They train both ways by what `runs.py` has.
TRAINING = ["char_gpt", "dcgan", "karate_gcn", "lenet", "lstm_text", "reinforce", "resume", "vae"]


@pytest.fixture
def example(request, monkeypatch, tmp_path):
    """A fresh module of the example named by the test's parameter, run where it may write."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(request.param, EXAMPLES / f"{request.param}.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses with string annotations look their module up by name.
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


def test_there_are_examples():
    assert {*NAMES} >= {*TRAINING, "train_digits", "black_scholes", "custom_function", "debug_nan"}


@pytest.mark.parametrize(
    "example", [pytest.param(name, marks=share(f"example {name}", 3)) for name in NAMES],
    indirect=True)  # fmt: skip
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


@pytest.mark.parametrize("example", ["karate_gcn"], indirect=True)
def test_a_training_example_notices_what_is_wrong(example, monkeypatch, capsys):
    monkeypatch.setattr(example.runs, "TOLERANCE", -1.0)
    assert example.main(["--quick"]) == 1
    assert "WRONG: losses differ from eager's" in capsys.readouterr().out
    monkeypatch.setattr(example.runs, "TOLERANCE", 1e-4)
    monkeypatch.setattr(example, "WANTED_ACCURACY", 1.1)
    assert example.main([]) == 1
    assert "WRONG: members on the side they took 0.97" in capsys.readouterr().out
    forward = example.GCN.forward
    monkeypatch.setattr(example.GCN, "forward", lambda self, x, a: forward(self, x, a) * float(
        x.numpy().max()))
    assert example.main(["--quick"]) == 1
    assert "WRONG: break at" in capsys.readouterr().out


@pytest.mark.parametrize("example", ["karate_gcn"], indirect=True)
def test_one_way_alone(example, capsys):
    for way, other in (("eager", "compiled"), ("compiled", "eager")):
        assert example.main([f"--{way}", "--steps", "3"]) == 0
        out = capsys.readouterr().out
        assert f"\n{way} " in out and f"\n{other} " not in out
    with pytest.raises(SystemExit):
        example.main(["--eager", "--compiled"])


@pytest.mark.parametrize("example", ["karate_gcn"], indirect=True)
def test_losses_are_logged(example, tmp_path):
    pytest.importorskip("tensorboardX")
    assert example.main(["--steps", "3", "--logs", "logs"]) == 0
    assert {path.parent.name for path in (tmp_path / "logs").rglob("events.*")} == {
        "eager", "compiled"}


@pytest.mark.parametrize("example", ["lenet"], indirect=True)
def test_lenet_reads_mnist_files(example, tmp_path):
    rng = np.random.default_rng(0)
    for part, count in (("train", 70), ("t10k", 30)):
        classes = (np.arange(count) % 10).astype(np.uint8)
        pictures = rng.integers(0, 256, (10, 28, 28)).astype(np.uint8)[classes]
        for kind, array in (("images-idx3", pictures), ("labels-idx1", classes)):
            start = bytes([0, 0, 8, array.ndim])
            sizes = struct.pack(f">{array.ndim}I", *array.shape)
            (tmp_path / f"{part}-{kind}-ubyte").write_bytes(start + sizes + array.tobytes())
    assert example.main(["--data", str(tmp_path), "--compiled", "--steps", "3"]) == 0
    assert (tmp_path / "out" / "lenet.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("example", ["resume"], indirect=True)
def test_a_checkpoint_without_the_generator_is_noticed(example, monkeypatch, capsys):
    monkeypatch.setattr(example.tracejit, "set_rng_state", lambda state: None)
    assert example.main(["--quick", "--compiled"]) == 1
    assert "WRONG: compiled: resumed, step 15 gives" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("example", TRAINING, indirect=True)
def test_the_target_is_reached(example, capsys):
    assert example.main([]) == 0, capsys.readouterr().out
