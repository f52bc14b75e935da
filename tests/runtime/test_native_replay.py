"""A native replay serves only calls like the last ones: each test warms a function until native
code serves it, changes one thing, and compares with plain execution."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tracejit as tj
from tests.runtime import replayed_calls
from tests.runtime.replayed_calls import (
    Scaled,
    Settings,
    by_default,
    facts,
    outcome,
    pair,
    plain,
    served,
    warmed,
)
from tracejit.config import flags
from tracejit.core.eager.views import stand_for
from tracejit.core.ops import autocast
from tracejit.jit.capture import memory_words
from tracejit.jit.runtime.nan_check import NanFound

pytestmark = pytest.mark.skipif(
    not memory_words.supported(), reason="no native code on this interpreter")
def strided():
    return tj.from_numpy(np.arange(8.0, dtype=np.float32)[::2])


class Special(tj.Tensor):
    pass


def special():
    return tj.arange(4.0).as_subclass(Special)


def inference():
    with tj.inference_mode():
        return tj.arange(4.0)


def unrecorded_view():
    base = tj.zeros(8, requires_grad=True)
    with tj.no_grad():
        return base[4:]


def stand_in():
    x, other = tj.arange(4.0), tj.arange(4.0)
    stand_for(x, other)
    x + 1  # it follows the other from here on
    return x


def stale_view():
    base = tj.zeros(8)
    view = base[4:]
    base.mul_(tj.ones(8, requires_grad=True))
    return view


ARGUMENTS = {
    "of float64": lambda: tj.arange(4.0, dtype=tj.float64),
    "of int32": lambda: tj.arange(4, dtype=tj.int32),
    "of another rank": lambda: tj.arange(4.0).reshape(2, 2).clone()[:, None, :].clone(),
    "of another size": lambda: tj.arange(1.0),
    "of sizes that do not fit": lambda: tj.arange(5.0),
    "empty": lambda: tj.zeros(0),
    "with strides": strided,
    "a view with strides": lambda: tj.arange(8.0)[::2],
    "expanded": lambda: tj.ones(1).expand(4),
    "a leaf": lambda: tj.arange(4.0).requires_grad_(),
    "with history": lambda: tj.arange(4.0).requires_grad_() * 1,
    "a parameter": lambda: tj.nn.Parameter(tj.arange(4.0)),
    "of a subclass": special,
    "made in inference mode": inference,
    "from .data": lambda: tj.arange(4.0).requires_grad_().data,
    "a view whose base got a history": stale_view,
    "a view that was not recorded": unrecorded_view,
    "that stands for another": stand_in,
    "a number": lambda: 3.0,
    "an array": lambda: np.arange(4.0, dtype=np.float32),
    "none": lambda: None,
    "on the meta device": lambda: tj.empty(4, device="meta"),
}  # fmt: skip


@pytest.mark.parametrize("make", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("place", [0, 1])
def test_another_kind_of_argument_is_seen(make, place) -> None:
    compiled = warmed()
    for _ in range(3):
        given = [tj.ones(4), tj.ones(4)]
        given[place] = make()
        assert outcome(compiled, *given) == outcome(plain, *given)
        assert compiled.native is None
        for _ in range(20):
            assert outcome(compiled, *[tj.ones(4)] * 2) == outcome(plain, *[tj.ones(4)] * 2)


SAME_KIND = {
    "a view": lambda: tj.arange(8.0)[4:],
    "a view of a view": lambda: tj.arange(24.0).reshape(6, 4)[2:4][1],
    "with views": lambda: [x := tj.arange(4.0), x[1:]][0],
    "an array's memory": lambda: tj.from_numpy(np.arange(4.0, dtype=np.float32)),
    "a result": lambda: tj.arange(4.0) + 1,
    "grown": lambda: tj.zeros(2).resize_(4).copy_(tj.arange(4.0)),
}


@pytest.mark.parametrize("make", SAME_KIND.values(), ids=SAME_KIND)
def test_other_tensors_of_the_kind_are_served(make) -> None:
    compiled = warmed()
    for k in range(5):
        given = make(), tj.full((4,), float(k))
        result, natively = served(compiled, *given)
        assert facts(result) == facts(plain(*given))
        assert natively


def test_sizes_are_compared_by_value() -> None:
    sizes = int("300"), int("7")
    x, y = tj.ones(sizes), tj.ones(sizes)
    compiled = warmed(plain, x, y)
    result, natively = served(compiled, tj.zeros(int("300"), int("7")), y)
    assert natively and result.shape == (300, 7)
    for size in (301, 299, 300 + (1 << 8), 1):
        given = tj.ones(size, 7), tj.ones(size, 7)
        result, natively = served(compiled, *given)
        assert not natively and facts(result) == facts(plain(*given))
        for _ in range(300):
            compiled(x, y)
        assert compiled.native is not None


CHANGES = {
    "requires_grad": lambda x: x.requires_grad_(),
    "shape": lambda x: x.resize_(2),
    "data of another shape": lambda x: setattr(x, "data", tj.full((1,), 7.0)),
    "data of another dtype": lambda x: setattr(x, "data", tj.full((4,), 7.0).double()),
    "turned": lambda x: x.resize_(1, 4).t_(),
    "values": lambda x: x.fill_(9.0),
    "data": lambda x: setattr(x, "data", tj.full((4,), 7.0)),
    "set": lambda x: x.set_(tj.full((4,), 6.0)),
    "memory": lambda x: x.set_(tj.arange(9.0).untyped_storage(), 5, (4,)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_an_argument_is_seen(change) -> None:
    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(plain, x, y)
    change(x)
    for _ in range(6):
        assert outcome(compiled, x, y) == outcome(plain, x, y)


def test_memory_that_was_given_back_is_not_read() -> None:
    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(plain, x, y)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="has no memory"):
        compiled(x, y)


def test_another_tensor_at_the_same_address() -> None:
    compiled, y = warmed(), tj.ones(4)
    kinds = [tj.float32, tj.float64, tj.int32, tj.bool]
    for k in range(200):
        x = tj.ones(4, dtype=kinds[k % 4]) if k % 3 else tj.ones(1)
        assert facts(compiled(x, y)) == facts(plain(x, y))
        del x


def test_where_a_view_begins_may_be_read() -> None:
    def shifted(x, y):
        return x * x.storage_offset() + y

    whole, y = tj.arange(24.0), tj.ones(4)
    compiled = tj.script(shifted, mode="compiled")
    for low in [4] * 12 + [8, 4, 8, 0]:
        x = whole[low : low + 4]
        assert facts(compiled(x, y)) == facts(shifted(x, y))


def test_one_tensor_twice_and_overlapping_ones() -> None:
    whole = tj.arange(8.0)
    compiled = warmed(pair)
    for given in ([whole[:4]] * 2, (whole[:4], whole[2:6]), (whole[2:6], whole[:4])):
        for _ in range(4):
            assert facts(compiled(*given)) == facts(pair(*given))


def numbered(x, y):
    return x + y + id(x) * 0 + (1 if x is y else 2)


def test_what_identity_decides_is_asked_again() -> None:
    x, y = tj.ones(4), tj.ones(4)
    compiled = tj.script(numbered, mode="compiled")
    for given in ((x, y), (x, x), (y, x), (y, y)):
        for _ in range(12):
            assert facts(compiled(*given)) == facts(numbered(*given))


def written(x, y):
    x.add_(y)
    return x * 2


def test_overlaps_of_written_memory_are_seen() -> None:
    whole = [tj.zeros(8), tj.zeros(8)]
    compiled = tj.script(written, mode="compiled")
    for low in [4] * 12 + [2] * 3 + [4] * 6:
        found = [f(x[:4], x[low : low + 4]) for f, x in zip((written, compiled), whole)]
        assert facts(found[0]) == facts(found[1]) and whole[0].tolist() == whole[1].tolist()


@contextlib.contextmanager
def changed(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def default_dtype():
    tj.set_default_dtype(tj.float64)
    try:
        yield
    finally:
        tj.set_default_dtype(tj.float32)


def reads_modes(x, y):
    z = x.reshape(2, 2) @ y.reshape(2, 2) + tj.full((2, 2), 1 / 3)
    return z * (2 if tj.is_grad_enabled() else 3) * replayed_calls.LEVEL * Settings.factor


AROUND = {
    "no grad": tj.no_grad,
    "inference mode": tj.inference_mode,
    "autocast": lambda: tj.autocast("cpu"),
    "default dtype": default_dtype,
    "default device": lambda: tj.device("meta"),
    "global": lambda: changed(replayed_calls, "LEVEL", 5.0),
    "class attribute": lambda: changed(Settings, "factor", 5.0),
    "method of the tensors": lambda: changed(
        tj.Tensor, "reshape", lambda x, *shape: tj.zeros(2, 2)),
    "code": lambda: changed(reads_modes, "__code__", pair.__code__),
}  # fmt: skip


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_modes_and_globals_are_asked_each_time(around) -> None:
    given = tj.arange(4.0), tj.ones(4) / 3

    def same():
        assert outcome(compiled, *given) == outcome(reads_modes, *given)

    compiled = warmed(reads_modes, *given)
    for _ in range(3):
        with around():
            for _ in range(12):
                same()
        for _ in range(12):
            same()


def test_modes_are_compared_again_where_they_have_changed_and_are_as_before() -> None:
    given = tj.arange(4.0), tj.ones(4)
    compiled = warmed()
    for _ in range(10):
        with tj.no_grad():
            pass
        assert served(compiled, *given)[1]


def test_the_first_use_of_autocast_is_seen(monkeypatch) -> None:
    def product(x, y):
        return x @ y

    monkeypatch.setattr(autocast.used, "ever", False)
    given = tj.ones(2, 2) / 3, tj.ones(2, 2)
    compiled = warmed(product, *given)
    with tj.autocast("cpu"):
        assert facts(compiled(*given)) == facts(product(*given))


def test_leaves_and_results_are_told_apart() -> None:
    def asked(x, y):
        return x * 2 if x.is_leaf else x * 3 + y

    x, y = tj.arange(4.0).requires_grad_(), tj.ones(4)
    result = x * 1
    with tj.no_grad():
        compiled = warmed(asked, x, y)
        for given in (result, x, result):
            for _ in range(12):
                assert facts(compiled(given, y)) == facts(asked(given, y))


def test_arguments_that_are_guarded_by_value() -> None:
    def chosen(x, kind):
        return x * 2 if kind else x * 3

    x = tj.arange(4.0)
    compiled = warmed(chosen, x, True)
    for kind in (False, True, None, 1):
        assert facts(compiled(x, kind)) == facts(chosen(x, kind))


def test_a_leaf_with_hooks_is_another_kind() -> None:
    x, y = tj.arange(4.0).requires_grad_(), tj.ones(4)
    with tj.no_grad():
        compiled = warmed(plain, x, y)
        x.register_hook(lambda grad: grad)
        result, natively = served(compiled, x, y)
        assert not natively and facts(result) == facts(plain(x, y))


def test_inference_mode_is_no_mere_no_grad() -> None:
    given = tj.arange(4.0), tj.ones(4)
    with tj.no_grad():
        compiled = warmed(plain, *given)
    with tj.inference_mode():
        assert facts(compiled(*given)) == facts(plain(*given))


def test_autocast_that_was_used_once_is_asked() -> None:
    given = tj.arange(4.0), tj.ones(4)
    with tj.autocast("cpu"):
        plain(*given)
    compiled = warmed(reads_modes, *given)
    assert served(compiled, *given)[1]
    with tj.autocast("cpu"):
        assert facts(compiled(*given)) == facts(reads_modes(*given))


def test_closure_cells_and_defaults_are_seen(monkeypatch) -> None:
    level = 1.0

    def closed(x, y):
        return by_default(x) * level + y

    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(closed, x, y)
    level = 4.0
    for _ in range(12):
        assert facts(compiled(x, y)) == facts(closed(x, y))
    monkeypatch.setattr(by_default, "__defaults__", (7.0,))
    for _ in range(12):
        assert facts(compiled(x, y)) == facts(closed(x, y))


def test_its_own_defaults_and_names_are_seen() -> None:
    def scaled(x, y=tj.ones(4)):
        return x * 2 - y

    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(scaled, x, y)
    scaled.__defaults__ = (tj.full((4,), 9.0),)
    for _ in range(3):
        assert facts(compiled(x)) == facts(scaled(x))
        assert facts(compiled(y=y, x=x)) == facts(scaled(x, y))
    for given in ((), (x, y, y)):
        with pytest.raises(TypeError):
            compiled(*given)


def test_dicts_with_the_same_keys_in_another_order() -> None:
    table = {"a": 1.0, "b": 2.0}

    def folded(x, y):
        for factor in table.values():
            x = x * factor + y
        return x

    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(folded, x, y)
    table["a"] = table.pop("a")
    assert facts(compiled(x, y)) == facts(folded(x, y))


class Other(Scaled):
    def forward(self, x):
        return x - 1


def other_data(model):
    model.weight.data = tj.full((4,), 5.0)


MODELS = {
    "eval": lambda m: m.eval(),
    "parameter": lambda m: setattr(m, "weight", tj.nn.Parameter(tj.zeros(4))),
    "data": other_data,
    "values": lambda m: m.weight.data.fill_(4.0),
    "requires_grad": lambda m: m.requires_grad_(False),
    "forward hook": lambda m: m.inner.register_forward_hook(lambda m, x, y: y * 3),
    "forward pre-hook": lambda m: m.register_forward_pre_hook(lambda m, x: (x[0] * 3,)),
    "submodule": lambda m: setattr(m, "inner", tj.nn.Linear(4, 4)),
    "forward of the instance": lambda m: setattr(m, "forward", lambda x: x),
    "class": lambda m: setattr(m, "__class__", Other),
}


@pytest.mark.parametrize("change", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("given", [False, True], ids=["global", "argument"])
def test_a_change_of_the_model_is_seen(change, given) -> None:
    model, x = Scaled(), tj.arange(4.0)

    def apply(x, m=None):
        return (m or model)(x) * 1

    arguments = (x, model) if given else (x, None)
    with tj.no_grad():
        compiled = warmed(apply, *arguments)
        change(model)
        for _ in range(12):
            assert facts(compiled(*arguments)) == facts(apply(*arguments))
        change(model)
        for _ in range(12):
            assert facts(compiled(*arguments)) == facts(apply(*arguments))


def test_another_model_as_argument() -> None:
    def apply(m, x):
        return m(x)

    models, x = [Scaled(), Scaled()], tj.arange(4.0)
    with tj.no_grad():
        compiled = warmed(apply, models[0], x)
        for k in (1, 0, 1):
            assert facts(compiled(models[k], x)) == facts(apply(models[k], x))


def test_flags_and_options_are_seen() -> None:
    given = tj.arange(4.0), tj.ones(4)
    compiled = warmed()
    with changed(flags, "check_nans", True), pytest.raises(NanFound):
        compiled(tj.full((4,), float("nan")), tj.ones(4))
    for owner, value in ((flags, "eager"), (compiled, "eager")):
        compiled = warmed() if owner is flags else compiled
        for _ in range(80):
            compiled(*given)
        hits = compiled.report().cache_hits
        target = compiled if owner is not flags else flags
        compiled.mode = None
        for _ in range(80):
            compiled(*given)
        hits = compiled.report().cache_hits
        with changed(target, "mode", value):
            assert facts(compiled(*given)) == facts(plain(*given))
        assert compiled.report().cache_hits == hits, "ran plainly"
    with changed(compiled, "function", pair):
        compiled(*given)
        assert compiled.native is None


def test_hooks_of_all_modules_are_seen() -> None:
    model, x = Scaled(), tj.arange(4.0)
    with tj.no_grad():
        compiled = warmed(lambda x: model(x) * 1, x)
        register = tj.nn.modules.module.register_module_forward_hook
        handle = register(lambda m, given, result: result * 2)
        try:
            assert facts(compiled(x)) == facts(model(x) * 1)
        finally:
            handle.remove()
        assert facts(compiled(x)) == facts(model(x) * 1)


def test_anomaly_mode_runs_op_by_op() -> None:
    compiled = warmed()
    given = tj.arange(4.0), tj.ones(4)
    hits = compiled.report().cache_hits
    with tj.autograd.detect_anomaly():
        assert facts(compiled(*given)) == facts(plain(*given))
    assert compiled.report().cache_hits == hits


def test_a_captured_call_inside_another_recording() -> None:
    inner = warmed()
    outer = tj.script(lambda x, y: inner(x, y) + inner(y, x), mode="compiled")
    given = tj.arange(4.0), tj.ones(4)
    for _ in range(9):
        assert facts(outer(*given)) == facts(plain(*given) + plain(*given[::-1]))
    assert len(outer.report().graphs) == 1
    assert served(inner, *given)[1], "a recording is no reason to end it"
