"""Count how docstrings and pages read: the words that open them, and the length of sentences.

A docstring opens with a verb or a noun. A sentence has at most 25 words, one idea.
`python -m tests.test_docstrings ROOM...` prints the counts, and the long sentences of these rooms.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELATIVE = {"what", "whether", "who", "where", "which", "how", "when", "why", "of", "whose"}
ARTICLES = {"a", "an", "the"}
PRONOUNS = {
    *("it", "its", "he", "his", "they", "their", "theirs", "them", "one", "ones", "this", "that"),
    *("these", "those", "such", "some", "any", "all", "each", "both", "nothing", "something"),
    *("everything", "anything", "nobody", "somebody", "everybody", "anybody"),
}
WEAK = RELATIVE | ARTICLES | PRONOUNS
MOST_RELATIVE = 0.02  # of the docstrings of a room
MOST_WEAK = 0.10  # of the docstrings of the package: relative words, articles and pronouns
MOST_WORDS = 25
MOST_LONG = 0.05  # of the sentences of a room, and of the pages
# Tables that programs write, and lists of names.
GENERATED = {"coverage.md", "coverage_random.md", "programs.md", "packages.md"}


def room(path: Path) -> str:
    parts = path.relative_to(ROOT / "tracejit").parts
    if parts[0] in ("core", "jit"):
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]
    return parts[0] if len(parts) > 1 else "top"


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each docstring of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def opening(text: str) -> str:
    found = re.search(r"[A-Za-z']+", text)
    return found.group().lower() if found else ""


def prose(text: str) -> str:
    """Return a text without blocks, examples, tables, headings. A name in backticks is a word."""
    text = re.sub(r"^(```|~~~).*?^\1.*?$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    kept, code = [], False
    for line in text.splitlines():
        bare = line.strip()
        code = bare.startswith(">>>") or code and bool(bare)
        table = bare.startswith(("|", "#", "---", "===", "<")) or line.startswith("    ")
        field = re.match(r"\w\S*(, \w\S*)* {2,}\S", line)  # `name  meaning`: a row of a table
        if code or table or field or re.match(r"^([-*]|\d+\.) ", bare):
            kept.append("")
        if code or table:
            continue
        kept.append(re.sub(r"^([-*]|\d+\.) ", "", bare))
    return re.sub(r"`[^`\n]*(?:\n[^`\n]*)?`", "name", "\n".join(kept))


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        one_line = " ".join(paragraph.split())
        for sentence in re.split(r"(?<=[.!?:;])[)\"'*]*\s+(?=[^a-z]|name|[a-z]+\d)", one_line):
            if len(sentence.split()) > 1:
                yield sentence


def words(sentence: str) -> int:
    return len(re.findall(r"[A-Za-z0-9][\w'./-]*", sentence))


def files() -> list[Path]:
    return sorted((ROOT / "tracejit").rglob("*.py"))


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(page for page in found if page.name not in GENERATED)


@functools.cache
def all_docstrings() -> list[tuple[Path, int, str]]:
    return [(path, line, text) for path in files() for line, text in docstrings(path)]


def openings() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for path, _, text in all_docstrings():
        found.setdefault(room(path), Counter())[opening(text)] += 1
    return found


def long_sentences() -> dict[str, tuple[int, list[tuple[str, int, str]]]]:
    """Return {room or page: (sentences, those that are too long as (file, line, text))}."""
    found: dict[str, tuple[int, list[tuple[str, int, str]]]] = {}
    texts = [(room(path), path, line, text) for path, line, text in all_docstrings()]
    texts += [(page.name, page, 1, page.read_text()) for page in pages()]
    for name, path, line, text in texts:
        every = list(sentences(text))
        long = [(str(path.relative_to(ROOT)), line, s) for s in every if words(s) > MOST_WORDS]
        count, others = found.get(name, (0, []))
        found[name] = count + len(every), others + long
    return found


def share(counts: Counter[str], words: set[str]) -> float:
    return sum(counts[word] for word in words) / max(sum(counts.values()), 1)


def test_docstrings_open_with_a_verb_or_a_noun():
    every = openings()
    shares = {name: share(counts, RELATIVE) for name, counts in every.items()}
    assert {name: found for name, found in shares.items() if found >= MOST_RELATIVE} == {}
    assert share(sum(every.values(), Counter()), WEAK) < MOST_WEAK


def test_sentences_are_short():
    every = long_sentences()
    shares = {name: len(long) / max(count, 1) for name, (count, long) in every.items()}
    assert {name: found for name, found in shares.items() if found >= MOST_LONG} == {}


def test_openings_and_lengths_are_counted(tmp_path):
    path = tmp_path / "one.py"
    path.write_text('"""Whether it is.\n\n>>> 1\n1\n"""\ndef f():\n    """Add a `b c`. Stop."""\n')
    texts = [text for _, text in docstrings(path)]
    assert [opening(text) for text in texts] == ["whether", "add"]
    assert list(sentences(texts[0])) == ["Whether it is."]
    assert list(sentences(texts[1])) == ["Add a name."]
    assert words("one two, `three`: four-five.") == 4


if __name__ == "__main__":
    rooms = sys.argv[1:]
    for name, counts in sorted(openings().items()):
        relative, weak = (share(counts, wanted) for wanted in (RELATIVE, WEAK))
        print(f"{name:24} {sum(counts.values()):5} relative {relative:.3f} weak {weak:.3f}")
    for name, (count, long) in sorted(long_sentences().items()):
        print(f"{name:24} {count:5} sentences, too long {len(long) / max(count, 1):.3f}")
        if name in rooms:
            for file, line, text in long:
                print(f"    {file}:{line}: {text}")
