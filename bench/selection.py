"""The rows that `--only` asks for.

In: names of rows, and parts of names with commas between. Out: the names that hold one of the
parts. Called by the programs that take `--only`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable


def chosen(names: Iterable[str], only: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the names that contain a part of `only`, in their order; all names without parts.

    A part that no name contains ends the program with status 2, and a list of the names.
    """
    there = list(names)
    parts = [part.strip().lower() for part in only.split(",") if part.strip()]
    for part in parts:
        if not any(part in name.lower() for name in there):
            parser.error(f"no name contains {part!r}; there are {', '.join(there)}")
    return [name for name in there
            if not parts or any(part in name.lower() for part in parts)]  # fmt: skip
