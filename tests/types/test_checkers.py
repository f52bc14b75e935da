"""What type checkers say of sound programs and of planted mistakes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.types.checkers import EXAMPLES, MISTAKES, PROGRAMS, Error, mypy, numbered, pyright

STRICT = "--strict"
# The examples leave types out where they say nothing; what they call is checked all the same.
UNTYPED = ("--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls")
KINDS = 11


@pytest.fixture(scope="module")
def planted() -> list[Error]:
    return mypy(sorted(MISTAKES.glob("*.py")))


def test_mypy_finds_planted_mistakes(planted: list[Error]) -> None:
    wanted = numbered(MISTAKES / "planted.py")
    found = {line for name, line, _ in planted if name == "planted.py"}
    assert len(wanted) == KINDS
    assert len(found & wanted) >= 10, sorted(wanted - found)
    assert found <= wanted


def test_mypy_finds_wrong_calls_of_captured_functions(planted: list[Error]) -> None:
    found = {line for name, line, _ in planted if name == "decorated.py"}
    assert found == numbered(MISTAKES / "decorated.py")


def test_strict_mypy_has_nothing_to_say_of_sound_programs() -> None:
    assert mypy(PROGRAMS, STRICT) == []


@pytest.mark.full
def test_mypy_has_nothing_to_say_of_sound_programs() -> None:
    assert mypy([*PROGRAMS, *EXAMPLES]) == []


def test_strict_mypy_has_nothing_to_say_of_the_examples() -> None:
    assert mypy(EXAMPLES, STRICT, *UNTYPED) == []


@pytest.mark.full
def test_pyright_has_nothing_to_say_of_sound_programs(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    assert pyright([*PROGRAMS, *EXAMPLES], tmp_path) == []


@pytest.mark.full
def test_pyright_finds_the_mistakes(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    found = pyright(sorted(MISTAKES.glob("*.py")), tmp_path)
    for path in MISTAKES.glob("*.py"):
        assert {line for name, line, _ in found if name == path.name} == numbered(path)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_programs_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import tracejit

    before = tracejit.get_default_dtype()
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        tracejit.set_default_dtype(before)
    assert capsys.readouterr().out
