"""`python -m tracejit cache`: lists, removes and ships the kernels on disk."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracejit.commands import cache_archive
from tracejit.commands.failures import CommandError, UsageError, reason_of
from tracejit.config import flags
from tracejit.jit.lowering.target import TargetError
from tracejit.jit.runtime import cache_folder, cache_upkeep

UNKNOWN = "(no function)"  # the runner, kernels of eager mode, packs of older versions


class Row(NamedTuple):
    """Captured function with all its packs; `damaged` counts those that cannot be read."""

    function: str
    kernels: list[str]
    nbytes: int
    used: float
    packs: int
    damaged: int


def main(options: argparse.Namespace) -> int:
    """Do what the action says."""
    try:
        return ACTIONS[options.action or "list"](options)
    except (TargetError, cache_archive.TransferError) as error:
        raise CommandError(str(error)) from None


def listed(options: argparse.Namespace) -> int:
    """Print a line for each captured function, the last used first."""
    names, as_json = getattr(options, "names", []), getattr(options, "json", False)
    root, found = cache_folder.root_directory(), rows(names)
    if as_json:
        print(json.dumps({"folder": str(root or ""), "functions": [_plain(r) for r in found]},
                         indent=1))
        return 0
    print(root or f"{flags.cache_dir} cannot be used: `python -m tracejit doctor` says why")
    for row in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.used))
        damage = f"  ({row.damaged} damaged)" if row.damaged else ""
        print(f"  {used}  {len(row.kernels):>4} kernels {row.nbytes / 1e3:>9.1f} kB  "
              f"{row.function}{damage}")
        if getattr(options, "kernels", False):
            for kernel in sorted(set(row.kernels)):
                print(f"{'':>43}{kernel}")
    print(f"{sum(len(r.kernels) for r in found)} kernels of {len(found)} functions in "
          f"{sum(r.packs for r in found)} files, {sum(r.nbytes for r in found) / 1e6:.2f} MB")
    return 0


def rows(names: Sequence[str] = ()) -> list[Row]:
    """Return the captured functions that have kernels on disk, the last used first."""
    grouped: dict[str, list[cache_upkeep.Entry]] = {}
    for pack in cache_upkeep.entries():
        if not names or pack.serves(names):
            grouped.setdefault(pack.function or UNKNOWN, []).append(pack)
    found = [
        Row(function, [k for p in packs for k in p.names or ("?",) * p.kernels],
            sum(p.nbytes for p in packs), max(p.used for p in packs), len(packs),
            sum(not p.kernels for p in packs))
        for function, packs in grouped.items()
    ]  # fmt: skip
    return sorted(found, key=lambda row: (-row.used, row.function))


def _plain(row: Row) -> dict[str, Any]:
    used = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.used))
    return {**row._asdict(), "used": used}


def pruned(options: argparse.Namespace) -> int:
    """Remove the longest unused kernels, or those of some functions."""
    if options.names and not rows(options.names):
        raise CommandError(f"no kernels of {', '.join(options.names)}; `python -m tracejit cache` "
                           "lists the functions")
    removed = cache_upkeep.prune(int(options.keep * 1e6), options.names)
    print(f"removed {removed / 1e6:.2f} MB")
    return 0


def exported(options: argparse.Namespace) -> int:
    """Write the kernels of this version and target into a file."""
    try:
        done = cache_archive.export_cache(Path(options.file))
    except OSError as error:
        raise CommandError(f"{options.file}: {reason_of(error)}") from None
    print(f"{options.file}: {done.kernels} kernels for target {flags.target}, "
          f"{done.nbytes / 1e6:.2f} MB\nsha256 {done.digest}")
    return 0


def imported(options: argparse.Namespace) -> int:
    """Read kernels from a file into the cache."""
    if not Path(options.file).exists():
        raise UsageError(f"{options.file}: no such file")
    done = cache_archive.import_cache(Path(options.file), options.sha256, options.for_all_users)
    print(f"{cache_folder.root_directory()}: {done.kernels} kernels for target {flags.target} "
          f"from {options.file}")
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": listed, "prune": pruned, "export": exported, "import": imported,
}
