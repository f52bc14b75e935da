"""A run in parts, all on one tree of sources: what earlier parts covered and found is kept in a
file.

In: what a part covered. Out: the same for all parts so far. Called by `__main__.py`.
"""

from __future__ import annotations

import pickle
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.random_programs.coverage import Coverage

ROOT = Path(__file__).parents[2]
SOURCES = ("tracejit", "tests/random_programs")


@dataclass
class Parts:
    """All parts so far; `tree`: the sources that they ran on."""

    tree: str
    coverage: Coverage = field(default_factory=Coverage)
    seeds: list[range] = field(default_factory=list)
    failures: int = 0
    seconds: float = 0.0

    def add(self, coverage: Coverage, seeds: range, failures: int, seconds: float) -> None:
        self.coverage.merge(coverage)
        self.seeds.append(seeds)
        self.failures += failures
        self.seconds += seconds

    def save(self, path: Path) -> None:
        path.write_bytes(pickle.dumps(self))

    def report(self) -> str:
        """The table of all parts."""
        trees = zip(SOURCES, self.tree.split())
        seeds = "; ".join(map(in_words, joined(self.seeds)))
        return self.coverage.report(self.seconds, self.failures, seeds) + (
            "\nIn parts, on the sources that git calls "
            + ", ".join(f"`{tree}` (`{name}`)" for name, tree in trees) + ".\n")


def parts_in(path: Path, seeds: range) -> Parts:
    """The parts in a file, none where there is no file; ValueError where they ran on other
    sources, or one of them had any of these seeds."""
    tree = _tree()
    if not path.exists():
        return Parts(tree)
    found: Parts = pickle.loads(path.read_bytes())
    if found.tree != tree:
        raise ValueError(f"the parts in {path} ran on other sources than these")
    for earlier in found.seeds:
        if not set(earlier).isdisjoint(seeds):
            raise ValueError(f"some seeds of {in_words(seeds)} are those of a part already")
    return found


def joined(seeds: list[range]) -> list[range]:
    """The same seeds, where one part goes on from another as one range."""
    found: list[range] = []
    for part in seeds:
        if found and (found[-1].stop, found[-1].step) == (part.start, part.step):
            part = range(found.pop().start, part.stop, part.step)
        found.append(part)
    return found


def in_words(seeds: range) -> str:
    """Seeds as the table tells them; odd ones alone have control flow."""
    alone = "" if seeds.step == 1 else f", {'flow' if seeds[0] % 2 else 'straight'} alone"
    return f"{seeds[0]} to {seeds[-1]}{alone}"


def _tree() -> str:
    """What git calls the committed sources; ValueError where these are others."""
    if _git("status", "--porcelain", *SOURCES):
        raise ValueError("a run in parts is one of committed sources")
    return _git("rev-parse", *(f"HEAD:{name}" for name in SOURCES))


def _git(*words: str) -> str:
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()
