"""Random corruptions of every kind of file in the kernel cache: results stay right, others' files
stay as they are.

    python -m tests.runtime.cache_corruptions --count 1500 --seed 0 --processes 30

In: how many corruptions of each kind. Out: a line per kind with how often the loader noticed.
Called by `test_cache_corruptions.py`. The loader and the compiler are replaced in this process:
what reaches the loader must be what was compiled, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from tracejit import config
from tracejit.jit.lowering import native
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache, cache_folder, cache_upkeep, loader, packs

ROOT = Path(__file__).resolve().parents[2]
JSON = (None, True, 0, -1, 1.5, "x", [], {}, [1], ["x"], {"a": 1}, 10**400, [[]], {"sizes": 3})


class World:
    """A cache folder with two packs and sources, and a folder outside that nobody may change."""

    def __init__(self, root: Path, rng: random.Random):
        self.root, self.rng = root / "cache", rng
        self.outside = root / "outside"
        self.outside.mkdir()
        (self.outside / f"{'0' * 32}.pack").write_bytes(b"somebody's pack")
        (self.outside / "file").write_bytes(b"somebody's file")
        self.kernels = [Kernel(f"k{n}", f"text {n}\n", f"{n:032x}", loops=1) for n in range(4)]
        self.whole = {k.digest: k.source.encode() * 40 for k in self.kernels}
        self.loaded: Counter = Counter()

    def compile(self, kernels: Any, threads: int = 1, tell: Any = None) -> list[bytes]:
        return [self.whole[kernel.digest] for kernel in kernels]

    def load(self, objects: Any, symbols: Any) -> list[int]:
        names = [symbol.removeprefix("tracejit_") for symbol in symbols]
        assert [self.whole[name] for name in names] == list(objects), "another kernel's code"
        return [int(name, 16) + 1000 for name in names]

    def fill(self) -> None:
        """Remove what is there and write the cache anew."""
        if self.root.is_dir() and not self.root.is_symlink():
            shutil.rmtree(self.root)
        elif os.path.lexists(self.root):
            self.root.unlink()
        self.forget()
        for half in (self.kernels[:2], self.kernels[2:]):
            cache.functions_of(half)

    def forget(self) -> None:
        cache._addresses.clear()
        for known in ("_warned", "_unusable", "_read_only", "_trusted"):
            getattr(cache_folder, known).clear()

    def files(self, suffix: str) -> list[Path]:
        if suffix == "link":
            return [self.folder / kernel.digest for kernel in self.kernels]
        where = self.root / "kernels" if suffix == ".py" else self.folder
        return sorted(p for p in where.iterdir() if p.name.endswith(suffix))

    @property
    def folder(self) -> Path:
        return self.root / f"native-{cache.environment_key()}"

    def kept(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.outside.iterdir()}


# -- corruptions: each gets the world and a path ----------------------------------------------


def flip(world: World, path: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(world.rng.choice([1, 1, 1, 2, 8])):
        data[world.rng.randrange(len(data))] ^= 1 << world.rng.randrange(8)
    path.write_bytes(data)


def truncate(world: World, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: world.rng.randrange(len(data))])


def grow(world: World, path: Path) -> None:
    path.write_bytes(path.read_bytes() + world.rng.randbytes(world.rng.randrange(1, 99)))


def noise(world: World, path: Path) -> None:
    path.write_bytes(world.rng.randbytes(world.rng.randrange(500)))


def directory(world: World, path: Path) -> None:
    path.unlink()
    path.mkdir()
    if world.rng.random() < 0.5:
        (path / "full").write_bytes(b"x")


def link(world: World, path: Path) -> None:
    path.unlink()
    path.symlink_to(world.rng.choice([
        world.outside / "file", world.outside / f"{'0' * 32}.pack", "nothing", path.name,
        "/dev/zero",
        f"../../../outside/{'0' * 32}.pack", "..", "x" * 300, f"{'1' * 32}.pack", "/",
    ]))  # fmt: skip


def pipe(world: World, path: Path) -> None:
    path.unlink()
    os.mkfifo(path, world.rng.choice([0o600, 0o644]))


def owner(world: World, path: Path) -> None:
    if os.getuid() == 0:
        os.chown(path, world.rng.randrange(1, 9999), -1, follow_symlinks=False)
    else:
        path.chmod(0o666)


def writable(world: World, path: Path) -> None:
    path.chmod(world.rng.choice([0o666, 0o620, 0o777]))


def unreadable(world: World, path: Path) -> None:
    path.chmod(0)


def gone(world: World, path: Path) -> None:
    path.unlink()


def header(world: World, path: Path) -> None:
    """Valid JSON of another shape, under a checksum that holds."""
    rng, payload = world.rng, path.read_bytes().split(b"\n", 2)[2]
    line, _, body = payload.partition(b"\n")
    found = json.loads(line)
    change = rng.randrange(5)
    if change == 0:
        found = rng.choice(JSON)
    elif change == 1:
        found[rng.choice(["digests", "sizes", "for"])] = rng.choice(JSON)
    elif change == 2:
        del found[rng.choice(["digests", "sizes", "for"])]
    elif change == 3:
        part = found[rng.choice(["digests", "sizes"])]
        part[rng.randrange(len(part))] = rng.choice([*JSON, "../x", 10**9, 10**30])
    else:
        found["sizes"] = [len(body) + rng.randrange(1, 9), -rng.randrange(1, 9)]
    texts = [json.dumps(found).encode(), b"[" * 100_000, b"\xff", b"NaN"]
    text = rng.choice(texts[: rng.choice([1, 4])])
    payload = text + b"\n" + body
    check = hashlib.sha256(payload).hexdigest().encode()
    path.write_bytes(packs.MAGIC + check + b"\n" + payload)


def moved(world: World, path: Path) -> None:
    """A whole pack that was written for another machine."""
    elsewhere = path.parent.with_name("native-other")
    elsewhere.mkdir(exist_ok=True)
    digests, objects = packs.read_pack(path)
    packs.write_pack(elsewhere, digests, [data[::-1] for data in objects])
    (other,) = elsewhere.glob("*.pack")
    other.replace(path)
    shutil.rmtree(elsewhere)


def swapped(world: World, path: Path) -> None:
    """The link of a kernel leads to the pack of others."""
    path.unlink()
    path.symlink_to(world.rng.choice(world.files(".pack")).name)


def folder(world: World, path: Path) -> None:
    """What is in the place of one of the cache's folders."""
    where = world.rng.choice([world.root, path.parent])
    shutil.rmtree(where)
    kind = world.rng.randrange(4)
    if kind == 0:
        where.write_bytes(b"")
    elif kind == 1:
        # That the whole cache is a link may be the user's wish; a folder in it may be none.
        places = [Path("nothing"), Path(where.name)]
        where.symlink_to(world.rng.choice(
            places if where == world.root else [world.outside, *places]
        ))
    elif kind == 2:
        os.mkfifo(where)
    else:
        where.mkdir()
        where.chmod(world.rng.choice([0, 0o777, 0o1777, 0o500, 0o770, 0o555]))


EACH = (
    flip, truncate, grow, noise, directory, link, pipe, owner, writable, unreadable, gone, folder,
)  # fmt: skip
KINDS: list[tuple[str, Callable[[World, Path], None]]] = [
    *((suffix, corrupt) for suffix in (".pack", ".py") for corrupt in EACH),
    *(("link", corrupt) for corrupt in (directory, link, pipe, owner, gone, noise, swapped)),
    (".pack", header), (".pack", moved),
]  # fmt: skip


def replaced(world: World, path: Path, corrupt: Callable[[World, Path], None]) -> None:
    if corrupt is noise and path.is_symlink():
        path.unlink()
    corrupt(world, path)


def run_kind(suffix: str, corrupt: Callable, count: int, seed: int) -> Counter:
    """So many corruptions of one kind: how often each number of warnings was given."""
    rng, seen = random.Random(f"{seed} {suffix} {corrupt.__name__}"), Counter()
    with tempfile.TemporaryDirectory() as name, config.override(cache_dir=Path(name) / "cache"):
        world = World(Path(name), rng)
        kept = world.kept()
        with mock.patch.object(native, "compile_kernels", world.compile), \
             mock.patch.object(loader, "load", world.load), \
             mock.patch.object(cache, "_addresses", {}), warnings.catch_warnings():
            for _ in range(count):
                warnings.simplefilter("ignore")
                world.fill()
                path = rng.choice(world.files(suffix))
                replaced(world, path, corrupt)
                seen[warned(world)] += 1
                assert world.kept() == kept, "a file outside was changed"
            shutil.rmtree(world.root, ignore_errors=True)
    return seen


def warned(world: World) -> int:
    """The warnings of a process that finds the folder so; its results must be right."""
    world.forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kernels in ([world.rng.choice(world.kernels)], world.kernels):
            found = cache.functions_of(kernels)
            assert found == {k.digest: int(k.digest, 16) + 1000 for k in kernels}
        for kernel in world.kernels:
            cache.source_file(kernel)
        cache_upkeep.entries()
        if world.rng.random() < 0.2:
            cache_upkeep.prune()
    assert all(w.category is cache.CacheWarning for w in caught)
    assert len({str(w.message).split(" (")[0] for w in caught}) == len(caught) <= 2
    return len(caught)


# -- whole processes ------------------------------------------------------------------------------

PROGRAM = """
import tracejit as tj
f = tj.script(lambda x, w: (x @ w).tanh().mean())
w = tj.ones(3, 3, requires_grad=True)
f(tj.ones(2, 3), w).backward()
assert tj.allclose(w.grad, tj.full((3, 3), 0.0032884), atol=1e-6), w.grad
assert f.report().compiles == 1 and not f.report().breaks
"""


def run_processes(count: int, seed: int) -> int:
    """Corrupt a real cache and run a program in fresh processes; how many warned."""
    rng, noticed = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name), rng)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_CACHE_DIR": str(world.root)}

        def run() -> str:
            done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=ROOT,
                                  capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            return done.stderr

        run()
        shutil.copytree(world.root, whole := Path(name) / "whole", symlinks=True)
        kept = world.kept()
        for _ in range(count):
            shutil.rmtree(world.root, ignore_errors=True)
            if os.path.lexists(world.root):
                world.root.unlink()
            shutil.copytree(whole, world.root, symlinks=True)
            suffix, corrupt = rng.choice(KINDS)
            paths = [
                p for p in sorted(world.root.rglob("*"))
                if (p.is_symlink() if suffix == "link" else p.name.endswith(suffix))
            ]
            replaced(world, rng.choice(paths), corrupt)
            noticed += "CacheWarning" in run()
            assert world.kept() == kept, (suffix, corrupt.__name__)
    return noticed


def main() -> None:
    """Run `--count` corruptions of each kind, then `--processes` fresh processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=30)
    options = parser.parse_args()
    for suffix, corrupt in KINDS:
        seen = run_kind(suffix, corrupt, options.count, options.seed)
        noticed = dict(sorted(seen.items()))
        print(f"{suffix:6} {corrupt.__name__:10} warnings: {noticed}", flush=True)
    noticed = run_processes(options.processes, options.seed)
    print(f"{options.processes} processes, all right; {noticed} of them warned")


if __name__ == "__main__":
    main()
