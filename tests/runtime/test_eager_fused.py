"""Fused ops of eager mode: bits of every other way, and errors and history of ops one by one."""

import gc
import threading

import numpy as np
import pytest

import tracejit
from tests.runtime.test_forks import forked
from tracejit import config
from tracejit.core.eager import dispatch
from tracejit.core.memory import empty_cache, reset_peak, stats
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.recurrent_steps import gru_gates, lstm_gates
from tracejit.jit.runtime import cache, eager_fused, eager_kernels

F = tracejit.nn.functional
RNG = np.random.default_rng(5)


def normal(*shape, dtype="f4"):
    return tracejit.tensor(RNG.standard_normal(shape).astype(dtype))


def parts(x, gates):
    """Make both products of a recurrent step, and the state before it."""
    x, count = x.repeat(1, 2 * gates + 1), x.shape[1]
    return x[:, :gates * count], x[:, gates * count:-count].cos(), x[:, -count:]


# Each is a function of (x, w), where x is (rows, columns) and w has one element a column.
CALLS = {
    "softmax": lambda x, w: F.softmax(x, 1),
    "softmax of columns": lambda x, w: F.softmax(x, 0),
    "log_softmax": lambda x, w: F.log_softmax(x, 1),
    "layer_norm": lambda x, w: F.layer_norm(x, w.shape, w, w * 2),
    "layer_norm, no weights": lambda x, w: F.layer_norm(x, w.shape),
    "gelu": lambda x, w: F.gelu(x),
    "gelu, tanh": lambda x, w: F.gelu(x, approximate="tanh"),
    "silu": lambda x, w: F.silu(x),
    "erf": lambda x, w: x.erf(),
    "sigmoid": lambda x, w: x.sigmoid(),
    "lstm": lambda x, w: sum(lstm_gates(*parts(x, 4))),
    "gru": lambda x, w: gru_gates(*parts(x, 3)),
    "cross_entropy": lambda x, w: F.cross_entropy(x, tracejit.arange(x.shape[0]) % x.shape[1]),
    "cross_entropy, weights": lambda x, w: F.cross_entropy(
        x, tracejit.arange(x.shape[0]) % x.shape[1], w.abs(), label_smoothing=0.1),
}


def with_gradients(call):
    def step(x, w):
        result = call(x, w)
        return result, *tracejit.autograd.grad((result * result.cos()).sum(), [x, w],
                                               allow_unused=True)

    return step


def bits(results):
    return [r.detach().numpy().tobytes() for r in results if r is not None]


def leaves(*shape, dtype="f4"):
    x, w = normal(*shape, dtype=dtype), normal(shape[-1], dtype=dtype)
    return x.requires_grad_(), w.requires_grad_()


@pytest.fixture
def ran(monkeypatch):
    """Names of the fused ops that programs computed."""
    names = []

    def run(op, operands, attributes):
        found = eager_kernels.run(op, operands, attributes)
        if found is not None and op.fused:
            names.append(op.name)
        return found

    monkeypatch.setattr(dispatch, "_library", [run])
    monkeypatch.setattr(eager_fused, "WORTH", 0.0)
    return names


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(3, 5), (70, 130)])
def test_exact_programs_have_the_bits_of_eager_mode(ran, name, dtype, shape):
    step = with_gradients(CALLS[name])
    x, w = leaves(*shape, dtype=dtype)
    expected = bits(step(x, w))
    assert any(r.startswith(name.split(",")[0].split(" ")[0]) for r in ran)
    assert any("_backward" in r or "layer_norm_" in r for r in ran)
    for mode in ("compiled", "graph", "python"):
        captured = tracejit.script(step, numerics="eager", mode=mode)
        assert bits(captured(x, w)) == expected, mode
        assert bits(captured(x, w)) == expected, mode


@pytest.mark.parametrize("name", CALLS)
def test_bits_depend_on_no_thread_rank_or_layout(name):
    step = with_gradients(CALLS[name])
    x, w = leaves(600, 700)
    expected = bits(step(x, w))
    before = tracejit.get_num_threads()
    try:
        for threads in (1, 2, 5):
            tracejit.set_num_threads(threads)
            assert bits(step(x, w)) == expected, threads
    finally:
        tracejit.set_num_threads(before)
    turned = x.detach().t().contiguous().t().requires_grad_()
    assert not turned.is_contiguous()
    assert bits(step(turned, w)) == expected


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "gelu", "silu"])
def test_a_row_has_the_same_bits_alone_and_among_others(name):
    x, w = normal(40, 65), normal(65)
    whole = CALLS[name](x, w)
    for k in (0, 7, 39):
        assert bits([CALLS[name](x[k:k + 1], w)]) == bits([whole[k:k + 1]])
    assert bits([CALLS[name](x.reshape(5, 8, 65), w) if name not in ("softmax", "log_softmax")
                 else getattr(F, name)(x.reshape(5, 8, 65), 2)]) == bits([whole])


def test_one_program_serves_all_sizes_and_ranks():
    op = REGISTRY["softmax"]
    F.softmax(normal(2, 3), 1)
    before = sum(len(v) for k, v in eager_fused._programs.items() if k[0] is op)
    compiled = dict(cache.counts)
    for shape in ((4, 9), (1, 1), (7,), (2, 3, 4, 5)):
        F.softmax(normal(*shape), len(shape) - 1)
    assert sum(len(v) for k, v in eager_fused._programs.items() if k[0] is op) == before
    assert cache.counts["compiled"] == compiled["compiled"]


def test_halves_and_complex_numbers_run_their_bodies(ran):
    F.softmax(normal(2, 3).half(), 1)
    F.gelu(normal(3).bfloat16())
    F.silu(tracejit.complex(normal(3), normal(3)))
    F.softmax(tracejit.zeros(0, 3), 1)
    assert ran == []


def test_errors_are_those_of_the_ops():
    x = normal(3, 4)
    with pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(x, tracejit.tensor([0, 1, 9]))
    assert np.isfinite(F.cross_entropy(x, tracejit.tensor([0, 1, 3])).item())
    with config.override(check_nans=True):
        assert F.softmax(x, 1).sum(1).allclose(tracejit.ones(3))


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives(name):
    x, w = leaves(3, 5, dtype="f8")
    assert tracejit.autograd.gradgradcheck(lambda x: CALLS[name](x, w.detach()), [x])


def test_nodes_keep_what_they_did():
    x, w = leaves(3, 4)
    for name in ("softmax", "layer_norm", "gelu", "cross_entropy"):
        node = CALLS[name](x, w).grad_fn
        (grad,) = tracejit.autograd.grad(CALLS[name](x, w).sum(), [x], create_graph=True)
        assert node is not None and grad.grad_fn is not None
        (grad,) = tracejit.autograd.grad(CALLS[name](x, w).sum(), [x])
        assert grad.grad_fn is None
    with tracejit.inference_mode():
        assert F.softmax(x, 1).is_inference()


def test_threads_may_make_the_same_program_at_once():
    x, w = leaves(33, 21)
    step = with_gradients(CALLS["layer_norm"])
    expected, found = bits(step(x, w)), []
    eager_fused._calls.clear()
    eager_fused._programs.clear()
    cache._addresses.clear()
    start = threading.Barrier(4)

    def work():
        start.wait()
        found.append(bits(step(x, w)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_a_forked_child_computes_the_same():
    x, w = leaves(300, 500)
    step = with_gradients(CALLS["softmax"])
    expected = bits(step(x, w))

    def child():
        first = bits(step(x, w)) == expected
        eager_fused._calls.clear()
        eager_fused._programs.clear()
        return 0 if first and bits(step(x, w)) == expected else 1

    assert forked(child) == 0


def test_ops_that_run_within_a_recording(capsys):
    """Between two segments of a recording, and in a function that a graph break leaves."""
    x, w = leaves(6, 8)

    def step(x, w):
        y = F.softmax(x, 1)
        print(y.sum().item())  # a graph break
        eager_fused._calls.clear()
        eager_fused._programs.clear()
        return F.layer_norm(y, (8,), w, w) * float(F.gelu(y).sum().item())

    expected = step(x, w)
    captured = tracejit.script(step)
    for _ in range(4):
        assert captured(x, w).allclose(expected)


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "gelu"])
def test_memory_beside_the_results_is_none(name):
    x, w = normal(1 << 10, 1 << 10), normal(1 << 10)
    CALLS[name](x, w)
    gc.collect()
    empty_cache()
    reset_peak()
    before = stats().allocated
    result = CALLS[name](x, w)
    assert stats().peak - before <= result.nbytes + (1 << 16)


def test_the_first_use_within_a_recording_adds_no_input():
    """A value check in mode "graph" computes sigmoid while the call is recorded."""
    model = tracejit.nn.Sequential(tracejit.nn.Linear(3, 5), tracejit.nn.Sigmoid())

    @tracejit.script(mode="graph", fullgraph=True)
    def loss(x, y):
        return tracejit.nn.functional.binary_cross_entropy(model(x), y)

    eager_fused._calls.clear()
    for rows in (7, 7, 4):
        found = loss(tracejit.ones(rows, 3), tracejit.zeros(rows, 5))
        plain = -(1 - model(tracejit.ones(1, 3))).log().mean()
        assert found.item() == pytest.approx(plain.item())
    assert loss.report().breaks == [] and loss.report().cache_hits == 2
