"""Sources to check: Python files and notebooks, also all in a folder.

In: paths. Out: texts of Python, whose lines know their place in the file. Called by `check`.
"""

from __future__ import annotations

import json
import os
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracejit.commands.failures import UsageError

ENDINGS = (".py", ".ipynb")
_SKIPPED = {"__pycache__", "node_modules", "site-packages"}
_MOST_BYTES = 64 << 20


class Unreadable(ValueError):
    """Error: a file is no Python that can be read."""


class Source(NamedTuple):
    """Text of Python. In a notebook `cells` has the (cell, line) of each line; else it is empty."""

    path: str
    text: str
    cells: list[tuple[int, int]]

    def place(self, line: int) -> str:
        """Return the place of a line of the text, as an editor wants it."""
        if not self.cells:
            return f"{self.path}:{line}"
        cell, at = self.cells[min(line, len(self.cells)) - 1]
        return f"{self.path}:cell {cell}:{at}"


def files_of(paths: Sequence[str]) -> list[str]:
    """Return the files of some paths; folders are searched.

    Raises UsageError for a path that is not there, or a folder without any Python.
    """
    found: dict[str, None] = {}
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"{path}: no such file or directory")
        if not os.path.isdir(path):
            found[path] = None
            continue
        inside = list(_walk(path))
        if not inside:
            raise UsageError(f"{path}: no .py file or notebook is in this folder")
        found |= dict.fromkeys(inside)
    return list(found)


def _walk(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_searched(where, name))
        for name in sorted(names):
            path = os.path.join(where, name)
            if name.endswith(ENDINGS) and os.path.isfile(path):
                yield path


def _is_searched(where: str, name: str) -> bool:
    hidden = name.startswith(".") or name in _SKIPPED
    return not hidden and not os.path.exists(os.path.join(where, name, "pyvenv.cfg"))


def read(path: str) -> Source:
    """Return the Python in a file. Raises Unreadable where it cannot be read."""
    try:
        if not os.path.isfile(path):
            raise Unreadable("it is no file")
        if os.path.getsize(path) > _MOST_BYTES:
            raise Unreadable("it is too large for a program")
        if path.endswith(".ipynb"):
            return _notebook(path, json.loads(Path(path).read_text("utf-8")))
        with tokenize.open(path) as file:
            text = file.read()
        if "\0" in text:
            raise Unreadable("it is no text")
        return Source(path, text, [])
    except OSError as error:
        raise Unreadable((error.strerror or str(error)).lower()) from None
    except UnicodeDecodeError:
        raise Unreadable("it is no text") from None
    except SyntaxError:  # of the coding that the first lines name
        raise Unreadable("it is no text, or in no coding that Python knows") from None
    except (json.JSONDecodeError, RecursionError):
        raise Unreadable("it is no notebook") from None


def _notebook(path: str, found: Any) -> Source:
    cells = found.get("cells") if isinstance(found, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("it is no notebook of format 4")
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            own = _lines(cell.get("source"))
            lines += own
            places += [(number, at) for at in range(1, len(own) + 1)]
    return Source(path, "\n".join(lines) + "\n", places)


def _lines(source: Any) -> list[str]:
    """Return the lines of a cell, commands of the notebook as empty statements."""
    text = source if isinstance(source, str) else "".join(map(str, source or []))
    lines = text.splitlines()
    if lines and lines[0].startswith("%%"):
        return [""] * len(lines)
    return [_plain(line) for line in lines]


def _plain(line: str) -> str:
    bare = line.lstrip()
    if bare.startswith(("%", "!", "?")) or bare.rstrip().endswith("?"):
        return line[: len(line) - len(bare)] + "pass"
    return line
