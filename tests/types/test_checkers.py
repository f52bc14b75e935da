"""What type checkers say of sound programs and of planted mistakes."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.types.checkers import EXAMPLES, MISTAKES, PROGRAMS, Error, mypy, numbered, pyright

# The examples leave out types of their own functions.
UNTYPED = ("[no-untyped-def]", "[no-untyped-call]")
KINDS = 11


@pytest.fixture(scope="module")
def strict() -> list[Error]:
    """One run for all files: the first has to read the whole package."""
    return mypy([*sorted(MISTAKES.glob("*.py")), *PROGRAMS, *EXAMPLES], "--strict")


@pytest.fixture(scope="module")
def planted(strict: list[Error]) -> list[Error]:
    return [error for error in strict if error[0] in ("planted.py", "decorated.py")]


def test_mypy_finds_planted_mistakes(planted: list[Error]) -> None:
    wanted = numbered(MISTAKES / "planted.py")
    found = {line for name, line, _ in planted if name == "planted.py"}
    assert len(wanted) == KINDS
    assert len(found & wanted) >= 10, sorted(wanted - found)
    assert found <= wanted


def test_mypy_finds_wrong_calls_of_captured_functions(planted: list[Error]) -> None:
    found = {line for name, line, _ in planted if name == "decorated.py"}
    assert found == numbered(MISTAKES / "decorated.py")


def test_strict_mypy_has_nothing_to_say_of_sound_programs(strict: list[Error]) -> None:
    names = {path.name for path in PROGRAMS}
    assert [error for error in strict if error[0] in names] == []


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0",
    reason="NumPy before 2.2 gives ndarray no default type arguments",
)
def test_strict_mypy_has_nothing_to_say_of_the_examples(strict: list[Error]) -> None:
    names = {path.name for path in EXAMPLES}
    assert [error for error in strict if error[0] in names and not error[2].endswith(UNTYPED)] == []


@pytest.mark.full
def test_mypy_has_nothing_to_say_of_sound_programs() -> None:
    assert mypy([*PROGRAMS, *EXAMPLES]) == []


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
