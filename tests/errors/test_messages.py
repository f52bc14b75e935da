"""A message of the compiler is reached by a program of these tables, or listed with the reason."""

from __future__ import annotations

import functools
import re
import textwrap
from collections import Counter

from tests.errors.messages import LIST, listed, reached, shown, templates
from tests.errors.test_errors import FAMILIES

# As many may be listed; with each program that reaches another one there are fewer.
MOST = 162


@functools.cache
def unreached():
    """Return the messages that no program reaches."""
    known = templates()
    found = reached(known, shown())
    return sorted({t.text for t in known} - found)


def test_every_message_has_a_program_or_a_reason():
    assert FAMILIES  # they are imported
    missing = sorted(set(unreached()) - set(listed()))
    assert missing == [], "write a program in tests/errors that shows it"


def test_the_list_only_shrinks():
    assert sorted(set(listed()) - set(unreached())) == [], "reached, or gone: take it off the list"
    assert [text for text, count in Counter(listed()).items() if count > 1] == []
    assert len(listed()) == MOST, "as many as are listed; never more than before"


def test_every_part_of_the_list_has_a_reason():
    for part in LIST.read_text().strip().split("\n\n"):
        assert re.match(r"(# \S.{9,}\n)+[^#\n]", part), part


def messages_of(tmp_path, code):
    (tmp_path / "file.py").write_text(textwrap.dedent(code))
    return [template.text for template in templates(tmp_path)]


def test_messages_are_found_in_source(tmp_path):
    assert messages_of(tmp_path, '''
        """A docstring of a module is no message."""
        def f(x, name):
            """And so is this one no message."""
            note(f"the shape of {name} depends on values", "keep the shape as it is")
            if x:
                raise ValueError(f"wrongness: {x}" if name else "otherwise")
            names = "these are names that".split()
            code = f"if {x} is not {name}: return 1"
    ''') == ["the shape of {} depends on values", "keep the shape as it is", "wrongness: {}",
             "otherwise"]  # fmt: skip


def test_the_longest_message_counts(tmp_path):
    messages_of(tmp_path, '''
        note(f"calls the function {x}")
        note(f"calls the function {x}, whose effects cannot be seen")
        note(f"{x} is a list that grows")
    ''')
    known = templates(tmp_path)
    assert reached(known, ["why: calls the function f"]) == {known[0].text}
    assert reached(known, ["calls the function f, whose effects cannot be seen"]) == {
        known[1].text}
    assert reached(known, ["the loop runs as Python: kept is a list that grows"]) == {
        known[2].text}
