"""Ctrl-C at every moment of a call at which Python can deliver it: all of the call's effects have
happened, or none (C7)."""

from __future__ import annotations

import collections
import contextlib
import dis
import functools
import gc
import signal
import sys

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager.interrupts import HeldInterrupts
from tracejit.core.eager.recording import active
from tracejit.jit.capture import memory_words
from tracejit.jit.capture.watcher import CodeWatcher
from tracejit.jit.runtime import native_start

# Python calls the handlers of signals when a function is entered, and after these (not after calls
# of Python functions, whose return is a jump within the interpreter).
_AFTER = {"JUMP_BACKWARD", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "CALL_FUNCTION", "CALL_METHOD"}


@pytest.fixture(autouse=True)
def interrupts_are_exceptions():
    """Also where this process was started in the background, with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


_HANDLERS = ("_arrive", "__exit__", "_restore")


@functools.cache
def opnames(code):
    return {i.offset: i.opname for i in dis.get_instructions(code)}


class Interrupt:
    """Context: Ctrl-C at moment `n` in tracejit's own frames; `sent` tells whether there is one."""

    def __init__(self, n, only=""):
        self.left, self.sent, self.only = n, False, only
        self.last = {}

    def __enter__(self):
        self.before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # CPython 3.12 asks before `settrace`, not after
        sys.settrace(self.trace)
        return self

    def __exit__(self, *exc):
        sys.settrace(self.before)

    def trace(self, frame, event, arg):
        code = frame.f_code
        if event == "return":
            self.last.pop(id(frame), None)
            if code.co_name != "__call__":
                self.last.pop(id(frame.f_back), None)
            return None
        if event == "exception":  # no handler is called after what raised
            self.last.pop(id(frame), None)
        if "tracejit" not in code.co_filename and "<guards>" not in code.co_filename:
            return self.trace
        if self.only not in code.co_filename or code.co_name in _HANDLERS:
            return self.trace  # the exception is what counts, not the frames of the handler
        frame.f_trace_opcodes = True
        if event == "opcode":
            last = self.last.get(id(frame), "")
            now = opnames(code).get(frame.f_lasti, "")
            self.last[id(frame)] = now
            if last in _AFTER or now == "RESUME":
                self.left -= 1
                if self.left < 0 and not self.sent:
                    self.sent = True
                    signal.raise_signal(signal.SIGINT)
        return self.trace


class State:
    """Everything a call may change."""

    def __init__(self):
        tj.manual_seed(3)
        self.x, self.z = tj.ones(3), tj.zeros(2)
        self.w = tj.ones(3, requires_grad=True)
        self.kept, self.log, self.table = tj.zeros(3), [tj.zeros(3)], {"n": tj.zeros(())}
        self.ends = collections.deque(), collections.deque([tj.zeros(3)], maxlen=3)

    def seen(self):
        versions = self.x._version, self.z._version
        grad = None if self.w.grad is None else self.w.grad.tolist()
        kept, table = self.kept.tolist(), {k: v.tolist() for k, v in self.table.items()}
        values = self.x.tolist(), self.z.tolist(), self.w.tolist()
        log = [t.tolist() for t in self.log]
        ends = [[t.tolist() for t in end] for end in self.ends]
        drawn = tj.random.default_generator.offset
        return versions, grad, kept, values, log, ends, drawn, table


def writes(s):
    s.x.add_(1)
    s.z.sub_(2)


def draws(s):
    s.x.add_(tj.rand(3))
    s.z.mul_(0)


def attributes(s):
    s.kept = s.x * 2
    s.x.mul_(3)
    s.table["n"] = s.x.sum()
    s.log = [s.x + 1]


def appends(s):
    s.log.append(s.x + 1)
    s.x.mul_(3)
    s.log.append(s.x.sum())


def appends_to_deques(s):
    s.ends[0].append(s.x + 1)
    s.x.mul_(3)
    s.ends[1].append(s.x.sum())


def gradients(s):
    s.w.grad = None
    (s.w * s.x).sum().backward()
    with tj.no_grad():
        s.w.sub_(s.w.grad)


def draws_alone(s):
    return tj.rand(2) + tj.randn(2)


def on_the_host(s):
    s.x.add_(1)
    s.z.copy_(tj.sort(s.x).values[:2] + tj.multinomial(s.x, 2, replacement=True) * 0)
    s.kept = s.x * 2


def returned(s):
    s.x.add_(1)
    return s.x * s.w


PROGRAMS = [
    writes, draws, attributes, appends, appends_to_deques, gradients, draws_alone, on_the_host,
    returned,
]  # fmt: skip


def before_and_after(program, calls):
    """What there is before and after the last of so many calls, uncaptured."""
    s = State()
    for _ in range(calls - 1):
        program(s)
    before = s.seen()
    program(s)
    return before, s.seen()


def moments(call, only=""):
    """The states after Ctrl-C at each moment of `call(state)`; `call` makes the state ready."""
    n = found = 0
    while True:
        ready = call()
        caught = False
        with Interrupt(n, only) as interrupt:
            try:
                ready()
            except KeyboardInterrupt:
                caught = True
        assert active.tracer is None
        if not interrupt.sent:
            return found
        found += caught
        yield n
        n += 1


# One native call and what follows it; with `numerics="eager"` a program is of many steps.
NATIVE = [(p, "compiled", "fast") for p in PROGRAMS if p is not on_the_host]
STEPS = [(p, mode, "eager") for p in PROGRAMS for mode in ("compiled", "graph", "python")]


@pytest.mark.parametrize(("program", "mode", "numerics"), NATIVE + STEPS)
def test_a_replay_is_whole_or_has_not_begun(program, mode, numerics):
    calls = 5
    before, after = before_and_after(program, calls)
    f = tj.script(lambda s: program(s), mode=mode, numerics=numerics)
    f(State())
    states = []

    def prepared():
        s = State()
        for _ in range(calls - 1):
            f(s)
        states.append(s)
        return lambda: f(s)

    outcomes = []
    for _ in moments(prepared):
        outcomes.append(states[-1].seen())
        assert outcomes[-1] in (before, after), (len(outcomes), outcomes[-1], before, after)
    assert before in outcomes and after in outcomes and len(outcomes) > 10
    assert f.report().compiles == 1 and f.report().breaks == []
    s = State()
    for _ in range(calls):
        f(s)
    assert s.seen() == after


@pytest.mark.parametrize("program", [writes, gradients])
def test_a_replay_that_starts_in_python_is_whole_or_has_not_begun(program, monkeypatch):
    for module in (memory_words, native_start):  # as where the words of memory are not known
        monkeypatch.setattr(module, "supported", lambda: False)
    test_a_replay_is_whole_or_has_not_begun(program, "compiled", "fast")


def keeps(s):
    s.kept = s.x * 2


def of_array():
    """A state in memory whose address nobody has asked for yet."""
    s = State()
    s.x = tj.from_numpy(np.full(3, 5, np.float32))
    return s


def indexes(s):
    s.kept = s.x[tj.arange(3) + s.table["n"].long()] * 2
    s.x.add_(1)


def out_of_range():
    s = State()
    s.table["n"].add_(1)
    return s


@pytest.mark.parametrize(("program", "state"), [(keeps, of_array), (indexes, out_of_range)])
def test_a_launch_that_did_not_run_has_not_begun(program, state):
    """Nor has one that failed: what it computed so far is nobody's."""
    f = tj.script(lambda s: program(s))
    for _ in range(4):
        f(State())
    s = state()
    before = s.seen()

    def call():
        with contextlib.suppress(IndexError):
            f(s)

    def fresh():
        nonlocal s
        f(State())  # what an interrupt lost is made again, so that moments are the same
        s = state()
        return call

    with contextlib.suppress(IndexError):
        program(s)
    after, outcomes = s.seen(), []
    for _ in moments(fresh, "<tracejit launch>"):
        outcomes.append(s.seen())
        assert outcomes[-1] in (before, after)
    assert before in outcomes and len(outcomes) > 2
    assert f.report().compiles == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_recorded_call_is_settled_whole(program):
    """Ctrl-C after the user's code, while its segment is settled and an entry is made."""
    before, after = before_and_after(program, 1)
    states = []

    def fresh():
        s = State()
        f = tj.script(lambda s: program(s), mode="graph", numerics="eager")
        states.append(s)
        return lambda: f(s)

    outcomes = []
    for _ in moments(fresh, "jit/capture/guards.py"):
        outcomes.append(states[-1].seen())
        assert outcomes[-1] in (before, after)
    assert after in outcomes
    for _ in moments(fresh, "jit/capture/materialise.py"):
        assert states[-1].seen() == after


class Counted:
    def __init__(self):
        self.n, self.x = 1.0, tj.ones(2)


@pytest.mark.parametrize("only", ["core/eager/interrupts.py", "jit/runtime/session.py"])
def test_numbers_of_the_caller_are_plain_after_a_recorded_call(only):
    """Also where Ctrl-C comes when the recording is over and before what follows holds it back."""
    states = []

    def program(s):
        s.n += 1
        s.x.mul_(s.n)

    def fresh():
        states.append(Counted())
        f = tj.script(lambda s: program(s), mode="graph")
        return lambda: f(states[-1])

    for _ in moments(fresh, only):
        s = states[-1]
        assert type(s.n) is float
        assert (s.n, s.x.tolist()) in ((1.0, [1, 1]), (2.0, [1, 1]), (2.0, [2, 2]))
    assert len(states) > 10


WATCHES = ["jit/capture/watcher.py", "jit/capture/speculation.py", "jit/capture/unwatched.py"]


@pytest.mark.parametrize("only", WATCHES)
def test_nobody_watches_after_a_recorded_call(only):
    """Also where Ctrl-C comes as a watcher begins or ends: it would see the caller's own code."""
    x = tj.ones(2)

    def program(x):
        if x.sum() > 0:
            x = x * 2
        return x + 1

    def fresh():
        f = tj.script(program, mode="graph")
        return lambda: f(x)

    count = 0
    for _ in moments(fresh, only):
        count += 1
        left = sys.getprofile(), gc.isenabled()
        sys.setprofile(None)
        gc.enable()
        assert left == (None, True)
    assert count > 3


def test_a_watcher_that_an_interrupt_took_away_is_missed(monkeypatch):
    """Python takes a profile function away that raises. What ran since was seen by nobody."""
    call, left, x = CodeWatcher._call, 0, tj.ones(2)

    def interrupted(self, frame):
        nonlocal left
        left -= 1
        if left == -1:
            raise KeyboardInterrupt
        call(self, frame)

    monkeypatch.setattr(CodeWatcher, "_call", interrupted)
    n = 0

    def program(x):
        with contextlib.suppress(KeyboardInterrupt):
            x = increased(x)
        return scaled(x)

    def increased(x):
        return x + 1

    def scaled(x):
        return x * n

    for count in range(100):
        n, f, left = 0, tj.script(program, mode="graph"), count
        with contextlib.suppress(KeyboardInterrupt):
            f(x)
        if left >= 0:  # no such moment
            break
        for m in (1, 2):
            n = m
            assert f(x).tolist() == program(x).tolist(), count
    assert 5 < count < 99


# Of two segments: what comes between them is the user's code, as in a plain call.
SPLIT = {on_the_host}


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in SPLIT])
def test_a_co_executed_call_is_settled_whole(program):
    before, after = before_and_after(program, 1)
    f = tj.script(lambda s: (s.x.sum().item() > 0 and program(s), sys.getrefcount(s)), mode="graph",
                  numerics="eager")  # fmt: skip
    for _ in range(5):
        f(State())
    states = []

    def fresh():
        states.append(State())
        return lambda: f(states[-1])

    for _ in moments(fresh, "jit/capture/materialise.py"):
        assert states[-1].seen() in (before, after)
    assert states[-1].seen() == after


@pytest.mark.full
def test_output_is_shown_once(capsys):
    s = State()

    def program(s):
        s.x.add_(1)
        print("x", s.x.sum().item())
        s.kept = s.x + 1

    f = tj.script(program)
    f(s)
    f(s)
    capsys.readouterr()

    def prepared():
        return lambda: f(s)

    for _ in moments(prepared, "tracejit/"):
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 1
    assert f.report().breaks == []


def test_held_interrupts_come_at_the_end():
    steps = []
    with pytest.raises(KeyboardInterrupt):
        with HeldInterrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("inside")
        steps.append("after")
    assert steps == ["inside"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_that_a_handler_raises_after_the_run_is_not_taken_for_the_programs():
    s = State()
    f = tj.script(writes)
    for _ in range(4):
        f(s)

    class Timeout(Exception):
        pass

    def handler(*args):
        raise Timeout

    before = signal.signal(signal.SIGINT, handler)
    try:
        n = raised = 0
        while True:
            f(s)
            was = s.seen()
            with Interrupt(n, "<tracejit launch>") as interrupt:
                try:
                    f(s)
                except Timeout:
                    raised += 1
                else:
                    assert not interrupt.sent, "the error of the handler is lost"
            if not interrupt.sent:
                break
            versions = [b - a for a, b in zip(was[0], s.seen()[0])]
            assert versions == [1, 1] and s.x.tolist() == [was[3][0][0] + 1] * 3
            n += 1
        assert raised > 1
    finally:
        signal.signal(signal.SIGINT, before)
