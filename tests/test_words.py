"""Retired words do not come back as names: one standard word stands for one thing."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def retired() -> dict[str, set[str]]:
    """Return {word: files in which it has an ordinary meaning}."""
    lines = (ROOT / "tests/retired_words.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {word: set(files) for word, *files in rows}


def names(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def test_retired_words_are_no_names():
    words, found, used = retired(), [], set()
    for path in sorted((ROOT / "tracejit").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for line, name in names(path.read_text()):
            if file in words.get(name, ()):
                used.add((name, file))
            elif name in words:
                found.append(f"{file}:{line}: {name}")
    assert found == []
    stale = {(word, file) for word, files in words.items() for file in files} - used
    assert stale == set(), "files that do not use the word: drop them from tests/retired_words.txt"


def test_a_name_is_found():
    assert (2, "Recorder") in list(names('"""Recorder"""\nx = Recorder()  # Recorder\n'))
    assert [line for line, name in names('"Recorder"  # Recorder') if name == "Recorder"] == []
