"""Models of local folders, and state dicts by address, as in PyTorch."""

import hashlib
import pathlib
from urllib.error import URLError

import pytest

import tracejit
from tracejit.utils import model_zoo

HUBCONF = '''
dependencies = ["math"]
from beside import factor

def net(size, scale=1):
    """A net of a size."""
    import tracejit
    return tracejit.nn.Linear(size, factor * scale)

def _hidden():
    pass
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text("factor = 3\n")
    return str(tmp_path)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("tracejit.hub._chosen", [])
    tracejit.hub.set_dir(tmp_path / "cache")
    return tmp_path / "cache"


def test_models_of_a_folder(folder):
    net = tracejit.hub.load(folder, "net", 2, source="local", scale=2)
    assert net.weight.shape == (6, 2)
    assert tracejit.hub.list(folder) == ["net"]
    assert tracejit.hub.help(folder, "net") == "A net of a size."


def test_what_is_refused(folder, tmp_path):
    with pytest.raises(NotImplementedError, match="not fetched from GitHub.*source=\"local\""):
        tracejit.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match='^Unknown source: "x". Allowed values'):
        tracejit.hub.load(folder, "net", source="x")
    with pytest.raises(RuntimeError, match="^Cannot find callable other in hubconf$"):
        tracejit.hub.load(folder, "other", source="local")
    (tmp_path / "hubconf.py").write_text('dependencies = ["not_there_at_all"]\n')
    with pytest.raises(RuntimeError, match="^Missing dependencies: not_there_at_all$"):
        tracejit.hub.load(folder, "net", source="local")


def test_state_dicts_by_address(cache, tmp_path, capsys):
    path = tmp_path / "given.pt"
    tracejit.save({"w": tracejit.ones(2)}, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    named = path.rename(tmp_path / f"net-{digest[:8]}.pt")
    for load in (tracejit.hub.load_state_dict_from_url, model_zoo.load_url):
        state = load(named.as_uri(), map_location="cpu", check_hash=True)
        assert state["w"].tolist() == [1.0, 1.0]
    assert capsys.readouterr().out.count("Downloading") == 1  # the second is there already
    assert (cache / "checkpoints" / named.name).exists()
    other = tracejit.hub.load_state_dict_from_url(
        named.as_uri(), model_dir=str(tmp_path / "m"), file_name="x.pt")
    assert (tmp_path / "m" / "x.pt").exists() and list(other) == ["w"]


def test_downloads_are_whole_or_not_at_all(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"text")
    with pytest.raises(RuntimeError, match='^invalid hash value \\(expected "00", got "982d9e3e'):
        tracejit.hub.download_url_to_file(source.as_uri(), str(target), "00")
    with pytest.raises(URLError, match="file:///.* cannot be read"):
        tracejit.hub.download_url_to_file((tmp_path / "c").as_uri(), str(target))
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    tracejit.hub.download_url_to_file(source.as_uri(), str(target), "982d9e3e")
    assert target.read_bytes() == b"text"


def test_where_downloads_go(monkeypatch):
    monkeypatch.setattr("tracejit.hub._chosen", [])
    monkeypatch.setenv("TORCH_HOME", "/home/of/torch")
    assert tracejit.hub.get_dir() == "/home/of/torch/hub"
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert tracejit.hub.get_dir() == "/cache/torch/hub"
    tracejit.hub.set_dir(pathlib.Path("/other"))
    assert tracejit.hub.get_dir() == "/other"
