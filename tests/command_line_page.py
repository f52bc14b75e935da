"""`python -m tests.command_line_page`: writes docs/command_line.md from the parsers' own help.

In: `tracejit/commands/parsers.py`. Out: the page, which `tests/commands/test_page.py` compares.
argparse's own layout is not used: it differs between versions of Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tracejit.commands import parsers

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command_line.md"
HEAD = """\
# Command line

`python -m tracejit command`; each command and action has `--help`. Written by
`python -m tests.command_line_page` from the parsers' own help.

| exit status | meaning |
| --- | --- |
| 0 | all is well |
| 1 | failure: something is broken, missing or damaged, or the program that `run` ran raised |
| 2 | wrong use: an unknown word, or a file that is not there |
| 130 | Ctrl-C |
| 141 | the reader of the output is gone, as in `python -m tracejit check . \\| head -1` |

An error is one line on stderr. `python -X dev -m tracejit` shows the traceback of an error of
tracejit's own. `run` prints the errors of the program as Python does, from its first frame on.
"""


def page() -> str:
    """Return the page."""
    return HEAD + "".join(_section(made) for made in parsers.every(parsers.parser()))


def _section(made: parsers.Parser) -> str:
    words = made.prog.removeprefix(parsers.PROGRAM).strip()
    level = "#" * (1 + max(1, len(words.split())))
    text = f"\n{level} {words or 'All commands'}\n\n{made.description}\n"
    rows = list(_rows(made))
    if rows:
        text += "\n| word | meaning |\n| --- | --- |\n"
        text += "".join(f"| {word} | {meaning} |\n" for word, meaning in rows)
    lines = "".join(f"{parsers.PROGRAM} {line}\n" for line in made.examples)
    return text + (f"\n```sh\n{lines}```\n" if lines else "")


def _rows(made: parsers.Parser) -> Iterator[tuple[str, str]]:
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"`{choice.dest}`", choice.help or ""
        elif isinstance(action, argparse._VersionAction):
            yield f"`{action.option_strings[0]}`", "show the version"
        elif not isinstance(action, argparse._HelpAction):
            value = "" if action.nargs == 0 else str(action.metavar or action.dest)
            words = f"{', '.join(action.option_strings)} {value}".strip()
            yield f"`{words}`", (action.help or "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
