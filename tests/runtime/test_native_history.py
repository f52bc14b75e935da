"""What native code makes for a later backward is what Python makes, and costs as many calls of
Python's functions for many parameters as for few."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager.nodes import Node
from tracejit.core.memory import readers
from tracejit.jit.capture.memory_words import supported
from tracejit.jit.runtime import attach_backward, native_history
from tracejit.jit.runtime.backward_plan import BackwardPlan
from tracejit.jit.runtime.call_nodes import CompiledBackward
from tracejit.jit.runtime.later_backward import SavedCall

pytestmark = pytest.mark.skipif(not supported(), reason="no native code on this interpreter")
CALLS = 5  # the last ones go natively, where there is native code


def of_weights(count: int = 2, function=lambda x, w: x * w):
    weights = [tj.full((3,), 0.5 + k / count, requires_grad=True) for k in range(count)]

    def plain(x):
        for weight in weights:
            x = function(x, weight)
        return x

    return weights, tj.script(plain, mode="compiled")


def plan_of(compiled):
    ((_, entry),) = compiled.entries
    return entry.backward


def slots(x, *names):
    return {name: getattr(x, name) for name in names}


@pytest.fixture
def natively(monkeypatch):
    """Counts the histories that were made natively."""
    made: Counter = Counter()

    def counting(*args):
        lay = native_history.layer(*args)

        def counted(*given):
            at = lay(*given)
            made[at is not None] += 1
            return at

        return counted

    monkeypatch.setattr(attach_backward, "layer", counting)
    return made


RESULTS = {
    "one": lambda x, w: x * w,
    "of one node": lambda x, w: (x * w, x - w, 2 * w),
    "one of another": lambda x, w: (lambda y: (y, (y * w).sum()))(x * w),
    "three, of which two share one": lambda x, w: (lambda y: [y + w, y, y * x])(x * w),
}


@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_nodes_and_call_are_those_that_python_makes(natively, monkeypatch, function):
    w, compiled = tj.full((3,), 2.0, requires_grad=True), tj.script(function, mode="compiled")
    x = tj.full((3,), 3.0, requires_grad=True)
    for _ in range(CALLS):
        made = compiled(x, w)
    assert natively[True]
    monkeypatch.setattr(attach_backward, "lays", lambda plan: False)
    plan, before = plan_of(compiled), natively.total()
    plan.lay, plan.last = None, BackwardPlan.last
    again = compiled(x, w)
    assert natively.total() == before
    made, again = ([y] if isinstance(y, tj.Tensor) else y for y in (made, again))
    assert type(made) is type(again)
    assert described(made) == described(again)


def described(results):
    """The history of results, with the nodes of the call numbered as they are met."""
    nodes, found = [y.grad_fn for y in results], []
    found += [(nodes.index(y.grad_fn), y.output_nr, y.requires_grad, y.tolist()) for y in results]
    call = nodes[0].call
    for node in nodes:
        nodes += [edge[0] for edge in node.edges if edge[0] not in nodes]
        names = [name for name in (*Node.__slots__, *getattr(node, "__slots__", ()))
                 if name not in ("__weakref__", "sequence", "call", "edges", "variable")]
        found.append((type(node), slots(node, *names), getattr(node, "variable", None) is None,
                      [(nodes.index(n), k) for n, k in node.edges]))
        assert node.call in (call, None)
    ages = [node.sequence for node in nodes]
    order = sorted(range(len(nodes)), key=ages.__getitem__)
    kept = {name: [x.tolist() for x in getattr(call, name)] for name in ("made", "inner")}
    names = [name for name in SavedCall.__slots__ if name not in (
        "__weakref__", "nodes", "versions", "noted", *kept)]
    stages = call.nodes and not call.plan.straight and [nodes.index(at()) for at in call.nodes]
    return (found, order, slots(call, *names), kept, stages or None, list(call.versions),
            {k: (type(x), x.version, x.label) for k, x in call.noted.items()})


@pytest.mark.parametrize("written", [True, False])
def test_a_write_after_the_call_is_noticed(natively, written):
    weights, compiled = of_weights()
    for _ in range(CALLS):
        with tj.no_grad():
            weights[1].add_(1)
        y = compiled(tj.ones(3))
    assert natively[True]
    if written:
        with tj.no_grad():
            weights[1].add_(1).mul_(2)
        with pytest.raises(RuntimeError, match="version 7; expected version 5 instead"):
            y.sum().backward()
    else:
        y.sum().backward()
        assert weights[0].grad is not None


def test_inputs_that_are_views_or_have_views(natively):
    weights, compiled = of_weights(1, lambda x, w: x * w * w)
    seen, whole = weights[0][1:], tj.ones(2, 3, requires_grad=True)
    for k in range(CALLS):
        y = compiled(whole[k % 2])
    assert natively[True]
    y.sum().backward()
    assert whole.grad.tolist() == [[0.25] * 3, [0.0] * 3] and seen.is_leaf is False
    y = compiled(whole[0])
    with tj.no_grad():
        whole[1].zero_()
    with pytest.raises(RuntimeError, match="version 1; expected version 0"):
        y.sum().backward()


def test_data_counts_its_own_writes(natively):
    weights, compiled = of_weights(1, lambda x, w: x * w * w)
    data = tj.ones(3).data
    for _ in range(CALLS):
        y = compiled(data)
    assert natively[False] and not natively[True]
    data.add_(1)
    with pytest.raises(RuntimeError, match="version 1; expected version 0"):
        y.sum().backward()


def test_histories_die_with_their_results(natively):
    _, compiled = of_weights(3)
    gc.collect()
    before = set(readers.live)
    for k in range(CALLS + 20):
        x = tj.full((3,), float(k))
        y = compiled(x)
        node, given = weakref.ref(y.grad_fn), weakref.ref(x)
        assert len(readers.live - before) == 1
        del x
        assert given() is not None
        if k % 2:
            y.sum().backward()
            assert node() is not None and (given() is None or k < CALLS)
        else:
            del y
            assert node() is None and (given() is None or k < CALLS)
        y = None
        assert readers.live == before
    assert natively[True] > 20


@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_no_reference_is_kept_or_lost(natively, function):
    w, compiled = tj.full((3,), 2.0, requires_grad=True), tj.script(function, mode="compiled")
    x = tj.ones(3, requires_grad=True)
    for _ in range(CALLS):
        y = compiled(x, w)
    plan, version = plan_of(compiled), 1 << 40
    x._storage.version = version  # an int that nobody else has
    call = (y if isinstance(y, tj.Tensor) else y[0]).grad_fn.call
    kept = [plan, *plan.stages, *plan.places, *plan.cuts, call.bound, native_history.NOTHING,
            SavedCall,
            CompiledBackward, readers.live, readers.forget, version, x, w, call.ends, *call.ends,
            *(node for node, _ in call.ends), *plan.numbers, *(k for _, k in plan.places)]
    del call
    before = list(map(sys.getrefcount, kept))
    for _ in range(100):
        y = compiled(x, w)
    grown = [now - then for then, now in zip(before, map(sys.getrefcount, kept))]
    assert natively[True] >= 100 and y is not None
    assert max(map(abs, grown)) < 30, grown  # others use small ints, too


def test_memory_that_others_may_write_is_kept():
    """Plainly, backward reads what forward kept of it, and factors as they are now."""
    found = []
    for jit in (lambda f: f, lambda f: tj.script(f, mode="compiled")):
        weights = [tj.full((3,), 0.5, requires_grad=True) for _ in range(2)]
        run = jit(lambda x: ((x * weights[0]).tanh() * weights[1]).tanh())  # noqa: B023
        shown, factors = [weights[0].detach().numpy()], (0.5, 1.5)
        for k in range(2 * CALLS):
            if k == CALLS:  # more is shown, while a snapshot vouches for what was looked at
                shown.append(weights[1].detach().numpy())
            y = run(tj.ones(3))
            for array in shown:
                array *= factors[k % 2]
            y.sum().backward()
            found.append([w.grad.tolist() for w in weights])
    np.testing.assert_allclose(found[: 2 * CALLS], found[2 * CALLS :], rtol=1e-5)


def functions_called(run) -> Counter:
    called: Counter = Counter()

    def note(frame, event, argument):
        if event == "call":
            called[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return called


def test_a_call_with_many_parameters_runs_as_little_python_as_one_with_few(monkeypatch):
    monkeypatch.setattr(readers.shown, "places", set())  # by other tests
    counts = []
    for count in (2, 40):
        _, compiled = of_weights(count)
        x, last = tj.ones(3), None
        for _ in range(CALLS):
            last = compiled(x)
        counts.append(functions_called(lambda: compiled(x)))  # noqa: B023
        assert last is not None
    assert counts[0] == counts[1] and counts[0].total() <= 8
