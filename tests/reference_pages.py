"""`python -m tests.reference_pages`: pages made from declarations, which therefore are true.

In: the flags of `tracejit.config`, the list in `tracejit.additions`, the names of the reference.
Out: `docs/flags.md`, `docs/additions.md` and `docs/api/index.md`. `tests/test_reference_pages.py`
compares them with what this makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tracejit import config
from tracejit.additions import ADDITIONS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

FLAGS = """# Flags

Each flag has a variable of the environment, read at `import tracejit`, and an attribute of
`tracejit.config.flags`, which a program may assign at any time. A bad value is an error that names
the values there are. Flags hold for the whole process.

```python
import tracejit

tracejit.config.flags.max_entries = 64
with tracejit.config.override(mode="python"):    # for the length of the block
    print(tracejit.config.flags.mode)
```

```text
python
```

`print(tracejit.config.table())` shows the values of this process.

| variable | attribute | values | default | meaning |
| --- | --- | --- | --- | --- |
"""

KEY = """
`*`: a program compiled under one value does not serve a call under another.
"""

LOGS = """
## Artifacts of `TRACEJIT_LOGS`

`TRACEJIT_LOGS=guards,breaks python program.py` writes these to stderr, each line marked with its
artifact. Nothing is made of what is not asked for.

| artifact | what is written |
| --- | --- |
"""

PASSES = """
## Passes of `TRACEJIT_PRINT_AFTER`

`TRACEJIT_PRINT_AFTER=fold,dce python program.py` writes each graph to stderr after these passes.

| pass | what it does |
| --- | --- |
"""

OURS = """# Names of our own

These names of `tracejit` are not PyTorch's. All others that `dir(tracejit)` lists are, and do what
PyTorch's do; [limits.md](limits.md) has the exceptions.

| name | it |
| --- | --- |
"""


def default_of(flag: config.Flag) -> str:
    """Return the default as a reader would set it."""
    if flag.default_text:
        return f"`{flag.default_text}`"
    value = flag.default()
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return f"`{int(value) if isinstance(value, bool) else value}`"


def flags() -> str:
    """Return the page of flags."""
    rows = [
        f"| `{flag.env}` | `{name}`{'*' * flag.in_cache_key} | {flag.values} | {default_of(flag)} "
        f"| {flag.help} |"
        for name, flag in config.DECLARED.items()
    ]
    artifacts = [f"| `{name}` | {text} |" for name, text in config.ARTIFACTS.items()]
    passes = [f"| `{name}` | {text} |" for name, text in config.PASSES.items()]
    parts = [FLAGS, *_lines(rows), KEY, LOGS, *_lines(artifacts), PASSES, *_lines(passes)]
    return "".join(parts)


def additions() -> str:
    """Return the page of our own names."""
    return OURS + "".join(_lines([f"| `{name}` | {text} |" for name, text in ADDITIONS.items()]))


API = """# API reference

The site that `make docs` builds has a page for each part below, with every docstring. Here each
part leads to the files that list its names: stubs (`.pyi`) have the signatures.
`help(tracejit.nn.Linear)` prints a docstring anywhere.

| part | holds | files |
| --- | --- | --- |
"""


def api() -> str:
    """Return the start of the reference as a reader without the site sees it."""
    sys.path.insert(0, str(DOCS / "making"))
    try:
        import names
    finally:
        sys.path.remove(str(DOCS / "making"))
    rows = []
    for title, text, places in names.all_pages().values():
        files = dict.fromkeys(_file_of(names.owner(place)) for place in places)
        links = ", ".join(f"[{file}](../../{file})" for file in files)
        rows.append(f"| {title} | {text} | {links} |")
    return API + "".join(_lines(rows))


def _file_of(place: object) -> str:
    """Return the file that lists the names of a module or class: its stub if there is one."""
    module = sys.modules[getattr(place, "__module__", None) or place.__name__]
    source = Path(str(module.__file__))
    stub = source.with_suffix(".pyi")
    return (stub if stub.exists() else source).relative_to(ROOT).as_posix()


def _lines(rows: list[str]) -> list[str]:
    return [f"{row}\n" for row in rows]


PAGES = {"flags.md": flags, "additions.md": additions, "api/index.md": api}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(page())
