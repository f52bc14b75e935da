"""Checkpointing: the function's own values and gradients, with less kept; PyTorch's messages."""

import importlib
import tracemalloc
import warnings

import pytest

import tracejit
from tracejit.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

EITHER = pytest.mark.parametrize("reentrant", [True, False])


def layers(lib):
    weight = lib.nn.Parameter(lib.tensor([[1.0, -2.0], [0.5, 3.0]]))
    bias = lib.nn.Parameter(lib.tensor([0.1, 0.2]))
    return weight, bias, lambda x: ((x @ weight + bias).sin() * x.exp()).tanh()


def gradients(lib, run, create_graph=False):
    weight, bias, function = layers(lib)
    x = lib.tensor([[0.5, -1.0]], requires_grad=True)
    inner = x * 2  # not a leaf
    y = run(function, inner)
    if create_graph:
        found = lib.autograd.grad((y * y).sum(), [x, weight], create_graph=True)
        found = lib.autograd.grad(sum(g.pow(2).sum() for g in found), [x, weight, bias])
    else:
        (y * y).sum().backward()
        found = x.grad, weight.grad, bias.grad
    return [y.tolist(), *(g.tolist() for g in found)]


@EITHER
def test_gradients_are_those_of_the_function(reentrant):
    run = lambda f, x: checkpoint(f, x, use_reentrant=reentrant)  # noqa: E731
    assert gradients(tracejit, run) == gradients(tracejit, lambda f, x: f(x))


def test_second_order():
    run = lambda f, x: checkpoint(f, x, use_reentrant=False)  # noqa: E731
    assert gradients(tracejit, run, True) == gradients(tracejit, lambda f, x: f(x), True)


@EITHER
def test_modules_train_the_same(reentrant):
    def trained(run):
        tracejit.manual_seed(0)
        model = tracejit.nn.Sequential(tracejit.nn.Linear(3, 8), tracejit.nn.ReLU(),
                                       tracejit.nn.Dropout(0.5), tracejit.nn.Linear(8, 1))
        optimizer = tracejit.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x = tracejit.rand(4, 3).requires_grad_()
            loss = run(model, x).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [p.tolist() for p in model.parameters()] + [tracejit.rand(1).item()]

    expected = trained(lambda model, x: model(x))
    assert trained(lambda model, x: checkpoint(model, x, use_reentrant=reentrant)) == expected
    assert trained(lambda model, x: checkpoint_sequential(model, 2, x, reentrant)) == expected


@EITHER
def test_random_numbers_drawn_again(reentrant):
    def noisy(preserve):
        drawn = []

        def function(x):
            drawn.append(tracejit.rand(1).item())
            return x.exp().sin()

        x = tracejit.ones(1, requires_grad=True)
        checkpoint(function, x, use_reentrant=reentrant, preserve_rng_state=preserve).backward()
        return drawn

    same, other = noisy(True), noisy(False)
    assert same[0] == same[1] and other[0] != other[1]


@EITHER
def test_little_is_kept(reentrant):
    def held(run):
        x = tracejit.ones(1 << 16, requires_grad=True)
        tracemalloc.start()
        y = run(lambda x: x.sin().exp().cos().tanh().sin().sum(), x)
        found = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return found if y.requires_grad else 0

    plain = held(lambda f, x: f(x))
    assert 0 < held(lambda f, x: checkpoint(f, x, use_reentrant=reentrant)) < plain / 10


def test_it_runs_again_once_and_stops_early():
    calls = []

    def function(x):
        calls.append("start")
        y = x.sin().exp()
        calls.append("end")
        return y.sum()

    x = tracejit.ones(3, requires_grad=True)
    y = checkpoint(function, x, use_reentrant=False)
    assert calls == ["start", "end"]
    y.backward(retain_graph=True)
    assert calls == ["start", "end", "start"] and x.grad is not None
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * g for g in first]
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    with set_checkpoint_early_stop(False):
        calls.clear()
        checkpoint(function, x, use_reentrant=False).backward()
        assert calls == ["start", "end", "start", "end"]


def test_checkpoints_within_one_another():
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return checkpoint(inner, x * 2, use_reentrant=False).cos().tanh()

    found = []
    for run in (outer, lambda x: checkpoint(outer, x, use_reentrant=False),
                lambda x: inner(x * 2).cos().tanh()):
        x = tracejit.tensor([0.3, 0.7], requires_grad=True)
        run(x).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1] == found[2]


def test_what_is_written_in_place_in_it():
    def function(x):
        y = x.sin()
        y.mul_(2)
        return y.exp()

    found = []
    for run in (function, lambda x: checkpoint(function, x, use_reentrant=False)):
        x = tracejit.tensor([0.3], requires_grad=True)
        run(x * 1).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_captured(mode, reentrant):
    calls = []
    weight = tracejit.nn.Parameter(tracejit.tensor([2.0]))

    def function(x):
        calls.append(len(calls))
        return (x * weight).sin().exp()

    def step(x):
        y = checkpoint(function, x, use_reentrant=reentrant).sum()
        y.backward()
        return y * 1

    captured = tracejit.script(step, mode=mode)
    for k in range(3):
        seen = []
        for run in (step, captured):
            calls.clear()
            x = tracejit.full((2,), 0.1 * k, requires_grad=True)
            weight.grad = None
            seen.append((run(x).item(), x.grad.tolist(), weight.grad.tolist(), list(calls)))
        assert seen[0][3] == seen[1][3] == [0, 1]
        for plain, other in zip(seen[0][:3], seen[1][:3]):
            assert other == pytest.approx(plain, rel=1e-5)


MESSAGES = """
K.checkpoint(f, x, use_reentrant=True)
K.checkpoint(f, x.detach(), use_reentrant=True)
K.checkpoint(f, x.detach(), use_reentrant=False)
K.checkpoint(f, x, use_reentrant=True, foo=1, bar=2)
K.checkpoint(f, x, use_reentrant=False, foo=1).shape
K.checkpoint(f, x, use_reentrant=True, debug=True)
K.checkpoint(f, x, use_reentrant=True, context_fn=lambda: 3)
lib.autograd.grad(K.checkpoint(f, x, use_reentrant=True).sum(), [x, w])
lib.autograd.grad(K.checkpoint(f, x, use_reentrant=False).sum(), [x, w])
K.checkpoint(f, x, use_reentrant=True).sum().backward(inputs=[x])
K.checkpoint(lambda x: x.detach(), x, use_reentrant=True).sum().backward()
K.checkpoint(Changing(lambda x: x.sin().cos() * x.exp(), lambda x: x.sin()), x, use_reentrant=False).sum().backward()
K.checkpoint(Changing(lambda x: x.sin(), lambda x: x[:1].sin()), x, use_reentrant=False).sum().backward()
K.checkpoint(Changing(lambda x: x.sin(), lambda x: x.sin().cos()), x, use_reentrant=False).sum().backward()
K.checkpoint_sequential([lib.sin, lib.cos, lib.exp], 2, x, use_reentrant=False)
K.checkpoint_sequential([lib.sin, lib.cos, lib.exp], 2, x, use_reentrant=True)
K.checkpoint_sequential([lib.sin], 1, x, use_reentrant=False, foo=2)
K.checkpoint(lambda a, b: (a * 2, 3, b), x, 'q', use_reentrant=True)
K.checkpoint(lambda a, *, k: a * k, x, k=3, use_reentrant=False)
K.checkpoint(lambda a: a, x, use_reentrant=True)
K.checkpoint(lambda a: a, x, use_reentrant=False) is x
""".strip().splitlines()  # noqa: E501


class Changing:
    """Does one thing when it is called first, and another when it is called again."""

    def __init__(self, *functions):
        self.functions = list(functions)

    def __call__(self, x):
        return self.functions.pop(0)(x)


@pytest.mark.oracle
@pytest.mark.parametrize("expression", MESSAGES)
def test_messages(expression):
    pytest.importorskip("torch")

    def outcome(library):
        lib = importlib.import_module(library)
        trees = importlib.import_module(f"{library}.utils.checkpoint")
        x, w = lib.ones(2, requires_grad=True), lib.nn.Parameter(lib.ones(2) * 3)
        names = {"lib": lib, "K": trees, "x": x, "w": w, "f": lambda x: (x * w).sin(),
                 "Changing": Changing}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                found = repr(eval(expression, names))
            except Exception as error:
                found = f"{type(error).__name__}: {str(error).partition('.' + chr(10) * 2)[0]}"
        texts = [str(w.message) for w in warned]
        return f"{found.rstrip(chr(10) + '.')} {texts}".replace(library, "lib")

    assert outcome("tracejit") == outcome("torch")


def test_changes_are_errors_of_their_own_type():
    x = tracejit.ones(2, requires_grad=True)
    function = Changing(lambda x: x.sin(), lambda x: x[:1].sin())
    y = checkpoint(function, x, use_reentrant=False, determinism_check="none").sum()
    with pytest.raises(RuntimeError, match="arrived at a leaf of shape"):
        y.backward()
    with pytest.raises(CheckpointError):
        function = Changing(lambda x: x.sin(), lambda x: x[:1].sin())
        checkpoint(function, x, use_reentrant=False).sum().backward()
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(function, x, use_reentrant=False, determinism_check="other")


def test_contexts():
    entered = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exc):
            entered.append(f"{self.name} left")

    x = tracejit.ones(1, requires_grad=True)
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False,
                   context_fn=lambda: (Noted("first"), Noted("again")))
    y.backward()
    assert entered == ["first", "first left", "again", "again left"]


@EITHER
@pytest.mark.parametrize("way", [lambda f: f, tracejit.script])
def test_what_is_run_again_casts_as_before(reentrant, way):
    layer = tracejit.nn.Linear(4, 4)

    @way
    def run(x):
        with tracejit.autocast("cpu", dtype=tracejit.bfloat16):
            return checkpoint(layer, x, use_reentrant=reentrant)

    x = tracejit.ones(3, 4, requires_grad=True)
    for _ in range(2):
        y = run(x)
        y.sum().backward()
        assert y.dtype is tracejit.bfloat16 and x.grad.dtype is tracejit.float32
    assert not tracejit.is_autocast_enabled("cpu")
    with tracejit.autocast("cpu"):
        z = checkpoint(lambda x: x @ x.t(), x, use_reentrant=reentrant)
        with tracejit.autocast("cpu", enabled=False):
            z.sum().backward()
        assert tracejit.is_autocast_enabled("cpu")


@pytest.mark.parametrize("switch, debug, told", [
    (None, True, True), (True, False, True), (False, True, False)])
def test_errors_tell_where_tensors_were_saved(switch, debug, told):
    runs = []

    def function(x):
        runs.append(1)
        return x.exp() if len(runs) == 1 else (x * tracejit.ones(3)).exp()

    x = tracejit.tensor([1.0], requires_grad=True)
    with set_checkpoint_debug_enabled(switch):
        y = checkpoint(function, x, use_reentrant=False, debug=debug)
    with pytest.raises(CheckpointError, match="different metadata") as error:
        y.backward()
    assert ("passed `debug=True`" in str(error.value)) is told
    assert ("return x.exp() if" in str(error.value)) is told
