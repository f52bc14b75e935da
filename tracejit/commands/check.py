"""`python -m tracejit check`: names, methods and keywords of torch that tracejit lacks."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracejit.commands.presence import lack, lack_of_keyword
from tracejit.commands.sources import Source, Unreadable, files_of, read
from tracejit.commands.torch_uses import Use, Uses, uses_in


class Lacking(NamedTuple):
    """Name, method or keyword that is missing; `first` is the place of its first use."""

    name: str
    keyword: str
    why: str
    uses: int
    files: int
    first: str


class Package(NamedTuple):
    """Other package that the program imports. `needs_torch`: it is installed and asks for torch."""

    name: str
    files: int
    installed: bool
    needs_torch: bool


class Result(NamedTuple):
    """Result of a check: all that was found in some files, the most used first."""

    files: int
    names: int
    uses: int
    lacking: list[Lacking]
    packages: list[Package]
    unreadable: dict[str, str]


def main(options: argparse.Namespace) -> int:
    """Print what is missing; return 1 where anything is, or where a file cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated names that are looked at
        found = examine(options.paths)
    print(as_json(found) if options.json else as_text(found))
    return 1 if found.lacking or found.unreadable else 0


def examine(paths: Sequence[str]) -> Result:
    """Read files, notebooks and folders. Raises UsageError for a path that is not there."""
    uses: Counter[Use] = Counter()
    files: Counter[Use] = Counter()
    first: dict[Use, str] = {}
    packages: Counter[str] = Counter()
    unreadable: dict[str, str] = {}
    paths = files_of(paths)
    for path in paths:
        try:
            source = read(path)
            found = _uses(source)
        except Unreadable as error:
            unreadable[path] = str(error)
            continue
        own = Counter(use._replace(line=0) for use in found.uses)
        uses += own
        files.update(own.keys())
        for use in found.uses:
            first.setdefault(use._replace(line=0), source.place(use.line))
        packages.update(name for name in found.packages if not _is_local(name, path, paths))
    lacking = [Lacking(use.dotted, use.keyword, why, count, files[use], first[use])
               for use, count in uses.items() if (why := _lack(use))]
    lacking.sort(key=lambda row: (-row.uses, -row.files, row.name, row.keyword))
    names = {use.dotted for use in uses if use.dotted != "torch"}
    total = sum(n for use, n in uses.items() if use.dotted != "torch" and not use.keyword)
    return Result(len(paths), len(names), total, lacking, _packages(packages), unreadable)


def _uses(source: Source) -> Uses:
    try:
        return uses_in(source.text, source.path)
    except SyntaxError as error:
        place = source.place(error.lineno or 1).removeprefix(f"{source.path}:")
        raise Unreadable(f"line {place}: {error.msg}") from None
    except ValueError:  # a NUL byte
        raise Unreadable("it is no text") from None
    except (RecursionError, MemoryError):
        raise Unreadable("it is nested too deeply") from None


def _lack(use: Use) -> str:
    if use.keyword:
        return "" if lack(use.dotted) else lack_of_keyword(use.dotted, use.keyword)
    return lack(use.dotted)


# -- other packages ------------------------------------------------------------------------------


def _is_local(name: str, path: str, paths: Sequence[str]) -> bool:
    """Return True for modules of the standard library, and for those beside the program."""
    if name in sys.stdlib_module_names:
        return True
    folders = {Path(path).parent, *Path(path).parents, Path()}
    own = any((f / f"{name}.py").is_file() or (f / name / "__init__.py").is_file() for f in folders)
    return own or any(name in Path(other).parts for other in paths)


def _packages(counts: Counter[str]) -> list[Package]:
    names = importlib.metadata.packages_distributions() if counts else {}
    rows = []
    for name, files in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        needs = any(_asks_for_torch(d) for d in names.get(name, ()))
        rows.append(Package(name, files, _is_installed(name), needs))
    return rows


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _asks_for_torch(distribution: str) -> bool:
    wanted = importlib.metadata.requires(distribution) or []
    plain = [text.partition(";") for text in wanted]
    return any(name.replace("(", " ").split()[0].rstrip("=<>!~0123456789.,") == "torch"
               and "extra" not in condition for name, _, condition in plain)


# -- output --------------------------------------------------------------------------------------


def as_text(found: Result) -> str:
    """Return a line for each thing that is missing, and a summary."""
    lines = [f"{path}: cannot be read: {why}" for path, why in found.unreadable.items()]
    for row in found.lacking:
        count = f"{row.uses} use{'s' * (row.uses != 1)} in {_files(row.files)}"
        lines.append(f"{row.first}: {row.name} {row.why} ({count})")
    lines.append(f"{_files(found.files)}: {found.uses} uses of {found.names} names of torch, "
                 f"{len(found.lacking)} missing")
    if found.packages:
        lines.append(f"other packages: {', '.join(map(_described, found.packages))}")
    return "\n".join(lines)


def _files(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"


def _described(package: Package) -> str:
    notes = [_files(package.files)]
    notes += ["needs torch"] * package.needs_torch
    notes += ["not installed"] * (not package.installed)
    return f"{package.name} ({', '.join(notes)})"


def as_json(found: Result) -> str:
    """Return all that was found as JSON."""
    plain: dict[str, Any] = found._asdict()
    plain["lacking"] = [row._asdict() for row in found.lacking]
    plain["packages"] = [row._asdict() for row in found.packages]
    return json.dumps(plain, indent=1)
