"""Messages of the compiler, found in its source: what a program of these tables must reach.

In: the files of tracejit/jit. Out: a `Template` for each text that users can meet. Called by
`test_messages.py`; `python -m tests.errors.messages` prints those that no program reaches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("unreached.txt")
HOLE = "{}"  # what stands for a part that is computed
PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")  # at least two words in a row
CODE = re.compile(  # texts of generated code
    r"\n| = |\{\} is not|\bin range\(|\breturn |^ *(if|for|def|from|import) |__class__|_storage"
    r"|_strides|\\d|# |\{\}\.|\{\}\w*\(|\bactive\.|\bever\b|default[._]|autocast\.state|copysign"
    r"|<frozen|type\(|_node ")
# Files whose texts are lines of a log or of a terminal, or notes on errors: tests/test_logs.py,
# tests/lowering/test_apart.py, tests/runtime/test_progress.py and test_backward_lines.py have them.
SHOWN = ("lowering/apart.py", "runtime/program_logs.py", "runtime/progress.py", "jit/call_notes.py")
# Files whose texts are lines of native code.
WRITES_NATIVE_CODE = re.compile(r"runtime/(eager_\w+|native_replay|native_start)\.py$")
LITERAL = 8  # letters that make a text recognisable


@dataclass(frozen=True)
class Template:
    """A text with holes, and where it stands."""

    text: str
    where: str

    def pattern(self) -> re.Pattern[str]:
        """Return what finds it in a message: as a clause, and in most rooms within one."""
        pieces = map(re.escape, self.text.split(HOLE))
        within = "" if re.search("jit/(ir|lowering)/", self.where) else r"|(?<=\s)"
        start = rf"(?:^|(?<=[:,;>] )|(?<=[(\n]){within})" if self.text[:1].isalnum() else ""
        return re.compile(start + "(.+?)".join(pieces), re.S)

    def letters(self) -> int:
        return sum(map(str.isalpha, self.text.replace(HOLE, "")))


def templates(root: Path = ROOT / "tracejit" / "jit") -> list[Template]:
    """Return the messages of all files, each text once."""
    found: dict[str, Template] = {}
    for path in sorted(root.rglob("*.py")):
        if path.as_posix().endswith(SHOWN) or WRITES_NATIVE_CODE.search(path.as_posix()):
            continue
        for line, text in _texts(ast.parse(path.read_text())):
            found.setdefault(text, Template(text, f"{path.relative_to(root.parent)}:{line}"))
    return [t for t in found.values() if t.letters() >= LITERAL]


def _texts(node: ast.AST, raised: bool = False, kept: bool = True) -> Iterator[tuple[int, str]]:
    """Texts that are raised, and others that are prose: no docstrings, code or lists of names."""
    text = _text(node)
    if text is not None:
        prose = PROSE.search(text) and not CODE.search(text) and not text.startswith("<")  # a repr
        if kept and (raised or prose):
            yield node.lineno, text  # type: ignore[attr-defined]
        for part in getattr(node, "values", ()):
            if isinstance(part, ast.FormattedValue) and not isinstance(part.value, ast.Constant):
                yield from _texts(part.value, raised, kept)
        return
    if isinstance(node, ast.stmt):
        raised, kept = isinstance(node, ast.Raise), True
    elif isinstance(node, ast.Call) and _called(node) in ("split", "relies", "compile", "emit"):
        kept = False
    for name in node._fields:
        found = getattr(node, name, None)
        for child in found if isinstance(found, list) else (found,):
            if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                if not (isinstance(node, ast.Expr) and isinstance(child, ast.Constant)):
                    yield from _texts(child, raised, kept)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(v.value if isinstance(v, ast.Constant) else HOLE for v in node.values)


def reached(known: Iterable[Template], texts: Iterable[str]) -> set[str]:
    """Return the messages found in these texts; of those that begin at one place the longest."""
    found: set[str] = set()
    patterns = [(t, max(t.text.split(HOLE), key=len), t.pattern()) for t in known]
    for text in set(texts):
        longest: dict[int, Template] = {}
        for template, piece, pattern in patterns:
            for match in pattern.finditer(text) if piece in text else ():
                if template.text.startswith(HOLE):
                    found.add(template.text)
                    continue
                other = longest.get(match.start())
                if other is None or other.letters() < template.letters():
                    longest[match.start()] = template
        found |= {t.text for t in longest.values()}
    return found


def shown() -> list[str]:
    """Return the texts that programs show: of the tables, and hints, which `test_hints.py` has."""
    from tests.errors.test_errors import ENTRIES
    from tracejit.jit.capture.hints import CURES

    return [text for entry in ENTRIES for text in entry.texts] + [hint for hint, _ in CURES]


def listed() -> list[str]:
    """Return the messages that no program reaches, as listed; `#` begins a reason."""
    lines = LIST.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main() -> None:
    """Print what is neither reached nor listed, and what is listed and should not be."""
    known, expected = templates(), listed()
    texts = shown()
    seen = reached(known, texts)
    for template in known:
        if template.text not in seen and template.text not in expected:
            print(f"{template.where}: {template.text!r}")
    print(f"{len(texts)} texts; of {len(known)} messages they reach {len(seen)}")


if __name__ == "__main__":
    main()
