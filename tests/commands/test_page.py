"""The page of the command line is as the parsers are; every command has an example that parses."""

import shlex

import pytest

from tests.command_line_page import PAGE, page
from tracejit.commands import parsers

EVERY = list(parsers.every(parsers.parser()))


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run `python -m tests.command_line_page`"


@pytest.mark.parametrize("made", EVERY, ids=[made.prog for made in EVERY])
def test_every_command_has_help_and_examples(made):
    assert made.description and made.description.endswith(".") and made.examples
    assert "examples:" in made.format_help()
    for action in made._actions:
        assert action.help or action.dest in ("action", "command"), (made.prog, action.dest)


@pytest.mark.parametrize("line", [line for made in EVERY for line in made.examples])
def test_examples_parse(line):
    words = shlex.split(line.partition(" | ")[0])
    own, rest = parsers.split(words)
    options = parsers.parser().parse_args(own)
    assert options.command == words[0] and own + rest == words
