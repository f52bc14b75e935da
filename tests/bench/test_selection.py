"""`--only` of the benchmarks: parts of names, and an end for a name that is not there."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser

import pytest

from bench.selection import chosen

NAMES = ["softmax", "MLP step", "tiny MLP step"]


def test_parts_of_names() -> None:
    assert chosen(NAMES, "", ArgumentParser()) == NAMES
    assert chosen(NAMES, "mlp", ArgumentParser()) == ["MLP step", "tiny MLP step"]
    assert chosen(NAMES, "tiny, soft", ArgumentParser()) == ["softmax", "tiny MLP step"]


@pytest.mark.parametrize("program", ["bench.eager", "bench.loops", "bench.npbench"])
def test_a_name_that_is_not_there_ends_the_program(
    program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(program)
    monkeypatch.setattr("bench.npbench.on_one_thread", lambda: None)
    with pytest.raises(SystemExit) as end:
        module.main(["--only", "nosuch"])
    assert end.value.code == 2
    assert "no name contains 'nosuch'; there are " in capsys.readouterr().err
