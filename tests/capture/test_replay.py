"""What must replay as one program, how often it compiles, and that a replay dispatches no op from
Python."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import time

import numpy as np
import pytest

import tracejit as tj
from tracejit import config

F = tj.nn.functional


def trained(optimizer, layers=None, **options):
    net = layers or tj.nn.Sequential(tj.nn.Linear(8, 16), tj.nn.ReLU(), tj.nn.Linear(16, 3))
    opt = optimizer(net.parameters(), **options)

    @tj.script
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        tj.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        return loss

    return net, opt, step


@pytest.mark.parametrize(
    "optimizer, options",
    [
        (tj.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (tj.optim.Adam, {"lr": 0.01}),
        (tj.optim.AdamW, {"lr": 0.01}),
    ],
)
def test_one_program_serves_all_batches_and_learning_rates(optimizer, options):
    _, opt, step = trained(optimizer, **options)
    for k, n in enumerate((6, 6, 3, 1, 2, 7, 64)):
        opt.param_groups[0]["lr"] = 0.1 / (k + 1)
        step(tj.randn(n, 8), tj.randint(0, 3, (n,)))
    report = step.report()
    assert (report.compiles, report.breaks, report.cache_hits) == (1, [], 6), str(report)


def test_a_replay_dispatches_no_op():
    _, _, step = trained(tj.optim.AdamW, lr=0.01)
    x, y = tj.randn(5, 8), tj.randint(0, 3, (5,))
    step(x, y)
    dispatched = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code is tj.Tensor.dispatch.__code__:
            dispatched.append(frame.f_locals["op"])

    sys.setprofile(watch)
    try:
        step(x, y)
        replayed = list(dispatched)
        x.cumsum(0)  # an op that no native function computes
    finally:
        sys.setprofile(None)
    assert replayed == []
    assert [op.name for op in dispatched] == ["cumsum"]
    assert step.report().cache_hits == 1


def test_dropout_and_random_draws_replay():
    f = tj.script(lambda x: F.dropout(x, 0.5) + tj.rand(3) + tj.randn(3))
    seen = []
    tj.manual_seed(7)
    for _ in range(3):
        seen.append(f(tj.ones(3)).numpy().copy())
    assert f.report().breaks == [] and f.report().compiles == 1
    tj.manual_seed(7)
    plain = [(F.dropout(tj.ones(3), 0.5) + tj.rand(3) + tj.randn(3)).numpy() for _ in range(3)]
    np.testing.assert_array_equal(seen, plain)


def test_inference_of_a_module_replays_for_an_equal_instance():
    class Net(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = tj.nn.Linear(2, 2)

        @tj.script
        def forward(self, x):
            return self.layer(x).relu()

    a, b = Net(), Net()
    x = tj.randn(3, 2)
    with tj.no_grad():
        for net in (a, b, a):
            np.testing.assert_allclose(net(x).numpy(), net.layer(x).relu().numpy(), rtol=1e-6)
    assert Net.forward.report().compiles == 1


def test_scripted_module_keeps_parameters_and_names():
    net = tj.nn.Sequential(tj.nn.Linear(2, 3), tj.nn.Tanh())
    scripted = tj.script(net)
    x = tj.randn(4, 2)
    np.testing.assert_allclose(scripted(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)
    assert list(scripted.state_dict()) == list(net.state_dict())
    assert scripted.report().compiles == 1
    again = copy.deepcopy(scripted)
    with tj.no_grad():
        again[0].weight.zero_()
        again[0].bias.zero_()
    np.testing.assert_array_equal(again(x).detach().numpy(), np.zeros((4, 3), np.float32))


def double(x):
    return x * 2


def test_copies_and_pickles_start_without_entries():
    f = tj.script(double)
    f(tj.ones(2))
    for g in (copy.deepcopy(f), pickle.loads(pickle.dumps(tj.script(_named)))):
        assert g.report().compiles == 0


def _named(x):
    return x + 1


def test_no_recompile_names_the_cause():
    f = tj.script(lambda x: x * 2)
    f(tj.ones(2))
    with tj.no_recompile():
        f(tj.ones(5))
        with pytest.raises(tj.RecompileError, match="x: float32, 1 dimensions.*int64"):
            f(tj.ones(2, dtype=tj.int64))


def test_fullgraph_names_the_line():
    @tj.script(fullgraph=True)
    def f(x):
        return x if x.sum().item() > 0 else -x

    with pytest.raises(tj.CaptureError, match="(?s)test_replay.py:.*item"):
        f(tj.ones(2))


def test_breaks_name_file_line_and_reason():
    @tj.script
    def f(x):
        os.getpid()
        return x * 2

    f(tj.ones(1))
    (found,) = f.report().breaks
    line = f.function.__code__.co_firstlineno + 2
    assert found.file.endswith("test_replay.py") and found.line == line
    assert "getpid" in found.reason


def test_what_the_garbage_collector_calls_is_no_break():
    collected = []

    def note(phase, info):
        collected.append(time.perf_counter())

    @tj.script
    def f(x):
        rows = [[k] for k in range(50)]
        if x.sum() > 0:  # a trial
            x = x * 2
        return x + len(rows)

    threshold = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        f(tj.ones(3)), f(tj.ones(3))
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*threshold)
    assert collected and not f.report().breaks and f.report().cache_hits == 1


def test_index_out_of_range_raises_eagers_error_and_leaves_state_untouched():
    table, total = tj.arange(4.0), tj.zeros(2)

    @tj.script
    def f(i):
        picked = table[i]
        total.add_(picked)
        return picked * 1

    f(tj.tensor([0, 1]))
    before = total.clone()
    with pytest.raises(IndexError):
        f(tj.tensor([0, 9]))
    np.testing.assert_array_equal(total.numpy(), before.numpy())
    np.testing.assert_array_equal(f(tj.tensor([2, 3])).numpy(), [2.0, 3.0])


def test_index_out_of_range_in_the_first_call_raises_eagers_error():
    f = tj.script(lambda x, i: x[i] * 2)
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        f(tj.ones(3), tj.tensor([7]))
    assert f(tj.ones(3), tj.tensor([2])).tolist() == [2.0]


def test_what_cannot_be_compiled_runs_op_by_op_and_says_so(monkeypatch):
    from tracejit.jit.lowering import lower

    def broken(*args):
        raise AssertionError("no kernels today")

    monkeypatch.setattr(lower, "lower", broken)
    f = tj.script(lambda x: x * 3.25 - 8)
    with config.override(verify_passes=False), pytest.warns(RuntimeWarning, match="no kernels"):
        assert f(tj.ones(2)).tolist() == [-4.75, -4.75]
    assert "no kernels today" in str(f.report().breaks[0])


def test_entries_hold_no_tensor_alive():
    import gc
    import weakref

    class Box:
        pass

    box = Box()
    box.net = tj.nn.Linear(2, 2)
    f = tj.script(lambda b, x: b.net(x))
    f(box, tj.ones(1, 2))
    alive = weakref.ref(box.net.weight)
    del box
    gc.collect()
    assert alive() is None


def test_modes_agree_and_python_mode_runs_the_same_text():
    def f(x, y):
        return F.softmax(x @ y, -1).sum(0)

    x, y = tj.randn(3, 4), tj.randn(4, 5)
    expected = f(x, y).numpy()
    for mode in ("eager", "graph", "python", "compiled"):
        np.testing.assert_allclose(tj.script(f, mode=mode)(x, y).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float32", "float64"])
def test_a_slice_starts_where_it_does(dtype):
    f = tj.script(lambda x: x + 1)
    whole = (tj.arange(40) % 3).to(getattr(tj, dtype))
    for k in (0, 3, 5, 10, 7):
        x = whole[k : k + 4]
        assert f(x).tolist() == (x + 1).tolist()
    assert f.report().compiles == 1


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_strides_choose_what_is_read(mode):
    f = tj.script(lambda x: x * 2 + 1, mode=mode)
    whole = tj.arange(24.0)
    for step in (2, 3, 2, 5, 3):
        x = whole[::step][:4]
        assert f(x).tolist() == (x * 2 + 1).tolist()
    assert f.report().compiles == 1


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="mode: expected one of"):
        tj.script(double, mode="fast")


def test_graphs_show_each_stage():
    f = tj.script(lambda x: F.softmax(x, 0))
    f(tj.ones(2))
    assert "= softmax(" in f.graphs["captured"] and "= softmax(" not in f.graphs["open"]


def test_storms_are_reported_and_stay_right():
    with config.override(max_entries=3):
        f = tj.script(lambda x, n: x * int(n))
        for n in range(8):
            assert f(tj.ones(1), n).item() == n
        assert f.report().variants == 3
        assert any("programs already" in b.reason for b in f.report().breaks)


def test_static_functions_make_one_program_per_shape():
    f = tj.script(lambda x: x * 2 + 1, dynamic=False)
    for n in (2, 3, 2, 3):
        assert f(tj.ones(n)).tolist() == [3.0] * n
    assert f.report().compiles == 2
    assert "float32[2]" in str(f.graph(tj.ones(2)))


def test_asking_for_a_graph_draws_no_numbers():
    f = tj.script(lambda x: x + tj.rand(2))
    before = tj.get_rng_state()
    f.graph(tj.ones(2))
    assert tj.equal(tj.get_rng_state(), before)


def test_long_recordings_are_cut_into_segments():
    with config.override(max_segment_nodes=10):
        f = tj.script(lambda x: sum(x * k for k in range(20)))
        assert f(tj.ones(1)).item() == 190.0
        assert any("nodes already" in b.reason for b in f.report().breaks)
