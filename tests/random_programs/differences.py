"""Shows what differs, for a generator of programs: `aliases.py`, `jumps.py`, `worlds.py`.

In: what tells of a seed how captured calls differ from plain ones. Out: a command's options, each
difference as it is found, their number, an exit status.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable


def options_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """The options that the commands of all generators have."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.random_programs.{name}",
                                     description=doc)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    return parser


def show(difference: Callable[[int], str | None], first: int, count: int) -> int:
    """Of so many seeds from the first on; 1 where anything differed, else 0."""
    failures = 0
    for seed in range(first, first + count):
        found = difference(seed)
        if found is not None:
            failures += 1
            print(f"=== seed {seed}: {found}", flush=True)
    print(f"{count} programs, {failures} failures")
    return 1 if failures else 0
