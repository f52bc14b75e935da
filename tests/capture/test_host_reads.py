"""Numbers read for metrics end no segment, and are Python's own, bit for bit."""

from __future__ import annotations

import io
import logging
import threading
from datetime import timedelta
from decimal import Decimal

import pytest

import tracejit as tj
from tests.capture import programs_metrics
from tests.capture.test_programs import assert_same, plain, seen
from tracejit import config
from tracejit.jit.capture.host_calls import replacement
from tracejit.jit.capture.host_numbers import deferred_float, deferred_int
from tracejit.jit.capture.host_texts import (
    deferred_format,
    deferred_format_of,
    deferred_percent,
    deferred_repr,
    deferred_str,
)
from tracejit.jit.capture.output import deferred_print

PROGRAMS = programs_metrics.PROGRAMS
MODES = ("graph", "python", "compiled")


def exact(value):
    """What a program shows, floats by their bits."""
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(v) for v in value]
    if isinstance(value, tj.Tensor):
        return seen(value)
    return f"{type(value).__name__} {value!r}"


def check(program, jit):
    tj.manual_seed(0)
    _, *expected = program(plain)
    tj.manual_seed(0)
    function, *got = program(jit)
    assert_same(exact(got), exact(expected))
    if getattr(program, "only_metrics", False):
        report = function.report()
        assert (report.compiles, report.breaks) == (1, []), str(report)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_scripted_metrics_are_the_plain_ones(program, mode):
    with config.override(mode=mode):
        check(program, tj.script)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_traced_metrics_are_the_plain_ones(program):
    with config.override(mode="graph"):
        check(program, tj.trace)


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 29


def test_fifty_calls_are_one_program():
    losses = []

    @tj.script(fullgraph=True)
    def f(x):
        loss = (x * x).sum()
        losses.append(loss.item())
        return loss

    for k in range(50):
        f(tj.full((3,), float(k)))
    report = f.report()
    assert (report.compiles, report.breaks, report.cache_hits) == (1, [], 49)
    assert losses == [3.0 * k * k for k in range(50)]
    assert {type(v) for v in losses} == {float}


# -- texts and output -----------------------------------------------------------------------------
def printed(program, capsys, jit, calls=4):
    capsys.readouterr()
    f = program(jit)
    for k in range(calls):
        f(tj.arange(3.0) * k + 0.25)
    return f, capsys.readouterr()


def prints(jit):
    step = [0]

    @jit
    def f(x):
        loss = (x * x).sum()
        deferred_print("start", 1, 2.5, None, sep="-")
        step.append(loss.item())
        deferred_print("loss", loss.item(), loss, sep=" = ", end="!\n", flush=True)
        x.mul_(2)
        deferred_print(x, [x[0], {"v": x.sum().item()}], (loss.item(), x.shape[0]))
        deferred_print(deferred_format(["at ", (x.sum().item(), None, ".3f"), " of ",
                                        (x[0], "r", ""), (x[1], None, "8.2f")]))
        deferred_print(x)
        x.mul_(2)
        deferred_print()
        return loss

    return f


def test_prints_come_in_order_on_every_call(capsys):
    _, expected = printed(prints, capsys, plain)
    for jit in (tj.script, tj.trace):
        f, got = printed(prints, capsys, jit)
        assert got == expected
        assert got.out.count("start-1-2.5-None") == 4
        assert (f.report().compiles, f.report().breaks) == (1, []), str(f.report())


def history(jit):
    w = tj.ones(3, requires_grad=True)

    @jit
    def f(x):
        y = (w * x).sum()
        deferred_print(y, w * x, y.detach(), x.to(tj.float64), x.to(tj.int32), (x > 0))
        return y

    return f


def test_printed_tensors_show_their_history(capsys):
    _, expected = printed(history, capsys, plain)
    f, got = printed(history, capsys, tj.script)
    assert got == expected and "grad_fn=<" in got.out and "dtype=torch.float64" in got.out.replace(
        "tracejit.", "torch.")
    assert f.report().breaks == [], str(f.report())


def between(jit):
    @jit
    def f(x):
        deferred_print("first")
        print("second")
        deferred_print("third", x.sum().item())

    return f


def test_native_output_keeps_its_place(capsys):
    _, expected = printed(between, capsys, plain, 7)
    f, got = printed(between, capsys, tj.trace, 7)
    assert got == expected
    assert any("print" in b.reason for b in f.report().breaks)


def test_nothing_is_printed_twice_or_lost_when_the_program_fails(capsys):
    @tj.script
    def f(x, index):
        deferred_print("before", x.sum().item())
        return x[index].sum().item()

    good, bad = tj.tensor([0, 1]), tj.tensor([0, 9])
    f(tj.ones(3), good)
    f(tj.ones(3), good)
    capsys.readouterr()
    with pytest.raises(IndexError):
        f(tj.ones(3), bad)
    assert capsys.readouterr().out == "before 3.0\n"


def test_output_before_an_exception_is_there(capsys):
    @tj.script
    def f(x, fail):
        deferred_print("sum", x.sum().item())
        if fail:
            raise ValueError("now")
        return x

    f(tj.ones(2), False)
    with pytest.raises(ValueError, match="now"):
        f(tj.ones(2), True)
    assert capsys.readouterr().out == "sum 2.0\nsum 2.0\n"


def test_print_goes_where_the_replaying_call_says(monkeypatch):
    @tj.script
    def f(x):
        deferred_print("v", x.sum().item())

    texts = []
    for k in range(3):
        stream = io.StringIO()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", stream)
            f(tj.full((2,), float(k)))
        texts.append(stream.getvalue())
    assert texts == ["v 0.0\n", "v 2.0\n", "v 4.0\n"]
    assert f.report().cache_hits == 2


def test_print_to_an_object_that_only_has_write():
    class Lines:
        def __init__(self):
            self.text = ""

        def write(self, text):
            self.text += text

    lines = Lines()

    @tj.script
    def f(x):
        deferred_print("v", x.sum().item(), file=lines)

    for k in range(5):
        f(tj.full((2,), float(k)))
    assert lines.text == "".join(f"v {2.0 * k}\n" for k in range(5))


def texts(jit):
    @jit
    def f(x):
        v, n = x.sum().item(), x.sum().to(tj.int64).item()
        text = deferred_str(v) + "/" + deferred_repr(n)
        return (text, deferred_format_of(v, "+.2e"), deferred_format_of(n, ">6d"),
                deferred_percent("%5.1f%% %s %d", (v, n, n)), deferred_percent("%s", v),
                replacement("{0:.2f} {a!r:>8} {1}".format)(v, n, a=v),
                deferred_float(x.sum()) * 2, deferred_int(x.sum().to(tj.int64)) + 1,
                deferred_float(n), deferred_str(x), len(text), text == "0", text[0],
                ) if len(x) > 5 else (
                text, deferred_format_of(v, "+.2e"), deferred_format_of(n, ">6d"),
                deferred_percent("%5.1f%% %s %d", (v, n, n)), deferred_percent("%s", v),
                replacement("{0:.2f} {a!r:>8} {1}".format)(v, n, a=v),
                deferred_float(x.sum()) * 2, deferred_int(x.sum().to(tj.int64)) + 1,
                deferred_float(n), deferred_str(x))

    return f, [f(tj.arange(float(n)) - 1) for n in (3, 4, 5)], [f(tj.ones(7))]


@pytest.mark.parametrize("jit", (tj.script, tj.trace))
def test_texts_are_the_plain_ones(jit):
    _, *expected = texts(plain)
    f, *got = texts(jit)
    assert exact(got) == exact(expected)


def test_texts_end_no_segment():
    @tj.script(fullgraph=True)
    def f(x):
        v = x.sum().item()
        return deferred_format(["<", (v, None, ".1f"), "|", (x.max(), "s", ">9"), ">"])

    assert [f(tj.full((2,), float(k))) for k in range(3)] == [
        f"<{2.0 * k:.1f}|{f'tensor({float(k):.0f}.)':>9}>" for k in range(3)]  # fmt: skip
    assert f.report().compiles == 1


def test_a_format_that_cannot_be_raises_at_its_line():
    @tj.script
    def f(x):
        text = deferred_format_of(x.sum().item(), "d")
        x.add_(1)
        return text

    x = tj.ones(2)
    for _ in range(2):
        with pytest.raises(ValueError, match="Unknown format code 'd' for object of type 'float'"):
            f(x)
    assert x.tolist() == [1.0, 1.0]


def test_logging_has_values_lines_and_levels(caplog):
    log = logging.getLogger("tracejit.tests.host_reads")

    @tj.script
    def f(x):
        replacement(log.info)("loss %.2f of %s", x.sum().item(), x)
        replacement(log.log)(logging.ERROR, "all %d", x.sum().to(tj.int64).item())
        replacement(logging.warning)("root %s", x.sum().item())

    for k, level in enumerate((logging.INFO, logging.INFO, logging.ERROR, logging.INFO)):
        with caplog.at_level(level):
            f(tj.full((2,), float(k)))
    assert [r.getMessage() for r in caplog.records] == [
        "loss 0.00 of tensor([0., 0.])", "all 0", "root 0.0",
        "loss 2.00 of tensor([1., 1.])", "all 2", "root 2.0",
        "all 4",
        "loss 6.00 of tensor([3., 3.])", "all 6", "root 6.0",
    ]  # fmt: skip
    first = caplog.records[0]
    assert (first.filename, first.funcName) == ("test_host_reads.py", "f")
    assert first.levelname == "INFO" and caplog.records[1].lineno == first.lineno + 1
    assert (f.report().compiles, f.report().breaks) == (1, []), str(f.report())


def test_a_message_below_the_level_is_not_handled():
    log, seen = logging.getLogger("tracejit.tests.host_reads.level"), []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    log.addHandler(handler)

    @tj.script
    def f(x):
        replacement(log.info)("loss %s", x.sum().item())

    for k, level in enumerate((logging.INFO, logging.ERROR, logging.INFO)):
        log.setLevel(level)
        f(tj.full((2,), float(k)))
    assert seen == ["loss 0.0", "loss 4.0"] and f.report().compiles == 1


def test_output_comes_before_what_cannot_be_put_off(monkeypatch):
    class Stream:
        def __init__(self):
            self.texts = []

        def write(self, text):
            self.texts.append(text)

    stream = Stream()
    monkeypatch.setattr("sys.stdout", stream)

    @tj.script
    def f(x):
        deferred_print("first")
        deferred_print("second", file=stream)
        if x.shape[0] == 3:
            raise ValueError
        deferred_print("third")

    for n in (1, 2, 2, 2, 2):
        f(tj.ones(n))
    assert "".join(stream.texts) == "first\nsecond\nthird\n" * 5


def test_output_without_any_tensor_before_an_exception(capsys):
    @tj.script
    def f(x):
        deferred_print("here", 1)
        raise ValueError

    with pytest.raises(ValueError):
        f(tj.ones(3))
    assert capsys.readouterr().out == "here 1\n"


def test_what_is_replaced():
    assert replacement(print) is deferred_print and replacement(str) is deferred_str
    for other in (len, sum, dict, "a".split, [].append, test_what_is_replaced, object()):
        assert replacement(other) is None


def test_classes_written_in_c_get_plain_numbers():
    @tj.script
    def f(x):
        v = x.sum().item()
        return replacement(Decimal)(v), replacement(timedelta)(seconds=v)

    for k in range(3):
        assert f(tj.full((2,), float(k))) == (Decimal(2 * k), timedelta(seconds=2 * k))


def test_reads_from_several_threads():
    @tj.script
    def f(x):
        v = x.sum().item()
        return v, v * 2

    wrong = []

    def work(k):
        for _ in range(20):
            if f(tj.full((3,), float(k))) != (3.0 * k, 6.0 * k):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and f.report().compiles == 1


def test_the_line_that_needed_the_value_is_named():
    @tj.script
    def f(x):
        v = x.sum().item()
        if v > 0:
            return x
        return -x

    f(tj.ones(2))
    (found,) = f.report().breaks
    assert "the function calls item(), and its number is compared" in found.reason
    assert found.location.text == "if v > 0:"
