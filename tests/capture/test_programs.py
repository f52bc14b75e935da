"""Every program shows the same plainly and captured, under script and trace, in every mode (C1,
C2)."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.capture import (
    programs_autograd,
    programs_dynamic,
    programs_found,
    programs_mutation,
    programs_random,
    programs_staleness,
)
from tracejit import config

PROGRAMS = (
    programs_mutation.PROGRAMS
    + programs_dynamic.PROGRAMS
    + programs_random.PROGRAMS
    + programs_staleness.PROGRAMS
    + programs_autograd.PROGRAMS
    + programs_found.PROGRAMS
)
MODES = ("graph", "python", "compiled")


def plain(function):
    return function


def seen(value):
    """What a program shows, as comparable Python."""
    if isinstance(value, tj.Tensor):
        return [
            "tensor",
            str(value.dtype),
            value.requires_grad,
            np.array(value.detach().numpy(), copy=True),
        ]
    if isinstance(value, dict):
        return {k: seen(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [seen(v) for v in value]
    return value


def assert_same(got, expected, path="result"):
    if isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), path
        for k, (g, e) in enumerate(zip(got, expected)):
            assert_same(g, e, f"{path}[{k}]")
    elif isinstance(expected, dict):
        assert list(got) == list(expected), path
        for k in expected:
            assert_same(got[k], expected[k], f"{path}[{k!r}]")
    elif isinstance(expected, np.ndarray):
        assert got.shape == expected.shape and got.dtype == expected.dtype, path
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6, err_msg=path)
    elif isinstance(expected, float) and expected != expected:
        assert got != got, path
    else:
        assert got == expected, path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_scripted_program_shows_what_the_plain_one_does(program, mode):
    tj.manual_seed(0)
    expected = seen(program(plain))
    tj.manual_seed(0)
    with config.override(mode=mode):
        got = seen(program(tj.script))
    assert_same(got, expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_traced_program_shows_what_the_plain_one_does(program):
    tj.manual_seed(0)
    expected = seen(program(plain))
    tj.manual_seed(0)
    with config.override(mode="graph"):
        got = seen(program(tj.trace))
    assert_same(got, expected)


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 60
