"""Weights by their address: fetched once, checked, kept where PyTorch keeps them."""

import hashlib
import os

import pytest

import tracejit
from tracejit import hub
from tracejit.utils import model_zoo


@pytest.fixture
def served(tmp_path):
    """The address of saved weights, and the directory where they are."""
    there = tmp_path / "there"
    there.mkdir()
    tracejit.save({"weight": tracejit.arange(3)}, there / "net.pt")
    digits = hashlib.sha256((there / "net.pt").read_bytes()).hexdigest()[:8]
    (there / "net.pt").rename(there / f"net-{digits}.pt")
    return (there / f"net-{digits}.pt").as_uri(), there


def test_weights_are_fetched_once(served, tmp_path, capsys):
    address, there = served
    kept = str(tmp_path / "kept")
    first = hub.load_state_dict_from_url(address, kept, check_hash=True)
    for file in there.iterdir():
        file.unlink()
    again = model_zoo.load_url(address, model_dir=kept, map_location="cpu")
    assert first["weight"].tolist() == again["weight"].tolist() == [0, 1, 2]
    assert capsys.readouterr().out.count("Downloading") == 1


def test_what_is_not_what_it_says_is_not_kept(served, tmp_path):
    address, there = served
    for file in there.iterdir():
        file.write_bytes(b"something else")
    kept = tmp_path / "kept"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(address, str(kept), check_hash=True)
    assert list(kept.iterdir()) == []


def test_it_is_pytorchs_directory(monkeypatch, tmp_path):
    torch_hub = pytest.importorskip("torch.hub")
    for names in ({}, {"XDG_CACHE_HOME": "/a"}, {"TORCH_HOME": "~/b", "XDG_CACHE_HOME": "/a"}):
        for name in ("TORCH_HOME", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in names.items():
            monkeypatch.setenv(name, value)
        assert hub.get_dir() == torch_hub.get_dir()
    monkeypatch.setattr(hub, "_chosen", [])
    hub.set_dir(tmp_path)
    assert hub.get_dir() == os.fspath(tmp_path)


def test_repositories_are_not_run():
    with pytest.raises(NotImplementedError, match="load_state_dict_from_url"):
        hub.load("pytorch/vision", "resnet18")
