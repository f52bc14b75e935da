"""Trust in folders of the kernel cache: owners, modes, links, as docs/shipping_the_cache.md says.

A container's image brings a folder that root made; the program runs as another user.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from tests.runtime.test_cache import fresh, packs, works  # noqa: F401
from tracejit.jit.runtime import cache, cache_folder

ROOT = Path(__file__).resolve().parents[2]
USER, STRANGER = 12345, 54321
as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")

# Python itself may lie where the user cannot read, so all is imported before.
CHILD = """
import json, os, sys, warnings
import tracejit as tj
from tracejit.config import flags
from tracejit.jit import compiled_function
from tracejit.jit.runtime import cache, cache_folder
constant = float(sys.argv[3])
def program(x):
    return (x * constant + 0.625).exp().sum()
def run():
    return tj.script(program, mode="compiled")(tj.ones(5)).item() - program(tj.ones(5)).item()
image, flags.cache_dir, user = sys.argv[1], sys.argv[2], int(sys.argv[4])
run()
cache._addresses.clear()
compiled_function._segments.clear()
cache.counts.update(compiled=0, loaded=0)
os.setgroups([]), os.setgid(user), os.setuid(user)
flags.cache_dir = image
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    difference = run()
print(json.dumps([cache.counts["compiled"], abs(difference) < 1e-4,
                  [str(w.message) for w in caught]]))
"""


@pytest.fixture
def place():
    """A folder that every user can enter; pytest's own are private."""
    path = Path(tempfile.mkdtemp(prefix="tracejit-trust-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A cache that a build as root made."""
    folder = tmp_path_factory.mktemp("build")
    child(folder / "image", folder / "image", user=0)
    return folder / "image"


def child(image, first, constant=1.375, user=USER):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(image), str(first), str(constant), str(user)], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    compiled, right, said = json.loads(done.stdout)
    assert right
    return compiled, said


@pytest.fixture
def image(place, kernels):
    """The cache in an image: owned by root, read by all."""
    path = place / "image"
    shutil.copytree(kernels, path, symlinks=True)
    for part in [path, *path.rglob("*")]:
        if not part.is_symlink():
            part.chmod(0o755 if part.is_dir() else 0o644)
    return path


@as_root
def test_another_user_reads_the_folder_of_an_image(image, tmp_path):
    assert child(image, tmp_path) == (0, []), "no kernel is compiled, no warning"


@as_root
def test_what_the_image_lacks_is_compiled_with_one_warning(image, tmp_path):
    before = sorted(image.rglob("*"))
    compiled, said = child(image, tmp_path, constant=2.75)
    assert compiled > 0 and len(said) == 1
    assert "cannot use" in said[0] and "Permission denied" in said[0]
    assert sorted(image.rglob("*")) == before


@as_root
def test_an_image_of_another_version(image, tmp_path):
    (native,) = image.glob("native-*")
    native.rename(image / f"native-{'0' * 16}")
    compiled, said = child(image, tmp_path)
    assert compiled > 0 and len(said) == 1
    assert f"{image} cannot be written and has no native-" in said[0]


@as_root
def test_a_folder_that_only_root_may_read(image, tmp_path):
    (native,) = image.glob("native-*")
    native.chmod(0o700)
    compiled, said = child(image, tmp_path)
    assert compiled > 0, "and the result is right all the same"


@as_root
@pytest.mark.parametrize("mode", [0o775, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(image, tmp_path, mode):
    image.chmod(mode)
    compiled, said = child(image, tmp_path)
    assert compiled > 0
    assert mode == 0o775 or (image / f"tracejit-{USER}").stat().st_uid == USER


@as_root
@pytest.mark.parametrize("part", ["folder", "native", "pack"])
def test_what_belongs_to_a_third_user_is_not_used(image, tmp_path, part):
    (native,) = image.glob("native-*")
    several = native.glob("*.pack") if part == "pack" else [image if part == "folder" else native]
    for path in several:
        os.chown(path, STRANGER, STRANGER)
    compiled, said = child(image, tmp_path)
    assert compiled > 0 and f"it belongs to user {STRANGER}, and this process runs as {USER}" in (
        said[0])


@as_root
def test_root_does_not_use_the_folder_of_a_user(image, tmp_path):
    """Root may read it, but the user could write what root would run."""
    for path in [image, *image.rglob("*")]:
        os.chown(path, USER, USER, follow_symlinks=False)
    compiled, said = child(image, tmp_path, user=0)
    assert compiled > 0 and f"it belongs to user {USER}, and this process runs as 0" in said[0]


@as_root
def test_a_user_uses_a_folder_of_their_own(image, tmp_path):
    for path in [image, *image.rglob("*")]:
        os.chown(path, USER, USER, follow_symlinks=False)
    assert child(image, tmp_path) == (0, [])


# -- links ---------------------------------------------------------------------------------------


def test_a_link_to_the_folder_is_followed(fresh, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "real").mkdir(mode=0o700)
    fresh.symlink_to(tmp_path / "real")
    assert works() and packs(tmp_path / "real")
    (tmp_path / "real").chmod(0o777)
    monkeypatch.setattr(cache_folder, "_trusted", set())
    assert cache_folder.root_directory().name == f"tracejit-{os.getuid()}", "its target is judged"


def test_a_link_to_nothing_is_named(fresh, tmp_path):  # noqa: F811
    fresh.symlink_to(tmp_path / "nothing")
    with pytest.warns(cache.CacheWarning, match="No such file or directory"):
        assert works()


def test_a_link_in_the_folder_is_refused(fresh, tmp_path, monkeypatch):  # noqa: F811
    assert works()
    (native,) = fresh.glob("native-*")
    native.rename(tmp_path / "elsewhere")
    native.symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(cache, "_addresses", {})
    monkeypatch.setattr(cache_folder, "_trusted", set())
    before = cache.counts["compiled"]
    with pytest.warns(cache.CacheWarning, match="native-.* .it is a symbolic link."):
        assert works()
    assert cache.counts["compiled"] > before


def test_a_link_for_a_pack_is_refused(fresh, tmp_path, monkeypatch):  # noqa: F811
    assert works()
    for path in packs(fresh):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
    monkeypatch.setattr(cache, "_addresses", {})
    with pytest.warns(cache.CacheWarning, match="is damaged .it is a symbolic link."):
        assert works()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(cache, "_addresses", {})
        assert works()
