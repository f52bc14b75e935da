"""Cells beside PyTorch's: states, gradients, names, captured loops over time, errors."""

import numpy as np
import pytest

import tracejit
from tracejit import nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(7)
ROWS = [
    ("RNNCell", (3, 4), {}), ("RNNCell", (3, 4, False, "relu"), {}), ("LSTMCell", (3, 4), {}),
    ("LSTMCell", (3, 4), {"bias": False}), ("GRUCell", (3, 4), {}), ("GRUCell", (3, 4, False), {}),
]  # fmt: skip


def pair(name, args, options):
    theirs = getattr(torch.nn, name)(*args, **options).double()
    mine = getattr(nn, name)(*args, **options).double()
    assert repr(mine) == repr(theirs) and list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return mine, theirs


def seen(library, call, layer, given):
    """States after the step, and gradients."""
    x, *states = (library.tensor(a, requires_grad=True) for a in given)
    before = None if not states else states[0] if len(states) == 1 else tuple(states)
    after = call(x, before)
    after = after if isinstance(after, tuple) else (after,)
    sum((s * s.cos()).sum() for s in after).backward()
    grads = [t.grad.numpy().copy() for t in (x, *states, *layer.parameters())]
    layer.zero_grad()
    return [s.detach().numpy() for s in after] + grads


@pytest.mark.parametrize(("name", "args", "options"), ROWS,
                         ids=[f"{k}-{row[0]}" for k, row in enumerate(ROWS)])  # fmt: skip
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_steps_and_gradients(name, args, options, mode):
    mine, theirs = pair(name, args, options)
    call = mine
    if mode != "eager":
        call = tracejit.script(lambda x, states: mine(x, states), mode=mode)
    kinds = 2 if name == "LSTMCell" else 1
    for lead in ((2,), (5,), (3,), ()):
        given = [RNG.normal(size=(*lead, n)) for n in (3, *(4,) * kinds)]
        for some in (given, given[:1]):
            for a, b in zip(seen(tracejit, call, mine, some), seen(torch, theirs, theirs, some),
                            strict=True):  # fmt: skip
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    if mode != "eager":
        report = call.report()
        assert (report.compiles, report.breaks) == (4, [])  # a batch or none, states or none


def test_a_loop_over_steps_is_one_program():
    cell = nn.LSTMCell(3, 4)

    @tracejit.script
    def run(xs, h, c):
        for x in xs:
            h, c = cell(x, (h, c))
        return h

    zeros = tracejit.zeros(2, 4)
    for steps in (20, 5, 300):
        xs = tracejit.randn(steps, 2, 3)
        h, c = zeros, zeros
        for x in xs:
            h, c = cell(x, (h, c))
        np.testing.assert_allclose(run(xs, zeros, zeros).detach(), h.detach(), rtol=1e-4, atol=1e-6)
    assert (run.report().compiles, run.report().breaks) == (1, [])


def of(name, shape, *state_shapes, dtype="float32", **options):
    def call(library):
        states = [library.ones(s) for s in state_shapes]
        before = None if not states else states[0] if len(states) == 1 else tuple(states)
        layer = getattr(library.nn, name)(3, 4, **options)
        return layer(library.ones(shape, dtype=getattr(library, dtype)), before)

    return call


ERRORS = [
    *(of(name, shape) for name in ("RNNCell", "LSTMCell", "GRUCell")
      for shape in ((1, 2, 3), (), (2, 4), (4,))),
    *(of(name, (2, 3), shape) for name in ("RNNCell", "GRUCell")
      for shape in ((3, 4), (2, 5), (2, 2, 4), (4,))),
    of("GRUCell", (3,), (2, 4)),
    *(of("LSTMCell", (2, 3), *shapes)
      for shapes in (((3, 4), (3, 4)), ((2, 4), (2, 5)), ((2, 4), (2, 2, 4)), ((4,), (4,)))),
    of("RNNCell", (2, 3), nonlinearity="gelu"),
]  # fmt: skip


@pytest.mark.parametrize("call", ERRORS, ids=map(str, range(len(ERRORS))))
def test_errors_are_pytorchs(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(type(theirs.value)) as mine:
        call(tracejit)
    assert str(mine.value) == str(theirs.value)


def test_parameters_start_uniform():
    cell = nn.GRUCell(3, 100)
    assert all(0.08 < p.abs().max().item() <= 0.1 for p in cell.parameters())
