"""Normalising layers beside PyTorch's: running statistics, training and evaluation, captured steps,
errors."""

import numpy as np
import pytest

import tracejit
from tracejit import nn
from tracejit.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(3)
SIZES = {1: (4,), 2: (3, 2), 3: (2, 1, 3)}


def images(n, batch=3):
    return RNG.normal(2, 3, size=(batch, 3, *SIZES[n]))


# name, arguments, options, input without its batch dimension
STATEFUL = [
    (f"{kind}{n}d", (3,), {"affine": n != 2, **options}, n)
    for kind in ("BatchNorm", "InstanceNorm") for n in (1, 2, 3)
    for options in ({"track_running_stats": True, "momentum": 0.3}, {"track_running_stats": False})
] + [("BatchNorm2d", (3,), {"momentum": None}, 2), ("SyncBatchNorm", (3,), {}, 2)]  # fmt: skip
STATELESS = [
    ("GroupNorm", (3, 3), {}, 2), ("RMSNorm", (2,), {"eps": 0.1}, 2), ("LayerNorm", (2,), {}, 2),
    ("LocalResponseNorm", (3,), {"alpha": 0.2}, 2),
]  # fmt: skip
ROWS = STATEFUL + STATELESS
IDS = [f"{k}-{row[0]}" for k, row in enumerate(ROWS)]


def pair(name, args, options):
    """The layer of both libraries, with the same parameters."""
    theirs = getattr(torch.nn, name)(*args, **options).double()
    for p in theirs.parameters():
        torch.nn.init.uniform_(p, 0.5, 2)
    mine = getattr(nn, name)(*args, **options).double()
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return mine, theirs


def seen(library, step, layer, x):
    """Result, gradients, and the state dict after a call."""
    x = library.tensor(x, requires_grad=True)
    out = step(x)
    (out * out * out).sum().backward()
    grads = [x.grad, *(p.grad for p in layer.parameters())]
    found = [out.detach(), *(g.clone() for g in grads), *layer.state_dict().values()]
    layer.zero_grad()
    return [t.numpy().copy() for t in found]


def agree(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize(("name", "args", "options", "n"), ROWS, ids=IDS)
def test_training_then_evaluation(name, args, options, n, mode):
    mine, theirs = pair(name, args, options)
    step = mine if mode == "eager" else tracejit.script(lambda x: mine(x), mode=mode)
    for batch in (3, 2, 4):
        x = images(n, batch)
        agree(seen(tracejit, step, mine, x), seen(torch, theirs, theirs, x))
    mine.eval(), theirs.eval()
    x = images(n, 1)
    agree(seen(tracejit, step, mine, x), seen(torch, theirs, theirs, x))
    assert repr(mine) == repr(theirs)
    if mode != "eager":
        report = step.report()
        assert report.compiles == 2 and not report.breaks  # training and evaluation


def network(library):
    return library.nn.Sequential(
        library.nn.Linear(6, 5), library.nn.BatchNorm1d(5, momentum=None),
        library.nn.ReLU(), library.nn.Linear(5, 2))  # fmt: skip


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_captured_training_step_is_one_program(mode):
    theirs, mine = network(torch), network(tracejit)
    mine.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    optimizers = [library.optim.SGD(m.parameters(), lr=0.1)
                  for library, m in ((tracejit, mine), (torch, theirs))]  # fmt: skip

    def step(library, model, optimizer, x, y):
        optimizer.zero_grad()
        loss = library.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    captured = tracejit.script(step, mode=mode)
    for batch in (4, 7, 3, 4):
        x, y = RNG.normal(size=(batch, 6)).astype("f"), RNG.normal(size=(batch, 2)).astype("f")
        a = captured(tracejit, mine, optimizers[0], tracejit.tensor(x), tracejit.tensor(y))
        b = step(torch, theirs, optimizers[1], torch.tensor(x), torch.tensor(y))
        assert a.item() == pytest.approx(b.item(), rel=1e-4)
        for (key, value), other in zip(mine.state_dict().items(), theirs.state_dict().values()):
            np.testing.assert_allclose(value.numpy(), other.numpy(), rtol=1e-3, atol=1e-5,
                                       err_msg=key)  # fmt: skip
    assert mine[1].num_batches_tracked.item() == 4
    report = captured.report()
    assert report.compiles == 1 and not report.breaks


def test_empty_batches_leave_the_statistics():
    mine, theirs = pair("BatchNorm1d", (3,), {})
    x = np.zeros((0, 3))
    agree(seen(tracejit, mine, mine, x), seen(torch, theirs, theirs, x))
    assert mine.running_mean.tolist() == [0.0] * 3 and mine.num_batches_tracked.item() == 1


def test_halves_beside_floats():
    x = RNG.normal(size=(4, 3)).astype("f2")
    results = []
    for library in (tracejit, torch):
        layer = library.nn.BatchNorm1d(3)
        out = layer(library.tensor(x))
        assert str(out.dtype).endswith("float16")
        results.append([out.detach().float().numpy(), layer.running_var.numpy()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


def of_vectors(name, *sizes, **options):
    """A call of a function on images with vectors of these sizes (None for none)."""
    def call(library):
        vectors = [None if n is None else library.ones(n) for n in sizes]
        return getattr(library.nn.functional, name)(library.ones(2, 3, 4), *vectors, **options)

    return call


def of_leaf(which, **options):
    """A call with a running statistic that requires grad."""
    def call(library):
        running = [library.ones(3), library.ones(3)]
        running[which].requires_grad_()
        return library.nn.functional.batch_norm(library.ones(2, 3), *running, **options)

    return call


def of(name, shape, *args, dtype="float32", training=True, **options):
    """A call of a layer, made with these arguments, on ones."""
    def call(library):
        layer = getattr(library.nn, name)(*args, **options).train(training)
        return layer(library.ones(shape, dtype=getattr(library, dtype)))

    return call


def functional(name, shape, *args, dtype="float32", **options):
    def call(library):
        x = library.ones(shape, dtype=getattr(library, dtype))
        return getattr(library.nn.functional, name)(x, *args, **options)

    return call


ERRORS = [
    *(of_leaf(which, training=training) for which in (0, 1) for training in (True, False)),
    *(of_vectors("batch_norm", *sizes, training=training)
      for training in (True, False)
      for sizes in ((4, 3), (3, 4), (3, None), (None, 3), (3, 3, 4), (3, 3, 3, 2), ((3, 1), 3))),
    of_vectors("batch_norm", None, None), of_vectors("batch_norm", 3, 3, training=True, eps=0.0),
    *(of_vectors("instance_norm", *sizes)
      for sizes in ((4, 4), (3, None), (None, None, 4), (None, None, 3, 2))),
    of_vectors("instance_norm", use_input_stats=False),
    functional("instance_norm", (2, 3, 1)), functional("instance_norm", (2, 3)),
    functional("instance_norm", (2, 3, 4), dtype="int64"),
    functional("batch_norm", (2, 3), None, None, training=True, dtype="int64"),
    functional("group_norm", (2, 3, 4), 2), functional("group_norm", (2, 3, 4), 0),
    functional("group_norm", (2, 3, 4), -1), functional("group_norm", (3,), 3),
    functional("group_norm", (1, 3, 1), 3), functional("group_norm", (2, 3), 3, dtype="int64"),
    functional("rms_norm", (2, 3), (4,)), functional("rms_norm", (2, 3), ()),
    functional("rms_norm", (2, 3), 3), functional("rms_norm", (2, 3), (3,), dtype="int64"),
    functional("local_response_norm", (2, 3), 2), functional("local_response_norm", (2, 3, 4), 0),
    of("BatchNorm1d", (2, 3, 4, 5), 3), of("BatchNorm2d", (2, 3, 4), 3),
    of("BatchNorm3d", (2, 3, 4), 3), of("SyncBatchNorm", (3,), 3), of("BatchNorm1d", (1, 3), 3),
    of("BatchNorm1d", (2, 4), 3), of("BatchNorm1d", (2, 4), 3, training=False),
    of("BatchNorm1d", (2, 3), 3, dtype="float64"),
    of("InstanceNorm1d", (2, 3, 4, 5), 3), of("InstanceNorm2d", (3, 4), 3),
    of("InstanceNorm3d", (3, 4), 3), of("InstanceNorm1d", (2, 4), 3, affine=True),
    of("GroupNorm", (2, 6), 4, 6), of("GroupNorm", (2, 6, 2), 2, 4),
]  # fmt: skip


@pytest.mark.parametrize("call", ERRORS, ids=map(str, range(len(ERRORS))))
def test_errors_are_pytorchs(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(type(theirs.value)) as mine:
        call(tracejit)
    assert str(mine.value) == str(theirs.value)


def test_channels_that_nobody_uses_are_warned_of():
    with pytest.warns(UserWarning, match=r"size at dim=1 does not match num_features\. You can"):
        nn.InstanceNorm2d(3)(tracejit.ones(2, 4, 2, 2))


def test_second_gradients_reach_the_input():
    def second(library):
        x = library.tensor(images(1), requires_grad=True)
        out = library.nn.functional.batch_norm(x, None, None, training=True)
        (grad,) = library.autograd.grad((out**3).sum(), x, create_graph=True)
        (grad**2).sum().backward()
        return x.grad.numpy()

    global RNG
    state = RNG.bit_generator.state
    mine = second(tracejit)
    RNG.bit_generator.state = state
    np.testing.assert_allclose(mine, second(torch), rtol=1e-9, atol=1e-10)


def test_statistics_move_in_place():
    mean, variance = tracejit.zeros(3), tracejit.ones(3)
    view = mean[:1]
    F.batch_norm(tracejit.ones(4, 3), mean, variance, training=True, momentum=0.5)
    assert mean.tolist() == [0.5] * 3 and view.tolist() == [0.5] and variance.tolist() == [0.5] * 3


LAZY = [(f"Lazy{kind}{n}d", options, n)
        for n in (1, 2, 3) for kind in ("BatchNorm", "InstanceNorm")
        for options in ({}, {"affine": False}, {"track_running_stats": False}, {"bias": False})
        ]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "n"), LAZY)
def test_lazy_layers_become_their_own(name, options, n):
    def told(library, x):
        layer = getattr(library.nn, name)(**options)
        before = repr(layer), list(layer.state_dict())
        x = library.tensor(x, dtype=library.float32)
        out = layer(x).sum().item() + layer.eval()(x).sum().item()
        shapes = [(k, tuple(v.shape), v.tolist()) for k, v in layer.state_dict().items()]
        return before, type(layer).__name__, repr(layer), shapes, out

    x = images(n)
    mine, theirs = told(tracejit, x), told(torch, x)
    assert mine[:3] == theirs[:3]
    for a, b in zip((*mine[3], ("", (), mine[4])), (*theirs[3], ("", (), theirs[4])), strict=True):
        assert a[:2] == b[:2] and np.allclose(a[2], b[2], rtol=1e-3, atol=1e-4)


def test_state_from_before_batches_were_counted():
    for library in (torch, tracejit):
        layer = library.nn.BatchNorm1d(3)
        layer(library.randn(4, 3))
        state = layer.state_dict()
        del state["num_batches_tracked"]
        with pytest.raises(RuntimeError, match="num_batches_tracked"):
            layer.load_state_dict(state)
        layer.load_state_dict(dict(state))
        assert layer.num_batches_tracked.item() == 1


def test_conversion_to_synchronised_layers():
    for library in (torch, tracejit):
        norm = library.nn.BatchNorm2d(3, momentum=0.2, bias=False).eval()
        model = library.nn.Sequential(library.nn.Sequential(norm), library.nn.ReLU())
        model = library.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        made = model[0][0]
        assert type(made).__name__ == "SyncBatchNorm" and not made.training
        assert made.weight is norm.weight and made.running_mean is norm.running_mean
        assert repr(made).replace("SyncBatchNorm", "BatchNorm2d") == repr(norm)
