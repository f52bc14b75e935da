"""Reports: what they count, and that they can be read on a terminal."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import tracejit
from tracejit.debug.report import abbreviated

WIDTH = 110


@pytest.fixture
def scaled():
    """A function that was recorded once and replayed twice, the second time at other sizes."""

    @tracejit.script
    def scaled(x, w, factor):
        return (x * w * factor).tanh().sum(dim=1)

    for rows, factor in ((4, 0.5), (4, 2.0), (9, 2.0)):
        scaled(tracejit.ones(rows, 3), tracejit.ones(3), factor)
    return scaled


def test_counts(scaled):
    report = scaled.report()
    assert (report.compiles, report.variants) == (1, 1)
    assert (report.cache_misses, report.cache_hits) == (1, 2)
    assert (report.recompiles, report.breaks) == ([], [])
    stages = {"recording", "guards", "passes", "imports", "lowering", "kernels"}
    assert {"recording", "guards"} <= set(report.compile_seconds) <= stages


def test_bytes_are_those_of_the_last_sizes(scaled):
    (kernel,) = scaled.report().kernels
    # x, w and the factor (float64); a row's sum.
    assert (kernel.bytes_read, kernel.bytes_written) == (9 * 3 * 4 + 3 * 4 + 8, 9 * 4)
    assert kernel.loops == 1 and {"mul", "tanh", "sum"} <= set(kernel.ops)


def test_guards_are_one_line_for_each_place(scaled):
    guards = scaled.report().guards
    paths = [guard.split(":")[0] for guard in guards]
    assert [path.rpartition(".")[2] for path in paths] == [
        "mode", "scaled", "x", "class Tensor", "w", "factor", "sizes"
    ]  # fmt: skip
    assert guards[2] == (
        "x: float32, 2 dimensions, requires_grad=False, neither made in inference mode "
        "nor from .data, contiguous")
    assert guards[5] == "factor: float, any value"
    assert guards[-1].startswith("sizes: x.shape[1] == w.shape[0] (test_report.py:")


def test_it_begins_with_a_summary(scaled):
    scaled(tracejit.ones(4, 3).double(), tracejit.ones(3), 1.0)
    scaled.profile(tracejit.ones(4, 3), tracejit.ones(3), 1.0)
    report = scaled.report()
    lines = report.summary()
    assert lines[0] == "scaled: calls recorded 2, replayed 2; programs made 2, kept 2"
    stages = r"\(recording [\d.]+, guards [\d.]+, passes [\d.]+, lowering [\d.]+, kernels [\d.]+\)"
    assert re.fullmatch(rf"  compiling [\d.]+ s {stages}", lines[1])
    assert re.fullmatch(r"  2 kernels and calls; \d+ guards; memory 0\.0 KiB", lines[2])
    assert lines[3].startswith("  recompiled once: x: float32 -> float64, shape [4, 3]")
    assert re.match(r"  slow: [\d.]+ us  \w+ at .*test_report\.py:\d+$", lines[4])
    assert len(lines) == 5 and str(report).splitlines()[:6] == [*lines, ""]


def test_a_summary_has_at_most_ten_lines():
    @tracejit.script
    def f(x, n, broken):
        for k in range(9):
            x = x.cumsum(0) @ x.t().cumsum(0) * k
        return x.int() if broken and x.sum().item() > 0 else x * n.bit_length()

    for n in range(12):
        f(tracejit.ones(3, 3), 2**n, n > 9)
    f.profile(tracejit.ones(3, 3), 1, False)
    report = f.report()
    assert len(report.kernels) > 20 and report.breaks and len(report.recompiles) > 9
    lines = report.summary()
    assert len(lines) == 10 and max(map(len, lines)) <= WIDTH
    assert [line.split(":")[0].split()[0] for line in lines[3:]] == [
        "recompiled", "broke", *["slow"] * 5]
    text, whole = str(report), str(f.report(verbose=True))
    assert "more kernels: report(verbose=True)" in text and "more causes" in text
    assert "  guard: " in whole and "  guard: " not in text and "verbose=True" not in whole
    assert "x = x.cumsum(0) @ x.t().cumsum(0) * k" in whole, "kernels name their lines"


def test_details_are_a_table(scaled):
    scaled(tracejit.ones(4, 3).double(), tracejit.ones(3), 1.0)
    lines = scaled.report().details()
    assert lines[0].split() == ["launched,", "in", "order", "loops", "KiB", "moved", "ops"]
    ops = lines[0].index("ops")
    for line in lines[1:3]:
        assert line[ops - 2 : ops] == "  " and line[ops:].split()[-1] == "sum", line
    assert lines[3].startswith("  recompiled: x: float32, 2 dimensions")
    assert max(map(len, lines[:3])) <= WIDTH


def test_profiling_writes_nothing_and_orders_kernels_by_their_time():
    total, x = tracejit.zeros(3), tracejit.ones(300, 3)

    @tracejit.script
    def add(x):
        total.add_((x @ x.t() @ x).exp().sum(dim=0))
        return total + tracejit.rand(3)

    add(x)
    before, state = total.clone(), tracejit.get_rng_state()
    report = add.profile(x)
    assert tracejit.equal(total, before) and tracejit.equal(state, tracejit.get_rng_state())
    assert (x == 1).all() and report.cache_hits == 0
    seconds = [kernel.seconds for kernel in report.slowest]
    assert len(seconds) == len(report.kernels) and seconds == sorted(seconds, reverse=True)
    assert min(seconds) > 0
    with pytest.raises(NotImplementedError, match="mode='compiled'"):
        tracejit.script(lambda x: x + 1, mode="graph").profile(x)


def test_html_of_a_report_holds_its_text():
    @tracejit.script
    def positive(x):
        if x.sum() > 0:
            return x < 2
        return x.long()

    positive(tracejit.ones(2))
    html = positive.report()._repr_html_()
    assert html.startswith("<pre>positive: calls recorded 1") and "if x.sum() &gt; 0:" in html
    assert "<details><summary>breaks: " in html and "<script" not in html
    xml.etree.ElementTree.fromstring(f"<div>{html}</div>")


def test_a_break_is_shown_with_its_line():
    @tracejit.script
    def positive(x):
        if x.sum() > 0:
            return x
        return x.long()  # another type than the other side gives

    positive(tracejit.ones(2))
    lines = str(positive.report()).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("  break: "))
    assert "test_report.py:" in lines[at] and lines[at].endswith("if x.sum() > 0:")
    assert "branch" in lines[at + 1]


def test_what_to_do_depends_on_the_cause():
    @tracejit.script
    def f(x, n):
        return x.sum(n) if x.shape[0] > 2 else x

    f(tracejit.ones(4, 1, 1), 1)
    f(tracejit.ones(4, 1, 1), 2)
    f(tracejit.ones(1, 1, 1), 2)
    f(tracejit.ones(4, 1, 1, 1), 2)
    value, size, kind = f.report().recompiles
    assert (value.path, value.old, value.new) == ("n", "== 1", "2")
    assert "each value of this int needs a program" in value.hint
    assert size.path.startswith("size x.shape[0] at ") and "asks about this size" in size.hint
    assert "of another kind" in kind.hint and kind.path == "x"


def test_what_a_hint_says_to_do_works():
    @tracejit.script
    def repeated(x, n):
        for k in range(n):
            x = x * 0.5 + k
        return x

    @tracejit.script
    def over_size(x, rows):
        for k in range(len(rows)):
            x = x * 0.5 + k
        return x

    x = tracejit.ones(3)
    for n in (4, 20, 33):
        assert tracejit.equal(repeated(x, n), over_size(x, tracejit.zeros(n)))
    assert {r.hint.partition(" (")[2] for r in repeated.report().recompiles} == {
        "a loop over a tensor's size needs one program for all)"}
    assert (over_size.report().compiles, over_size.report().breaks) == (1, [])


def test_hints_of_questions_texts_and_floats():
    @tracejit.script
    def f(x, rate, kind):
        if kind == "double":
            return x.pow(2 if rate > 0.5 else 3)
        return x * hash(rate)

    x = tracejit.ones(3)
    for rate, kind in ((0.75, "double"), (0.25, "double"), (0.25, "other"), (0.5, "other")):
        f(x, rate, kind)
    hints = [recompile.hint for recompile in f.report().recompiles]
    assert "another answer needs another program" in hints[0]
    assert hints[1] == "each value needs a program of its own; pass few values"
    assert "else each value needs a program" in hints[2]


def test_the_file_of_a_kernel_holds_its_text(scaled):
    (kernel,) = scaled.report().kernels
    with open(kernel.file) as file:
        assert file.read() == kernel.source


@pytest.mark.parametrize(("ops", "text"), [
    ([], ""),
    (["exp"], "exp"),
    (["exp"] * 3, "exp*3"),
    (["mul", "add"] * 4, "(mul add)*4"),
    (["mul", "add", "mul"], "mul add mul"),
    (list("abbcdefghijj"), "a b*2 c d e f g h i + 2 more"),
])
def test_op_names_are_abbreviated(ops, text):
    assert abbreviated(ops) == text


def test_a_break_that_differs_by_versions_alone_is_told_once():
    w, x = tracejit.ones(2, requires_grad=True), tracejit.ones(2)

    @tracejit.script
    def step():
        result = (w * w * x).sum()
        with tracejit.no_grad():
            w.mul_(0.5)
        return result

    for _ in range(4):
        step()
    (found,) = step.report().breaks
    assert "was written since" in found.reason and "version" not in found.reason


def test_a_report_counts_what_this_process_compiled(tmp_path):
    program = ("import tracejit as tj\nf = tj.script(lambda x: (x * 7).tanh() + 2)\n"
               "f(tj.ones(4))\nprint(f.report().kernels_compiled, len(f.report().kernels))")
    environment = {**os.environ, "TRACEJIT_CACHE_DIR": str(tmp_path), "TRACEJIT_MODE": "compiled"}
    said = [subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True,
                           text=True, check=True).stdout for _ in range(2)]
    assert said == ["1 1\n", "0 1\n"]
