"""safetensors and TensorBoard, by packages that may be missing."""

import sys

import numpy as np
import pytest

import tracejit

KINDS = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


@pytest.mark.parametrize("package", ["safetensors", "tensorboardX"])
def test_a_missing_package_is_named(package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "tracejit.utils.tensorboard", raising=False)
    extra = package.lower().removesuffix("x")
    with pytest.raises(ImportError, match=rf"{package} package.*pip install tracejit\[{extra}\]"):
        if package == "safetensors":
            tracejit.safetensors.save_file({}, tmp_path / "x")
        else:
            from tracejit.utils.tensorboard import SummaryWriter  # noqa: F401


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    tensors = {kind: (tracejit.arange(6).reshape(2, 3) % 2).to(getattr(tracejit, kind))
               for kind in KINDS}
    tensors |= {"empty": tracejit.zeros(0, 2), "scalar": tracejit.tensor(3.5),
                "parameter": tracejit.nn.Parameter(tracejit.ones(2))}
    path = tmp_path / "x.safetensors"
    tracejit.safetensors.save_file(tensors, path, metadata={"format": "pt"})
    found = tracejit.safetensors.load_file(path)
    assert sorted(found) == sorted(tensors)
    for name, x in tensors.items():
        assert found[name].dtype is x.dtype and found[name].shape == x.shape
        assert found[name].tolist() == x.tolist() and not found[name].requires_grad
    found["float32"].fill_(7)
    again = tracejit.safetensors.load(tracejit.safetensors.save(tensors))
    assert again["float32"].tolist() == tensors["float32"].tolist()
    base = tracejit.ones(2, 2)
    for wrong, error in (({"a": 1}, "expected tracejit.Tensor"), ({"a": base.t()[:1]}, "contig"),
                         ({"a": base.to(tracejit.complex128)}, "complex128")):
        with pytest.raises(ValueError, match=error):
            tracejit.safetensors.save_file(wrong, path)
    with pytest.raises(RuntimeError, match="share memory"):
        tracejit.safetensors.save_file({"a": base, "b": base[0]}, path)
    data = tracejit.safetensors.save({"a": base})
    for damaged in (b"", b"abc", data[:-1], b"\xff" * 16 + data, data[8:]):
        with pytest.raises(safetensors.SafetensorError):
            tracejit.safetensors.load(damaged)


@pytest.mark.oracle
def test_safetensors_as_pytorch_reads_them(tmp_path):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors.torch")
    path = tmp_path / "x.safetensors"
    for kind in KINDS:
        x = (tracejit.arange(6).reshape(2, 3) % 2).to(getattr(tracejit, kind))
        tracejit.safetensors.save_file({"x": x}, path)
        y = theirs.load_file(path)["x"]
        assert y.dtype is getattr(torch, kind) and y.tolist() == x.tolist()
        theirs.save_file({"x": y}, path)
        assert tracejit.safetensors.load_file(path)["x"].tolist() == x.tolist()


def test_summary_writer(tmp_path):
    pytest.importorskip("tensorboardX")
    from tracejit.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", tracejit.tensor(0.5, requires_grad=True), 1)
        writer.add_scalars("both", {"a": tracejit.tensor(1.0), "b": 2.0}, 1)
        writer.add_histogram("weights", tracejit.randn(10), 1)
        writer.add_text("note", "text")
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("events*"))
    assert b"loss" in written and b"weights" in written


def test_a_scalar_for_tensorboard_is_one_number(tmp_path):
    pytest.importorskip("tensorboardX")
    from tracejit.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for one in (1, 2.5, np.float32(3), np.ones(1), tracejit.ones(())):
            writer.add_scalar("loss", one, 0)
        for several in ([1.0, 2.0], None, {"a": 1}):
            with pytest.raises(NotImplementedError, match="numpy array or torch tensor"):
                writer.add_scalar(tag="loss", scalar_value=several, global_step=1)
