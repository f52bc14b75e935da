"""Summaries of tensors for notebooks: true, escaped, and without a read while capturing."""

import re
import xml.etree.ElementTree

import pytest

import tracejit
from tracejit.nn import parameter


def rows(x):
    html = x._repr_html_()
    xml.etree.ElementTree.fromstring(f"<div>{html}</div>")
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", html)), html


def test_a_summary_has_what_a_reader_looks_for():
    found, html = rows(tracejit.tensor([[1.0, 2.0, 6.0], [0.0, -3.0, 0.0]]))
    assert found == {"shape": "2×3", "dtype": "float32", "device": "cpu", "grad": "not required",
                     "min": "-3", "mean": "1", "max": "6"}
    assert "<pre>tensor([[ 1.,  2.,  6.]," in html


def test_gradients_are_told():
    x = tracejit.ones(2, requires_grad=True)
    assert rows(x)[0]["grad"] == "required"
    y = x * 2
    assert rows(y)[0]["grad"] == "of MulBackward0"
    assert "&lt;MulBackward0&gt;" in rows(y)[1]
    y.sum().backward()
    assert rows(x)[0]["grad"] == "required, and there is one"


@pytest.mark.parametrize(("x", "least", "mean", "greatest"), [
    (tracejit.tensor([True, False]), "False", "0.5", "True"),
    (tracejit.tensor(7), "7", "7", "7"),
    (tracejit.ones(3, dtype=tracejit.bfloat16), "1", "1", "1"),
    (tracejit.tensor([1.0, float("nan")]), "nan", "nan", "nan"),
])
def test_statistics(x, least, mean, greatest):
    found, _ = rows(x)
    assert (found["min"], found["mean"], found["max"]) == (least, mean, greatest)


@pytest.mark.parametrize("x", [
    tracejit.tensor([]), tracejit.tensor([1 + 2j]), tracejit.ones(2, device="meta"),
    parameter.UninitializedBuffer(), tracejit.nn.Parameter(tracejit.zeros(0, 3)),
])
def test_no_statistics_where_there_are_none(x):
    found, html = rows(x)
    assert not {"min", "mean", "max"} & {*found} and "<pre>" in html


def test_a_look_while_capturing_reads_nothing():
    @tracejit.script(fullgraph=True)
    def f(x):
        y = x * 2
        return y + 1, y._repr_html_(), x._repr_html_()

    for value in (1.0, 5.0):
        y, *looks = f(tracejit.full((3,), value))
        assert y.tolist() == [2 * value + 1] * 3
        for html in looks:
            assert "<td style=\"text-align:left\">3</td>" in html and "<pre>" not in html
            assert "not known while a function is captured" in html
    assert (f.report().compiles, f.report().cache_hits) == (1, 1)
    assert f(tracejit.ones(4))[1].count(">4<") == 1, "another size is another text"


def test_a_capture_that_is_over_leaves_a_tensor_that_can_be_looked_at():
    kept = []

    @tracejit.script
    def f(x):
        kept.append(x * 2)
        return x

    f(tracejit.ones(2))
    assert "<td" in kept[0]._repr_html_()
