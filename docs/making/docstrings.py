"""Turn the package's docstrings into Markdown: rows of arguments, examples, plain sentences.

In: a docstring as the package writes them. Out: Markdown. Called by `live_names.py`.

>>> print(markdown_of("Scale x * y.\\n\\nby  a factor\\n    of two"))
Scale x \\* y.
<BLANKLINE>
- `by`: a factor of two
"""

import re

ROW = re.compile(r"(?P<name>[\w*./|,\" =-]*?\S) {2,}(?P<meaning>\S.*)$")
SPECIAL = re.compile(r"([*_<\[\]|#])")


def escaped(text: str) -> str:
    """Return a text whose characters mean themselves in Markdown, but for code in backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(p if p.startswith("`") else SPECIAL.sub(r"\\\1", p) for p in parts)


def markdown_of(text: str) -> str:
    """Return the Markdown of a docstring."""
    return "\n\n".join(filter(None, map(_block, re.split(r"\n\s*\n", text.strip()))))


def _block(block: str) -> str:
    if not block.strip():
        return ""
    lines = block.splitlines()
    first = next((k for k, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
    if first is not None:
        code = "\n".join(line.rstrip() for line in lines[first:])
        before = _block("\n".join(lines[:first])) if first else ""
        return f"{before}\n\n```pycon\n{code}\n```".strip()
    if ROW.match(lines[0]):
        return _rows(lines)
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    return escaped(" ".join(line.strip() for line in lines))


def _rows(lines: list[str]) -> str:
    rows: list[list[str]] = []
    for line in lines:
        found = ROW.match(line)
        if found and not line.startswith(" "):
            rows.append([found["name"], found["meaning"]])
        elif rows:
            rows[-1][1] += " " + line.strip()
    return "\n".join(f"- `{name}`: {escaped(meaning)}" for name, meaning in rows)
