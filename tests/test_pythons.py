"""Other Pythons of a machine are found on PATH and where pyenv keeps them."""

import sys
from pathlib import Path

from tests import pythons

ROOT = Path(__file__).resolve().parent.parent


def interpreter(folder, version):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"python{version}").write_text("")
    return folder / f"python{version}"


def test_path_comes_before_pyenv_and_what_does_not_start_is_passed_over(tmp_path):
    shim = interpreter(tmp_path / "shims", "3.12")
    kept = interpreter(tmp_path / ".pyenv/versions/3.12.1/bin", "3.12")
    first = interpreter(tmp_path / "bin", "3.13")
    interpreter(tmp_path / ".pyenv/versions/3.13.0/bin", "3.13")
    places = pythons.folders(f"{tmp_path / 'shims'}:{tmp_path / 'bin'}", tmp_path)
    says = {shim: None, kept: (3, 12), first: (3, 13)}
    paths = pythons.found([(3, 12), (3, 13), (3, 14)], places, says.get)
    assert paths == {(3, 12): kept, (3, 13): first}


def test_an_interpreter_is_asked_for_its_version(tmp_path):
    assert pythons.answers(sys.executable) == sys.version_info[:2]
    assert pythons.answers(interpreter(tmp_path, "3.12")) is None


def test_the_slice_names_tests_that_are_there():
    lines = (ROOT / "tests/slice.txt").read_text().splitlines()
    named = [line.split("::") for line in lines if not line.startswith("#")]
    assert named and [file for file, *_ in named if not (ROOT / file).exists()] == []
    assert [(file, test) for file, *tests in named for test in tests
            if f"def {test}(" not in (ROOT / file).read_text()] == []
