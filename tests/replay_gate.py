"""Compare what two commits compile: graphs, guards, kernels and launches must be the same.

    python -m tests.replay_gate BASE            this tree against the commit BASE; `make gate BASE=`
    python -m tests.replay_gate --record FILE   write what this tree compiles

In: the program table, the examples and the networks of the bench. Out: a line for each program
that compiles to something else, and exit status 1 if there is one. Guards in another order count
too, and are named apart: some are sorted by names, and a new name has another place. Each commit
records with its own copy of this file. `tests/replay_names.txt` has the names that a commit
changed, `old new` in a line: the texts of BASE are read with the new ones.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gzip
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NAMES = Path(__file__).with_name("replay_names.txt")
# A text says where it comes from, and what it is called by a digest of it: both may change.
_PLACES = (
    (re.compile(r"[\w./<>-]*\.py:\d+"), "FILE"),
    (re.compile(r"_[0-9a-f]{8}\b"), "_DIGEST"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b|\b\d{13,15}\b"), "ADDRESS"),
)
_NUMBERS = re.compile(r"\b([a-z])\d+\b|(?<=return )\d+")  # of variables and guards
_IMPORTS = re.compile(r"(?:^from .* import .*\n)+", re.MULTILINE)  # in the order of their names
SHOWN = 40  # lines of a difference


# -- recording -------------------------------------------------------------------------------------
def programs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return names and functions that capture something."""
    import tracejit
    from tests.capture.program_table import ROWS

    for row in ROWS:
        yield f"program {row.name}", lambda row=row: row.run(tracejit.script)
    for path in sorted((ROOT / "examples").glob("*.py")):
        if path.stem != "runs":
            yield f"example {path.stem}", lambda path=path: _example(path)
    from bench import networks, peers

    for work in networks.workloads(peers.find(["tracejit"], False)):
        yield f"network {work.name}", lambda work=work: work.contenders["tracejit"]()()


def _example(path: Path) -> None:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            module.main(["--quick"])
        finally:
            os.chdir(here)


def record(path: str, only: Collection[str] = ()) -> None:
    """Write the texts of every program, or of those named `only`: a list for each."""
    import tracejit
    from tracejit import config, jit

    made: list[Any] = []
    start = jit.CompiledFunction.__init__

    def started(self: Any, *args: Any, **options: Any) -> None:
        start(self, *args, **options)
        made.append(self)

    jit.CompiledFunction.__init__ = started  # type: ignore[method-assign]
    found = {}
    for name, run in programs():
        if only and name not in only:
            continue
        made.clear()
        tracejit.manual_seed(0)
        # A program of the table may fail, as plain Python does. Of these nothing is compiled here.
        mode = "graph" if name.startswith("program") else "compiled"
        with config.override(mode=mode), contextlib.suppress(Exception), _quiet():
            run()
        try:
            found[name] = [text for function in made for text in texts(function)]
        except Exception as error:
            error.add_note(f"in {name}")
            raise
    with gzip.open(path, "wt") as file:
        json.dump(found, file)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    import warnings

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield


def shown(value: Any) -> str:
    """Return a text that asks no size for its number, which would be guarded."""
    from tracejit.jit.ir.size_text import size_text
    from tracejit.jit.ir.sizes import SymInt

    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    return size_text(value.key) if type(value) is SymInt else str(value)


def texts(function: Any) -> Iterator[str]:
    """Return guards, graphs after each stage, kernels and launches of a captured function."""
    from tracejit.jit.lowering.lower import lower

    for _, entry in function.entries:
        yield f"guards\n{entry.guards.source}"
    for segment in function.statistics.segments.values():
        for stage, text in segment.stages:
            yield f"graph {stage}\n{text}"
        program = segment.program or lower(segment.graph, segment.numerics)
        for instruction in program.all_instructions():
            kernel = instruction.kernel
            said = [kernel.name if kernel else instruction.extern or "host", *instruction.ops,
                    instruction.operands, instruction.outputs, instruction.sizes,
                    instruction.total, instruction.chunk]
            yield "launch " + " ".join(map(shown, said))
            if kernel:
                yield f"kernel\n{kernel.source}"
        yield "buffers " + " ".join(
            f"{b.dtype}[{shown(b.numel)}] {b.role} {b.index} {b.first_use}-{b.last_use};"
            for b in program.buffers)


# -- comparing -------------------------------------------------------------------------------------
def names() -> list[tuple[re.Pattern[str], str]]:
    """Return what names of BASE became."""
    lines = [line.split() for line in NAMES.read_text().splitlines() if line and line[0] != "#"]
    return [(re.compile(rf"\b{re.escape(old)}\b"), new) for old, new in lines]


def settled(text: str, renamed: Sequence[tuple[re.Pattern[str], str]] = ()) -> str:
    """Return a text without places and digests, with the new names."""
    for pattern, new in (*_PLACES, *renamed):
        text = pattern.sub(new, text)
    return _IMPORTS.sub(lambda lines: "".join(sorted(lines[0].splitlines(True))), text)


def unordered(text: str) -> list[str]:
    """Return the lines of a text without the numbers of guards, in alphabetical order."""
    return sorted(_NUMBERS.sub(r"\1", line) for line in text.split("\n"))


def compare(base: str) -> int:
    """Record both commits, in the same environment; return how many programs differ."""
    with tempfile.TemporaryDirectory() as folder:
        tree, cache = Path(folder) / "base", Path(folder) / "cache"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), base],
                       cwd=ROOT, check=True)
        try:
            sides = []
            for root in (tree, ROOT):
                path = Path(folder) / f"side{len(sides)}.gz"
                environment = {
                    **os.environ, "PYTHONHASHSEED": "0", "TRACEJIT_CACHE_DIR": str(cache),
                    "PYTHONPATH": str(root), "TRACEJIT_NUM_THREADS": "1",
                }  # fmt: skip
                subprocess.run(
                    [sys.executable, "-m", "tests.replay_gate", "--record", str(path)],
                    cwd=root, env=environment, check=True)
                with gzip.open(path, "rt") as file:
                    sides.append(json.load(file))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT)
    before, after = sides
    return differences(before, after)


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> int:
    """Print which programs differ, the first of them in full; return how many, moved guards too."""
    renamed, compared = names(), 0
    differing: list[str] = []
    moved: list[str] = []
    for name in sorted({*before, *after}):
        old = [settled(text, renamed) for text in before.get(name, ["no such program"])]
        new = [settled(text) for text in after.get(name, ["no such program"])]
        compared += len(old)
        if old == new:
            continue
        if len(old) == len(new) and all(
            a == b or a.startswith("guards") and unordered(a) == unordered(b)
            for a, b in zip(old, new)
        ):
            moved.append(name)
        else:
            differing.append(name)
            if len(differing) == 1:
                lines = difflib.unified_diff("\n".join(old).split("\n"), "\n".join(new).split("\n"),
                                             "before", "after", lineterm="")
                print("\n".join([name, *list(lines)[:SHOWN]]))
    print(f"{len(before)} programs, {compared} texts; {len(differing)} differ", *differing)
    print(f"{len(moved)} have their guards in another order", *moved)
    return len(differing) + len(moved)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("base", nargs="?", help="the commit to compare with")
    parser.add_argument("--record", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record)
    else:
        sys.exit(compare(arguments.base) > 0)
