"""The kernel cache: shared, private, and never the reason for a wrong or failed run."""

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.programs import ADD_ONE, GELU, chain, kernel, run
from tracejit import config
from tracejit.runtime import cache
from tracejit.runtime.executable import Executable

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache directory, and a process that remembers no kernels."""
    monkeypatch.setattr(cache, "_addresses", {})
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(cache, "_unusable", set())
    monkeypatch.setattr(cache, "counts", {"compiled": 0, "loaded": 0, "reused": 0})
    with config.override(cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


def forget(monkeypatch):
    monkeypatch.setattr(cache, "_addresses", {})


def works() -> bool:
    executable = Executable(chain([ADD_ONE, GELU, ADD_ONE], 10))
    out = run(executable, executable.bind({}), np.full(10, -1, np.float32))
    return bool((out[:10] == 1).all())


def packs(directory):
    return sorted(directory.glob("native-*/*.pack"))


def test_compiled_once_then_found_on_disk(fresh, monkeypatch):
    kernels = [ADD_ONE, GELU]
    first = cache.functions_of(kernels)
    assert cache.counts == {"compiled": 2, "loaded": 0, "reused": 0}
    assert cache.functions_of(kernels) == first and cache.counts["reused"] == 2
    forget(monkeypatch)
    assert set(cache.functions_of([GELU])) == {GELU.digest}
    assert cache.counts["compiled"] == 2 and cache.counts["loaded"] == 2, "a pack is loaded whole"
    assert len(packs(fresh)) == 1
    assert works()


def test_the_directory_is_private(fresh):
    fresh.mkdir(mode=0o755)
    assert works()
    for path in (fresh, *fresh.glob("native-*"), fresh / "kernels"):
        assert path.stat().st_mode & 0o777 == 0o700, path


def test_sources_are_written_once(fresh):
    path = Path(cache.source_file(ADD_ONE))
    assert path.read_text() == ADD_ONE.source
    before = path.stat().st_mtime_ns
    assert cache.source_file(ADD_ONE) == str(path) and path.stat().st_mtime_ns == before
    commented = kernel("add_one", ADD_ONE.source.partition("hi):\n")[2] + "    # model.py:3\n")
    assert cache.source_file(commented) != str(path)


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    lambda data: data[: len(data) // 2],
    lambda data: b"",
    lambda data: b"x" * len(data),
])  # fmt: skip
def test_a_damaged_pack_is_reported_and_compiled_again(fresh, monkeypatch, damage):
    assert works()
    for path in packs(fresh):
        path.write_bytes(damage(path.read_bytes()))
    forget(monkeypatch)
    compiled = cache.counts["compiled"]
    with pytest.warns(cache.CacheWarning, match="is damaged"):
        assert works()
    assert cache.counts["compiled"] > compiled
    forget(monkeypatch)
    compiled = cache.counts["compiled"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert works()
    assert cache.counts["compiled"] == compiled, "the new pack is whole"


def test_a_link_to_nothing_is_compiled_again(fresh, monkeypatch):
    assert works()
    for path in packs(fresh):
        path.unlink()
    forget(monkeypatch)
    assert works()


@pytest.mark.parametrize("problem", ["file", "foreign", "readonly"])
def test_an_unusable_directory_is_reported_once(fresh, monkeypatch, problem):
    if problem == "file":
        fresh.write_text("")
    elif problem == "foreign":
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    else:
        def refuse(*args, **kwargs):
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(cache, "_replace", refuse)
    with pytest.warns(cache.CacheWarning, match="cannot be used") as caught:
        assert works()
        forget(monkeypatch)
        assert works()
    assert len(caught) == 1
    assert packs(fresh) == []


def test_a_disk_that_fills_up_leaves_no_half_files(fresh, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(cache.CacheWarning, match="No space left"):
        assert works()
    assert [p for p in fresh.rglob("*") if not p.is_dir()] == []


def test_threads_compile_a_kernel_once(fresh):
    threads = [threading.Thread(target=works) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert cache.counts["compiled"] == 4, "two kernels, and the runner's two functions"


PROCESS = """
import sys
from tests.runtime.test_cache import works
from tracejit.runtime import cache
assert works()
assert 'numba' not in sys.modules, 'numba was imported'
print(cache.counts['compiled'])
"""


def process(directory):
    environment = {**os.environ, "TRACEJIT_CACHE_DIR": str(directory), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROCESS], env=environment, cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_racing_processes_then_a_warm_one(tmp_path):
    for both in [process(tmp_path) for _ in range(3)]:
        out, err = both.communicate(timeout=120)
        assert both.returncode == 0, err
        assert int(out) in (0, 2, 4)
    warm = process(tmp_path)
    out, err = warm.communicate(timeout=120)
    assert (warm.returncode, out.strip()) == (0, "0"), err
    assert not list(tmp_path.rglob(".*")), "no temporary files are left"


def test_the_key_depends_on_versions_and_processor(monkeypatch):
    from tracejit.lowering import native

    before = cache.environment_key.__wrapped__()
    assert before == cache.environment_key.__wrapped__()
    monkeypatch.setattr(native, "host_cpu", lambda: ("other", "+none"))
    assert cache.environment_key.__wrapped__() != before


def test_prune_and_statistics(fresh):
    assert works()
    found = cache.entries()
    assert sum(e.kernels for e in found) == cache.counts["compiled"]
    assert cache.statistics()["packs"] == len(found)
    total = sum(e.nbytes for e in found)
    assert cache.prune(max_bytes=total) == 0
    assert cache.prune() == total
    assert cache.entries() == [] and not list(fresh.glob("native-*/*"))
