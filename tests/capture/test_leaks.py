"""Tensors that leave a captured call where nobody looks: right, or an error naming both lines."""

from __future__ import annotations

import collections
import functools
import io
import sys
import threading
import weakref

import pytest

import tracejit as tj
from tests.capture.test_programs import assert_same, plain, seen
from tracejit import config

KEPT: list = []
PLACES: dict = {}


def kept_in_a_global_list(keep):
    KEPT.append(keep)
    return lambda: KEPT.pop()


def kept_in_a_global_dict(keep):
    PLACES["last"] = {"deep": (keep,)}
    return lambda: PLACES["last"]["deep"][0]


class Holder:
    last = None


def kept_in_a_class(keep):
    Holder.last = keep
    return lambda: Holder.last


LOCAL = threading.local()


def kept_in_a_thread_local(keep):
    LOCAL.last = keep
    return lambda: LOCAL.last


def kept_in_an_exception(keep):
    error = ValueError("not raised")
    error.payload = keep
    return lambda: error.payload


def kept_by_a_raised_exception(keep):
    try:
        raise ValueError("raised and caught", keep)
    except ValueError as error:
        caught = error
    return lambda: caught.args[1]


def kept_in_a_closure(keep):
    return lambda: keep


def kept_in_a_partial(keep):
    return functools.partial(lambda x: x, keep)


def kept_in_a_generator(keep):
    def generate():
        yield 0
        yield keep

    generator = generate()
    next(generator)
    return lambda: next(generator)


def kept_in_an_iterator(keep):
    iterator = iter([keep])
    return lambda: next(iterator)


def kept_in_a_set(keep):
    box = {keep}
    return lambda: box.pop()


def kept_in_a_deque(keep):
    box = collections.deque([keep], maxlen=2)
    return lambda: box[0]


def kept_in_slots(keep):
    class Slots:
        __slots__ = ("last",)

    box = Slots()
    box.last = keep
    return lambda: box.last


def kept_by_a_property(keep):
    class Guarded:
        def __init__(self, hidden):
            self._hidden = hidden

        @property
        def last(self):
            return self._hidden

    box = Guarded(keep)
    return lambda: box.last


def kept_in_a_weak_dict(keep):
    box = weakref.WeakValueDictionary(last=keep)
    KEPT.append(keep)
    return lambda: (box["last"], KEPT.pop())[0]


def kept_in_a_function_attribute(keep):
    kept_in_a_function_attribute.last = keep
    return lambda: kept_in_a_function_attribute.last


def kept_as_a_default(keep):
    def get(found=keep):
        return found

    return get


WAYS = [value for name, value in list(globals().items()) if name.startswith("kept_")]


def program(jit, way, change):
    """What a function that keeps a tensor away leaves, over calls with other values and shapes."""
    found = []

    @jit
    def f(x):
        y = x * 2
        found.append(way(y[1:] if change == "view" else y))
        if change == "write":
            y.add_(10)
        return y + 1

    shown = [f(tj.arange(float(n)) * k) for k, n in enumerate((3, 3, 4, 3))]
    read = [get() for get in reversed(found)]
    for tensor in read:
        tensor.mul_(3)  # kept tensors are the caller's now
    return [shown, read, [t._version for t in read]]


@pytest.mark.parametrize("mode", ["graph", "python", "compiled"])
@pytest.mark.parametrize("change", ["value", "view", "write"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_kept_tensors_hold_what_the_plain_function_left(way, change, mode):
    if way in (kept_in_a_global_dict, kept_in_a_class, kept_in_a_thread_local) or (
        way is kept_in_a_function_attribute
    ):
        run = last_only
    else:
        run = program
    expected = seen(run(plain, way, change))
    with config.override(mode=mode):
        got = seen(run(tj.script, way, change))
    assert_same(got, expected)


def last_only(jit, way, change):
    """As `program`, for places that hold one tensor at a time."""
    read, get = [], []

    def once(x):
        y = x * 2
        get[:] = [way(y[1:] if change == "view" else y)]
        if change == "write":
            y.add_(10)
        return y + 1

    f = jit(once)
    for k, n in enumerate((3, 3, 4, 3)):
        f(tj.arange(float(n)) * k)
        read.append(get[0]().clone())
    return read


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_what_one_call_kept_is_used_by_another_function(mode):
    def run(jit):
        kept = []
        f = jit(lambda x: kept.append(x * 2))
        g = jit(lambda x: x + kept[-1])
        out = []
        for k in range(4):
            f(tj.ones(2) * k)
            out.append(g(tj.ones(2)))
        return out

    with config.override(mode=mode):
        assert_same(seen(run(tj.script)), seen(run(plain)))


def in_a_thread(call):
    caught = []

    def guarded():
        try:
            call()
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join(30)
    return caught


def use_eagerly(tensor):
    return tensor + 1


def use_captured(tensor):
    return tj.script(lambda t: t + 1)(tensor)


def read_it(tensor):
    return tensor.tolist()


def write_it(tensor):
    return tensor.add_(1)


@pytest.mark.parametrize("file", [io.StringIO, lambda: io.TextIOWrapper(io.BytesIO()), io.BytesIO])
def test_files_give_no_arrays_in_which_memory_is_shown(file, monkeypatch):
    """A thread reads `sys.stderr` as it begins; memory of `kept` is shown in an array."""
    monkeypatch.setattr(sys, "stderr", file())
    kept = tj.ones(3)
    array = kept.numpy()
    test_another_thread_is_told_both_lines_while_the_recording_runs(use_eagerly)
    assert array.tolist() == kept.tolist()


@pytest.mark.parametrize("use", [use_eagerly, use_captured, read_it, write_it])
def test_another_thread_is_told_both_lines_while_the_recording_runs(use):
    caught = []

    def leaking(x):
        y = x * 2
        caught.extend(in_a_thread(lambda: use(y)))
        return y

    f = tj.script(leaking)
    for k in range(2):
        assert f(tj.ones(2) * k).tolist() == [2.0 * k] * 2
    made = leaking.__code__.co_firstlineno + 1
    assert len(caught) == 2
    for error in caught:
        text = str(error)
        assert isinstance(error, RuntimeError)
        assert "while leaking was captured" in text and f"test_leaks.py:{made}: y = x * 2" in text
        assert f"at {__file__}:" in text and "return it from leaking" in text


def test_a_size_or_number_that_was_kept_is_a_plain_number():
    kept = []

    def f(x, s):
        kept.extend((x.shape[0], x.shape, x.shape[0] * 2 + 1, s * 2.0, x.numel()))
        return x * s

    for n, s in ((2, 1.5), (3, 2.5), (2, 0.5)):
        expected = [n, (n, 4), 2 * n + 1, 2 * s, 4 * n]
        for jit in (plain, tj.script(f)):
            kept.clear()
            (f if jit is plain else jit)(tj.ones(n, 4), s)
            assert kept == expected and str(kept) == str([*expected]).replace(
                f"({n}, 4)", f"tracejit.Size([{n}, 4])"
            )
