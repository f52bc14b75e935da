"""Numbers of objects that change between calls are runtime scalars: the plain function's results,
types and effects, without a program per value, and nothing is left behind (C2)."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import tracejit as tj
from tests.capture.number_outcomes import shown
from tracejit.jit.capture import concretize
from tracejit.jit.capture.scalars import SymNumber


# -- attributes, entries, globals ------------------------------------------------------------------
class Counting(tj.nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.total, self.limit = 0, 1.0, 5

    def forward(self, x):
        self.step += 1
        self.total = self.total * 0.9 + 1
        return x * self.step + self.total


@dataclass
class Counter:
    step: int = 0
    rate: float = 1.0

    def advance(self):
        self.step += 2
        self.rate *= 0.5
        return self.rate * self.step


class Plain:
    pass


class Slots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 2**62

    def more(self):
        self.n *= 3
        return self.n


def counted(make, function, calls=6, mode="graph"):
    """Each call on an object of its own, plain and captured; both show the same."""
    plain, ours = make(), make()
    captured = tj.script(lambda x: function(ours, x), mode=mode)
    for k in range(calls):
        x = tj.ones(2) * k
        assert shown(captured(x)) == shown(function(plain, x)), k
        assert state(ours) == state(plain), k
    return captured.report()


def state(x):
    if isinstance(x, (list, tuple)):
        return [state(v) for v in x]
    if isinstance(x, dict):
        return {k: state(v) for k, v in x.items()}
    values = {n: getattr(x, n) for n in getattr(x, "__slots__", ())} or getattr(x, "__dict__", None)
    return shown(x) if values is None else {k: shown(v) for k, v in values.items()}


@pytest.mark.parametrize("mode", ["graph", "python", "compiled"])
def test_a_module_counts_its_steps(mode):
    report = counted(Counting, lambda m, x: m(x), 20, mode)
    assert report.compiles == 1 and report.cache_hits == 19, report


def test_a_method_counts():
    report = counted(Counter, lambda c, x: x * c.advance() + c.step)
    assert report.compiles == 1, report


def test_slots():
    report = counted(Slots, lambda s, x: (x, s.more()))
    assert report.compiles == 1, report


def test_entries_of_dicts_and_lists():
    def function(d, x):
        d["n"] += 1
        d["list"][0] += 0.5
        return x * d["n"] * d["list"][0], d["n"]

    report = counted(lambda: {"n": 1, "list": [1.0, 2.0], "k": 3}, function)
    assert report.compiles == 1, report


def test_a_value_written_again():
    def function(c, x):
        y = x * c.step
        c.step = 5
        return y

    captured, c, p = None, Counter(5), Counter(5)
    captured = tj.script(lambda x: function(c, x), mode="graph")
    for step in (5, 5, 7, 9, 5):
        c.step = p.step = step
        assert shown(captured(tj.ones(1))) == shown(function(p, tj.ones(1)))
        assert c.step == p.step == 5 and type(c.step) is int


def test_zeros_have_signs():
    def function(c, x):
        c.rate = -c.rate
        return x + c.rate

    report = counted(lambda: Counter(0, 0.0), function)
    assert report.compiles == 1


_calls = 0


def _counts_globally(x):
    global _calls
    _calls += 1
    return x * _calls


def test_two_functions_over_one_variable():
    def make():
        count = 3

        def read():
            return count

        def more():
            nonlocal count
            count += 1
            return count

        return read, more

    def program(jit):
        read, more = make()
        f = jit(lambda x: (x * read() + more(), read()))
        return [shown(f(tj.ones(1))) for _ in range(4)]

    assert program(lambda f: tj.script(f, mode="graph")) == program(lambda f: f)


def test_a_zero_of_the_other_sign_is_written_back():
    def program(jit):
        d, seen = {"a": 0.0}, []

        def function(x):
            for key in ("a",):
                d[key] = -0.0
            return x

        f = jit(function)
        for _ in range(3):
            d["a"] = 0.0
            f(tj.ones(1))
            seen.append(repr(d["a"]))
        return seen

    assert program(lambda f: tj.script(f, mode="graph")) == program(lambda f: f)


def test_globals():
    global _calls
    captured, seen = tj.script(_counts_globally, mode="graph"), []
    for function in (_counts_globally, captured):
        _calls = 3
        seen.append([shown(function(tj.ones(1))) for _ in range(5)] + [shown(_calls)])
    assert seen[0] == seen[1] and captured.report().compiles == 1


def test_closures():
    def make():
        count = 0

        def function(x):
            nonlocal count
            count += 1
            return x * count

        return function, lambda: count

    (plain, told), (ours, told_ours) = make(), make()
    captured = tj.script(ours, mode="graph")
    for _ in range(5):
        assert shown(captured(tj.ones(1))) == shown(plain(tj.ones(1)))
        assert shown(told_ours()) == shown(told())
    assert captured.report().compiles == 1


def test_a_number_nobody_stores_becomes_runtime_when_it_changes():
    c = Plain()
    c.rate, c.step = 1.0, 0
    captured = tj.script(lambda x: x * c.rate + c.step, mode="graph")
    for k in range(8):
        c.rate, c.step = 1.0 + k, k
        assert captured(tj.ones(1)).tolist() == [1.0 + k + k]
    report = captured.report()
    assert report.compiles == 2 and len(report.recompiles) == 1, report


def test_two_attributes_share_a_number():
    def function(c, x):
        c.rate = c.step
        c.step += 1
        return x * c.rate

    report = counted(Counter, function)
    assert report.compiles == 2  # rate was a float once


def test_containers_hold_numbers_of_the_call():
    def function(c, x):
        c.step += 1
        c.pair = (c.step, x.sum() * 0)
        c.made = {"step": c.step, "more": [c.step * 2]}
        return {"a": (c.step, [c.step + 1])}, x

    plain, ours = Counter(), Counter()
    captured = tj.script(lambda x: function(ours, x), mode="graph")
    for _ in range(4):
        assert shown(captured(tj.ones(1))) == shown(function(plain, tj.ones(1)))
        assert state(ours) == state(plain)


# -- nothing is left behind ------------------------------------------------------------------------
def leftovers():
    gc.collect()
    return [x for x in gc.get_objects() if type(x).__mro__[-2] is SymNumber and x.sym_env.open]


def test_attributes_are_plain_after_an_exception():
    def function(c, x):
        c.step += 1
        c.kept = [c.step]
        raise KeyError(c.step)

    plain, ours = Counter(), Counter()
    captured = tj.script(lambda x: function(ours, x), mode="graph")
    for _ in range(3):
        for f in (captured, lambda x: function(plain, x)):
            with pytest.raises(KeyError):
                f(tj.ones(1))
        assert state(ours) == state(plain)
        assert type(ours.step) is int and type(ours.kept[0]) is int


def test_objects_made_in_a_call_hold_plain_numbers():
    kept = []

    class Record:
        def __init__(self, n):
            self.n, self.pair = n, [n + 1]

    def function(x, n):
        kept.append(Record(n * 2))
        return x

    captured = tj.script(function, mode="graph")
    for n in (1, 2, 3):
        captured(tj.ones(1), n)
        assert type(kept[-1].n) is int and kept[-1].n == 2 * n and type(kept[-1].pair[0]) is int


def test_recordings_do_not_outlive_the_call():
    counted(Counting, lambda m, x: m(x), 3)
    x = tj.ones(2, requires_grad=True)
    y = tj.script(lambda x, n: (x * n).sum(), mode="graph")(x, 3.0)
    assert leftovers() == []
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_copies_and_pickles_in_the_middle():
    m = Counting()
    captured = tj.script(m, mode="graph")
    plain = Counting()
    for k in range(6):
        if k == 2:
            captured = copy.deepcopy(captured)
        if k == 4:
            m = pickle.loads(pickle.dumps(plain))
            captured = tj.script(m, mode="graph")
        assert shown(captured(tj.ones(1))) == shown(plain(tj.ones(1)))


def test_a_deepcopy_inside_the_call():
    def function(c, x):
        c.step += 1
        d = copy.copy(c)
        return x * d.step

    counted(Counter, function)


def test_threads_count_for_themselves():
    def work(results, k):
        m = Counting()
        f = tj.script(lambda x: m(x), mode="graph")
        results[k] = [f(tj.ones(1)).tolist() for _ in range(10)] + [m.step, type(m.step)]

    results: dict = {}
    threads = [threading.Thread(target=work, args=(results, k)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    plain = Counting()
    expected = [plain(tj.ones(1)).tolist() for _ in range(10)] + [10, int]
    assert all(results[k] == expected for k in range(6))


def test_gradients_through_numbers():
    def function(x, n, v):
        return (x * n * v).sum()

    captured = tj.script(function, mode="graph")
    for n, v in ((2, 0.5), (3, 1.5), (-1, 2.0)):
        x = tj.ones(3, requires_grad=True)
        captured(x, n, v).backward()
        assert x.grad.tolist() == [n * v] * 3
    assert captured.report().compiles == 1


def test_long_chains():
    def function(x, v):
        for _ in range(1500):
            v = v * 0.999 + 0.001
        return x * v

    captured = tj.trace(function, mode="graph")
    for v in (2.0, 3.0, -5.0):
        assert shown(captured(tj.ones(1), v)) == shown(function(tj.ones(1), v))
    assert captured.report().compiles == 1


def test_a_call_that_breaks_looks_for_no_numbers_where_nobody_kept_one(monkeypatch):
    def searched(*objects):
        raise AssertionError("all objects of the process are searched")

    monkeypatch.setattr(concretize.gc, "get_referrers", searched)

    @tj.script
    def f(x, scale, shift):
        total = (x * (scale + 1) + shift).sum()
        if bool(total > 1):
            x = tj.from_numpy(np.sort(x.numpy()))
        return x * scale

    for k in range(3):
        assert f(tj.ones(2), 0.5 + k, k).tolist() == [0.5 + k] * 2
    assert f.report().breaks


class Holder:
    """For the next test."""


holder, found = Holder(), []


def look():
    found.append([type(vars(math)[name]).__mro__ == (float, object) for name in ("pi", "inf")])


@tj.script
def stores_names_of_constants(x):
    holder.inf = 3.0
    holder.pi = math.pi
    y = (x * math.pi).clamp(max=math.inf)
    threading.Thread(target=look).start()
    return y


def test_constants_of_libraries_stay_plain_for_other_threads():
    """Even where captured code stores attributes of their names."""
    for count in range(1, 4):
        stores_names_of_constants(tj.ones(2))
        while len(found) < count:
            time.sleep(0.001)
    assert found == [[True, True]] * 3


class Fifty(float):
    def __float__(self):
        return 50.0


def test_a_float_of_a_class_of_its_own_is_no_other_functions_constant():
    """Programs are found by their digests, in which it looks like the float that it is."""
    n = Fifty(2.0)
    f, g = tj.script(lambda x: x + n), tj.script(lambda x: x + 2.0)
    assert [f(tj.ones(1)).item() for _ in range(2)] == [(tj.ones(1) + n).item()] * 2
    assert [g(tj.ones(1)).item() for _ in range(2)] == [3, 3]


class AskedByC(tj.nn.Module):
    """C code may ask it for numbers: `len(layer)`, `if layer:`, a layer as a key."""

    def __init__(self):
        super().__init__()
        self.calls, self.told = 0, 0

    def __len__(self):
        return self.calls + 1

    def __bool__(self):
        return self.calls > 2

    def __hash__(self):
        return self.calls * 7

    def __int__(self):
        return self.calls

    __index__ = __int__

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Asking(AskedByC):
    def forward(self, x):
        asked = len(self) + hash(self) + int(self) + [0, 5, 6, 7, 8, 9][self] + bool(self)
        return super().forward(x) + asked


@pytest.mark.parametrize("jit", [tj.script, tj.trace])
def test_numbers_of_objects_that_c_code_may_ask_are_runtime_scalars_until_it_does(jit):
    layer, asked, plain_asked = AskedByC(), Asking(), Asking()
    f, g = jit(layer), jit(asked)
    assert [f(tj.ones(1)).item() for _ in range(4)] == [1, 2, 3, 4]
    assert (layer.calls, type(layer.calls), f.report().compiles) == (4, int, 1)
    assert [g(tj.ones(1)).item() for _ in range(4)] == [
        plain_asked(tj.ones(1)).item() for _ in range(4)]
    assert (asked.calls, type(asked.calls)) == (4, int)


def by_another_name(self):
    return self.calls


class Aliased(AskedByC):
    __int__ = __index__ = by_another_name

    def forward(self, x):
        return super().forward(x) + int(self) + [0, 5, 6, 7, 8][self]


@pytest.mark.parametrize("jit", [tj.script, tj.trace])
def test_a_method_that_c_code_asks_may_be_a_function_of_another_name(jit):
    layer, plain_layer = Aliased(), Aliased()
    f = jit(layer)
    assert [f(tj.ones(1)).item() for _ in range(4)] == [
        plain_layer(tj.ones(1)).item() for _ in range(4)]
