"""The source distribution is whole: its tests have their helpers, and run from it."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def tracked(folder):
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True)
    return listed.stdout.split() if listed.returncode == 0 else []


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The unpacked archive; made of a copy, as setuptools writes beside the sources."""
    where = tmp_path_factory.mktemp("sdist")
    copy = where / "copy"
    names = tracked(".") or pytest.skip("no checkout of git: what belongs to it is not known")
    for name in names:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    code = "from setuptools.build_meta import build_sdist; build_sdist('..')"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    if "No module named 'setuptools'" in done.stderr:
        pytest.skip("needs setuptools in the environment")
    assert done.returncode == 0, done.stderr
    (archive,) = where.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(where / "out", filter="data")
    (root,) = (where / "out").iterdir()
    return root


@pytest.mark.slow
def test_it_holds_all_that_tests_need(unpacked):
    for folder in ("tracejit", "tests", "docs", "bench", "examples", "Makefile", "MANIFEST.in"):
        lacking = [name for name in tracked(folder) if not (unpacked / name).exists()]
        assert tracked(folder) and lacking == [], folder


@pytest.mark.slow
def test_tests_run_from_it(unpacked):
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    some = ["tests/runtime/test_cache.py", "tests/test_map.py", "tests/test_rooms.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--collect-only",
         "tests"], cwd=unpacked, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *some],
        cwd=unpacked, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
