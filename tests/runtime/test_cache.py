"""The kernel cache: shared, private, and never the reason for a wrong or failed run."""

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.programs import ADD_ONE, GELU, chain, kernel, run
from tracejit import config
from tracejit.core.memory import threads
from tracejit.jit import compiled_function
from tracejit.jit.lowering import native
from tracejit.jit.runtime import cache, cache_folder, cache_upkeep
from tracejit.jit.runtime.executable import Executable

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache directory, and a process that remembers no kernels."""
    monkeypatch.setattr(cache, "_addresses", {})
    for name in ("_warned", "_unusable", "_read_only"):
        monkeypatch.setattr(cache_folder, name, set())
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


def test_library_kernels_are_compiled_while_the_rest_is_lowered(fresh, monkeypatch):
    compiled, compile_kernels = [], native.compile_kernels

    def noted(kernels, *options):
        compiled.append((threading.current_thread().name, [k.name for k in kernels]))
        return compile_kernels(kernels, *options)

    monkeypatch.setattr(native, "compile_kernels", noted)
    monkeypatch.setattr(threads, "_chosen", 2)
    monkeypatch.setattr(threads, "_available", 2)
    x, w = tj.rand(2, 3, 8), tj.rand(4, 3, 3)

    def twice(x, w):
        return (tj.nn.functional.conv1d(x, w) * 2).cumsum(2)

    found = []
    for _ in range(2):
        forget(monkeypatch)
        compiled_function._segments.clear()
        found.append(tj.script(twice)(x, w))
    (first, library), (second, rest), *more = compiled
    assert (first, set(library)) == ("tracejit-compile", {"conv_float32", "cumsum_float32"})
    assert second == threading.current_thread().name and not set(rest) & set(library)
    assert not more, "the disk has them"
    assert all(tj.equal(y, twice(x, w)) for y in found)


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o555])
def test_a_directory_that_was_there_keeps_its_mode(fresh, mode):
    fresh.mkdir()
    fresh.chmod(mode)
    assert works()
    assert fresh.stat().st_mode & 0o7777 == mode
    for path in (*fresh.glob("native-*"), fresh / "kernels"):
        assert path.stat().st_mode & 0o777 == 0o700, path


def test_a_directory_of_its_own_is_private(fresh):
    assert works()
    assert fresh.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_where_others_can_write_a_private_subfolder_is_used(fresh, monkeypatch, mode):
    fresh.mkdir()
    fresh.chmod(mode)
    (fresh / "kernels").mkdir()
    (fresh / "somebody's").write_text("")
    assert works()
    assert fresh.stat().st_mode & 0o7777 == mode
    own = fresh / f"tracejit-{os.getuid()}"
    assert own.stat().st_mode & 0o777 == 0o700 and packs(own)
    assert sorted(p.name for p in fresh.iterdir()) == ["kernels", "somebody's", own.name]
    forget(monkeypatch)
    compiled = cache.counts["compiled"]
    assert works() and cache.counts["compiled"] == compiled, "and found again"
    own.chmod(0o777)  # not as we made it: another's code might be in it
    forget(monkeypatch)
    monkeypatch.setattr(cache_folder, "_trusted", set())
    with pytest.warns(cache.CacheWarning, match="others can write it"):
        assert works()
    assert cache.counts["compiled"] > compiled


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


def every_file(directory):
    return sorted(p for p in directory.rglob("*") if p.is_file() and not p.is_symlink())


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_a_flipped_byte_in_any_file_is_reported_and_made_good(fresh, monkeypatch, mode):
    def right():
        executable = Executable(chain([ADD_ONE, GELU, ADD_ONE], 10), mode)
        out = run(executable, executable.bind({}), np.full(10, -1, np.float32))
        return bool((out[:10] == 1).all())

    assert right() and works()
    files = every_file(fresh)
    assert {p.suffix for p in files} == {".pack", ".py"}
    flipped = 0
    for path in files:
        whole = path.read_bytes()
        for at in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            forget(monkeypatch)
            monkeypatch.setattr(cache_folder, "_warned", set())
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert right()
            flipped += any("is damaged" in str(w.message) for w in caught)
            if not path.exists():
                break  # compiled again, into another pack
            path.write_bytes(whole)
    packs_flipped = sum(p.suffix == ".pack" for p in files) if mode == "compiled" else 0
    assert flipped >= packs_flipped and (mode == "compiled" or flipped >= 6)


def test_a_link_to_another_pack_is_compiled_again(fresh, monkeypatch):
    assert works()
    other = kernel("other", ADD_ONE.source.partition("hi):\n")[2])
    cache.functions_of([other])
    (wrong,) = [p.name for p in packs(fresh) if cache.read_pack(p)[0] == [other.digest]]
    for link in fresh.glob(f"native-*/{ADD_ONE.digest}"):
        link.unlink()
        link.symlink_to(wrong)
    forget(monkeypatch)
    assert works()


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
        fresh.mkdir()
        if os.getuid() == 0:
            os.chown(fresh, 12345, 12345)
        else:
            monkeypatch.setattr(os, "getuid", lambda: 12345)
    else:

        def refuse(*args, **kwargs):
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(cache_folder, "write_file", refuse)
    with pytest.warns(cache.CacheWarning, match="tracejit cannot use") as caught:
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


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import tracejit as tj
    f = tj.script(lambda x: (x * 3.5 + 1).tanh().sum(0))
    for k in range(2):
        assert tj.allclose(f(tj.zeros(4, 2) + k), f.function(tj.zeros(4, 2) + k))
    assert f.report().compiles == 1
print([str(w.message) for w in caught])
"""


@pytest.mark.parametrize("size", [0, 100, 1000])
def test_a_disk_that_takes_no_more_bytes(tmp_path, size):
    done = child(
        LIMITED.replace("LIMIT,", f"{size},").replace("LIMIT)", f"{size})"),
        TRACEJIT_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    assert "(File too large)" in done.stdout
    assert every_file(tmp_path) == [], "no half files"


def child(code, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    environment = {k: v for k, v in environment.items() if v is not None}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, timeout=240,
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("home", [None, "/dev/null/nobody"])
def test_without_a_home_it_works(home):
    code = LIMITED.partition("import warnings")[2]
    done = child("import warnings" + code, HOME=home, XDG_CACHE_HOME=home, TRACEJIT_CACHE_DIR=None)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_without_any_place_it_works(tmp_path):
    code = LIMITED.partition("import warnings")[2]
    done = child("import warnings" + code, HOME="/dev/null/nobody", XDG_CACHE_HOME=None,
                 TRACEJIT_CACHE_DIR="/dev/null/nobody")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tracejit cannot use") == 1


def test_a_relative_directory_does_not_follow_chdir(tmp_path):
    code = "import os\nos.mkdir('other')\nimport tracejit as tj\nos.chdir('other')\n"
    code += "tj.script(lambda x: x.sin().sum())(tj.ones(3))\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_CACHE_DIR": "mine"}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "other"]
    assert list((tmp_path / "other").iterdir()) == [] and packs(tmp_path / "mine")

def test_threads_compile_a_kernel_once(fresh):
    threads = [threading.Thread(target=works) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert cache.counts["compiled"] == 4, "two kernels, and the runner's two functions"


PROCESS = """
import sys
from tests.runtime.test_cache import works
from tracejit.jit.runtime import cache, cache_folder, cache_upkeep
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


@pytest.mark.full
def test_sixteen_racing_processes_then_a_warm_one(tmp_path):
    for both in [process(tmp_path) for _ in range(16)]:
        out, err = both.communicate(timeout=240)
        assert both.returncode == 0, err
        assert int(out) in (0, 2, 4)
    warm = process(tmp_path)
    out, err = warm.communicate(timeout=120)
    assert (warm.returncode, out.strip()) == (0, "0"), err
    assert not list(tmp_path.rglob(".*")), "no temporary files are left"


def test_the_key_depends_on_versions_and_processor(monkeypatch):
    from tracejit.jit.lowering import target

    before = cache._key_of.__wrapped__("native")
    assert before == cache._key_of.__wrapped__("native") == cache.environment_key()
    monkeypatch.setattr(target, "host_cpu", lambda: ("other", "+none"))
    assert cache._key_of.__wrapped__("native") != before


def test_prune_and_statistics(fresh):
    assert works()
    found = cache_upkeep.entries()
    assert sum(e.kernels for e in found) == cache.counts["compiled"]
    assert cache_upkeep.statistics()["packs"] == len(found)
    total = sum(path.stat().st_size for path in every_file(fresh))
    assert cache_upkeep.prune(max_bytes=total) == 0
    directory = cache.native_directory()
    left = directory / f".{'a' * 32}.pack.{2**22 + 1}.1"  # of a process that was killed
    left.write_bytes(b"half")
    (directory / f".abc.{2**22 + 1}.1").symlink_to("nothing")
    written = directory / f".{'b' * 32}.pack.{os.getpid()}.1"
    written.write_bytes(b"half")
    assert cache_upkeep.prune(max_bytes=total) == 4 and not left.exists()
    assert written.exists(), "its process runs"
    written.unlink()
    (directory / "notes.txt").write_text("not the cache's")
    assert cache_upkeep.prune() == total
    assert cache_upkeep.entries() == []
    assert [p.name for p in every_file(fresh)] == ["notes.txt"]


def test_prune_follows_no_link_out_of_the_directory(fresh, tmp_path):
    assert works()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{'0' * 32}.pack").write_bytes(b"somebody's")
    (fresh / "native-x").symlink_to(outside)
    (fresh / "kernels-x").symlink_to(outside)
    for link in fresh.glob("native-*/*"):
        if link.is_symlink():
            link.unlink()
            link.symlink_to(outside / f"{'0' * 32}.pack")
    cache_upkeep.prune()
    assert [p.read_bytes() for p in outside.iterdir()] == [b"somebody's"]
