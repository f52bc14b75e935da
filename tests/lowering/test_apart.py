"""Reasons why groups stay apart: in words, with the user's lines, and true."""

import pytest

import tracejit as tj
from tracejit import config


def two_steps(x):
    return (x - x.exp().mean()).tanh()


def rows_and_elements(x):
    rows = x.exp().sum(dim=1).sqrt()
    return rows, x * 2


def of_the_library(x):
    return x.cumsum(0) * 2


def rows_taken(x):
    h = (x.exp() + 1).log().tanh() * x.sin()
    return h[[0, 1, 1, 0, 2]] * 2


def added_by_index(x):
    return tj.zeros(6).index_add(0, tj.tensor([0, 1, 1]), x.exp()[0, :3]) * 2


REASONS = [
    (two_steps, "`sum` ({line} return (x - x.exp().mean()).tanh()) is stored for `tanh`",
     "a reduction to one element takes two steps: one for each chunk, then one over them"),
    (rows_and_elements, "`mul` ({line} return rows, x * 2) and `sqrt`",
     "both read `x`: their loops differ: x.shape[0]*x.shape[1] elements and x.shape[0] rows"),
    (of_the_library, "`cumsum` ({line} return x.cumsum(0) * 2) is stored for `mul`",
     "`cumsum` is a kernel of the library, which reads and writes memory"),
    (rows_taken, "`mul` ({line} h = (x.exp() + 1).log().tanh() * x.sin()) is stored for `mul`",
     "their loops differ: x.shape[0]*x.shape[1] elements and x.shape[1]*in1.shape[0] elements"),
    (added_by_index, "is stored for `index_put_add`", "writing where an index says needs a whole "
     "tensor first, and loops of its own"),
]


def said(function, *arguments, capsys):
    with config.override(logs="fusion", mode="python"):
        tj.script(function)(*arguments)
    return [line for line in capsys.readouterr().err.splitlines() if "] apart: " in line]


@pytest.mark.parametrize(("function", "what", "why"), REASONS)
def test_a_reason_names_the_lines_and_the_cause(function, what, why, capsys):
    x = tj.ones(300, 200) if function is two_steps else tj.ones(4, 6)
    lines = said(function, x, capsys=capsys)
    before, _, after = what.partition("{line}")
    found = [line for line in lines if before in line and after in line and why in line]
    assert found, lines
    assert "test_apart.py:" in found[0]


def test_one_kernel_has_no_reason(capsys):
    assert said(lambda x: (x * 2).tanh() + 1, tj.ones(3), capsys=capsys) == []
