"""Reports: what they count, and that they can be read on a terminal."""

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
    stages = {"recording", "guards", "passes", "lowering", "kernels"}
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
    assert guards[-1].startswith("sizes: in0.size[1] == in1.size[0] (test_report.py:")


def test_it_reads_well(scaled):
    scaled(tracejit.ones(4, 3).double(), tracejit.ones(3), 1.0)
    lines = str(scaled.report()).splitlines()
    assert lines[0] == "scaled: calls recorded 2, replayed 2; programs made 2, kept 2"
    assert lines[2].split() == ["launched,", "in", "order", "loops", "KiB", "moved", "ops"]
    ops = lines[2].index("ops")
    for line in lines[3:5]:
        assert line[ops - 2 : ops] == "  " and line[ops:].split()[-1] == "sum", line
    assert lines[5].startswith("  recompiled: x: float32, 2 dimensions")
    assert max(map(len, lines[:5])) <= WIDTH


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
    assert size.path.startswith("size s0_0 at ") and "asks about this size" in size.hint
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
    assert "each value of this float needs a program" in hints[2]


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
