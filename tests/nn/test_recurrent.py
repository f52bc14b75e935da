"""Recurrent layers beside PyTorch's: results, gradients, names, packed and captured calls."""

import pickle

import numpy as np
import pytest

import tracejit
from tracejit import nn

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(5)

ROWS = [
    ("RNN", (3, 4), {}),
    ("RNN", (3, 4, 2, "relu"), {"bias": False, "bidirectional": True}),
    ("RNN", (3, 4), {"nonlinearity": "relu", "batch_first": True}),
    ("LSTM", (3, 4), {}),
    ("LSTM", (3, 4, 2), {"bidirectional": True, "batch_first": True}),
    ("LSTM", (3, 5, 2, False), {"proj_size": 2, "bidirectional": True}),
    ("LSTM", (3, 5), {"proj_size": 2}),
    ("GRU", (3, 4), {}),
    ("GRU", (3, 4, 2, False, True), {}),
    ("GRU", (3, 4, 2), {"bidirectional": True}),
]
each_row = pytest.mark.parametrize(
    ("name", "args", "options"), ROWS, ids=[f"{k}-{row[0]}" for k, row in enumerate(ROWS)]
)


def pair(name, args, options):
    """The layer of both libraries, with the same parameters."""
    theirs = getattr(torch.nn, name)(*args, **options).double()
    mine = getattr(nn, name)(*args, **options).double()
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return mine, theirs


def arrays(layer, steps, batch, with_states):
    """An input and, if wanted, the states at the start; no batch if it is None."""
    sizes = () if batch is None else (batch,)
    lead = (*sizes, steps) if layer.batch_first and sizes else (steps, *sizes)
    x = RNG.normal(size=(*lead, layer.input_size))
    if not with_states:
        return [x]
    count = layer.num_layers * (1 + layer.bidirectional)
    features = [layer.proj_size or layer.hidden_size, layer.hidden_size]
    kinds = features if layer.mode == "LSTM" else features[:1]
    return [x, *(RNG.normal(size=(count, *sizes, n)) for n in kinds)]


def states_of(given):
    return None if not given else given[0] if len(given) == 1 else tuple(given)


def seen(library, call, layer, given, packing=None):
    """Results, and gradients of inputs and parameters."""
    x, *states = (library.tensor(a, requires_grad=True) for a in given)
    packed = x
    if packing is not None:
        packed = library.nn.utils.rnn.pack_padded_sequence(x, **packing)
    out, after = call(packed, states_of(states))
    out = out if packing is None else out.data
    results = [out, *(after if isinstance(after, tuple) else (after,))]
    sum((r * r.cos()).sum() for r in results).backward()
    found = [r.detach() for r in results] + [t.grad for t in (x, *states, *layer.parameters())]
    copies = [t.numpy().copy() for t in found]
    layer.zero_grad()
    return copies


def agree(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@each_row
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_results_and_gradients(name, args, options, mode):
    mine, theirs = pair(name, args, options)
    assert repr(mine) == repr(theirs)
    call = mine
    if mode != "eager":
        call = tracejit.script(lambda x, states: mine(x, states), mode=mode)
    for steps, batch in ((17, 2), (5, 3), (60, 2)):
        given = arrays(mine, steps, batch, with_states=True)
        agree(seen(tracejit, call, mine, given), seen(torch, theirs, theirs, given))
    if mode != "eager":
        report = call.report()
        assert (report.compiles, report.breaks) == (1, [])  # one program for any number of steps
    for batch in (None, 2):
        given = arrays(mine, 4, batch, with_states=batch is None)
        agree(seen(tracejit, call, mine, given), seen(torch, theirs, theirs, given))


@each_row
def test_packed_sequences(name, args, options):
    mine, theirs = pair(name, args, options)
    steps = {"batch_first": bool(mine.batch_first), "enforce_sorted": False}
    for lengths in ([3, 5, 1], [4, 4], [1]):
        given = arrays(mine, 5, len(lengths), with_states=len(lengths) > 1)
        packing = {"lengths": lengths, **steps}
        agree(seen(tracejit, mine, mine, given, packing),
              seen(torch, theirs, theirs, given, packing))  # fmt: skip


def test_a_captured_call_takes_packed_sequences():
    mine, theirs = pair("GRU", (3, 4), {})
    call = tracejit.script(lambda x, states: mine(x, states))
    for lengths in ([5, 3], [4, 1]):
        given = arrays(mine, 5, 2, with_states=True)
        packing = {"lengths": lengths}
        agree(seen(tracejit, call, mine, given, packing),
              seen(torch, theirs, theirs, given, packing))  # fmt: skip


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_captured_layer_is_one_loop(name):
    layer = getattr(nn, name)(3, 4)
    call = tracejit.script(lambda x: layer(x)[0])
    call(tracejit.randn(40, 2, 3))
    with tracejit.no_recompile():
        for steps in (1000, 2, 17):
            assert call(tracejit.randn(steps, 2, 3)).shape == (steps, 2, 4)
    graph = str(call.graph(tracejit.randn(40, 2, 3)))
    step = {"LSTM": "lstm_gates", "GRU": "gru_gates", "RNN": "tanh"}[name]
    assert graph.count("for_loop") == 1 and step in graph


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_a_captured_training_step_is_one_program(mode):
    models = []
    for library in (torch, tracejit):
        model = library.nn.LSTM(3, 4, batch_first=True)
        models.append((library, model, library.optim.SGD(model.parameters(), lr=0.1)))
    models[1][1].load_state_dict(
        {k: tracejit.tensor(v.numpy()) for k, v in models[0][1].state_dict().items()}
    )

    def step(library, model, optimizer, x):
        optimizer.zero_grad()
        outputs, _ = model(x)
        loss = (outputs[:, -1] - 1.0).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    captured = tracejit.script(step, mode=mode)
    for batch, steps in ((2, 20), (3, 6), (4, 40)):
        x = RNG.normal(size=(batch, steps, 3)).astype("f")
        theirs = step(*models[0], torch.tensor(x)).item()
        assert captured(*models[1], tracejit.tensor(x)).item() == pytest.approx(theirs, rel=1e-4)
    report = captured.report()
    assert (report.compiles, report.breaks) == (1, [])


def test_dropout_lies_between_layers():
    tracejit.manual_seed(0)
    layer, x = nn.LSTM(3, 40, 2, dropout=0.5), tracejit.randn(6, 2, 3)
    first, second = layer(x)[0], layer(x)[0]
    assert first.tolist() != second.tolist() and (first != 0).all()
    layer.eval()
    plain = nn.LSTM(3, 40, 2)
    plain.load_state_dict(layer.state_dict())
    assert layer(x)[0].tolist() == plain(x)[0].tolist()
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        nn.GRU(3, 4, dropout=0.1)


def test_parameters_start_uniform_and_copies_are_independent():
    layer = nn.LSTM(3, 100)
    assert all(p.abs().max().item() <= 0.1 for p in layer.parameters())
    assert layer.weight_hh_l0.std().item() == pytest.approx(0.2 / 12**0.5, rel=0.1)
    layer.flatten_parameters()
    assert [len(w) for w in layer.all_weights] == [4]
    x = tracejit.randn(2, 1, 3)
    assert pickle.loads(pickle.dumps(layer))(x)[0].tolist() == layer(x)[0].tolist()


def of(name, shape, *state_shapes, dtype="float32", **options):
    """A call of a layer on ones, from states of ones of these shapes."""
    def call(library):
        layer = getattr(library.nn, name)(3, 4, 2, **options)
        x = library.ones(shape, dtype=getattr(library, dtype))
        return layer(x, states_of([library.ones(s) for s in state_shapes]))

    return call


def packed(name, shape, *state_shapes):
    def call(library):
        layer = getattr(library.nn, name)(3, 4)
        sizes = library.tensor([2, 1])
        x = library.nn.utils.rnn.PackedSequence(library.ones(shape), sizes)
        return layer(x, states_of([library.ones(s) for s in state_shapes]))

    return call


def making(name, *args, **options):
    return lambda library: getattr(library.nn, name)(*args, **options)


ERRORS = [
    *(of(name, shape, dtype=dtype) for name in ("RNN", "LSTM", "GRU")
      for shape, dtype in (((3,), "float32"), ((1, 2, 3, 4), "float32"), ((5, 2, 4), "float32"),
                           ((5, 4), "float32"), ((0, 2, 3), "float32"), ((5, 2, 3), "float64"),
                           ((5, 2, 3), "int64"))),
    *(of(name, (5, 2, 3), shape) for name in ("RNN", "GRU")
      for shape in ((1, 2, 4), (2, 4), (2, 3, 4), (2, 2, 5))),
    of("GRU", (5, 3), (2, 2, 4)), of("GRU", (5, 3), (1, 4)),
    *(of("LSTM", (5, 2, 3), *shapes)
      for shapes in (((1, 2, 4),) * 2, ((2, 4),) * 2, ((2, 2, 4), (2, 3, 4)), ((2, 2, 4), (2, 4)))),
    of("LSTM", (5, 3), (2, 2, 4), (2, 2, 4)), of("LSTM", (5, 2, 3), *((2, 2, 4),) * 2, proj_size=2),
    making("RNN", 3, 4, nonlinearity="gelu"), making("RNN", 3, 4, proj_size=2),
    making("GRU", 3, 4, proj_size=2), making("LSTM", 3, 4, proj_size=4),
    making("LSTM", 3, 4, proj_size=-1), making("LSTM", 3, 4, dropout=2),
    making("LSTM", 3, 4, dropout=True), making("LSTM", 3, 0), making("LSTM", 3, 4.0),
    making("LSTM", 3, 4, num_layers=0),
]  # fmt: skip


@pytest.mark.parametrize("call", ERRORS, ids=map(str, range(len(ERRORS))))
def test_errors_are_pytorchs(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(type(theirs.value)) as mine:
        call(tracejit)
    assert str(mine.value).replace("tracejit.", "torch.") == str(theirs.value)


@pytest.mark.parametrize(("shape", "states", "text"), [
    ((3, 2, 3), (), "input must have 2 dimensions, got 3"),
    ((3, 2), (), "Expected 3, got 2"),
    ((3, 3), ((1, 3, 4),), r"Expected hidden size \(1, 2, 4\), got \[1, 3, 4\]"),
    ((4, 3), (), "3 elements, but there are 4"),
])  # fmt: skip
def test_packed_sequences_that_do_not_fit_are_errors(shape, states, text):
    with pytest.raises(RuntimeError, match=text):
        packed("GRU", shape, *states)(tracejit)
