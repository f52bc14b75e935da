"""The planted faults of `tests/mutants.py` are there to be planted: their texts and tests exist."""

from __future__ import annotations

import pytest

from tests.mutants import GROUPS, ROOT, ROWS


@pytest.mark.parametrize("group", GROUPS)
def test_every_row_changes_one_place_of_the_code(group):
    for mutant in GROUPS[group]:
        assert (ROOT / mutant.file).read_text().count(mutant.old) == 1, (
            f"{mutant.area}: {mutant.what}: {mutant.file} has changed, write the row anew"
        )
        assert mutant.new != mutant.old


def test_every_row_names_tests_that_are_there():
    for _, mutant in ROWS:
        paths = [word for word in mutant.tests if word.startswith("tests/")]
        assert paths and all((ROOT / path.split("::")[0]).exists() for path in paths), mutant.what
