"""Layers and functions give PyTorch's results and gradients, names and text."""

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import tracejit
from tracejit import nn
from tracejit.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
# Rows of `layers_<family>.py`: name, arguments of the layer, options, inputs of the call.
LAYERS = [
    row
    for path in sorted(Path(__file__).parent.glob("layers_*.py"))
    for row in import_module(f"tests.nn.{path.stem}").LAYERS
]


def made(library, name, args, options):
    def tensors(x):
        return library.tensor(x) if isinstance(x, np.ndarray) else x

    layer = getattr(library.nn, name)(
        *map(tensors, args), **{k: tensors(v) for k, v in options.items()}
    )
    return layer.double()


def called(library, layer, inputs):
    """Result, and gradients of the first input and all parameters."""
    first = library.tensor(inputs[0])
    if inputs[0].dtype == np.float64:
        first.requires_grad_(True)
    out = layer(first, *(library.tensor(x) for x in inputs[1:]))
    (out * out).sum().backward()
    grads = [p.grad.numpy() for _, p in layer.named_parameters()]
    return [out.detach().numpy(), *([first.grad.numpy()] if first.requires_grad else []), *grads]


each_layer = pytest.mark.parametrize(
    ("name", "args", "options", "inputs"),
    LAYERS,
    ids=[f"{k}-{row[0]}" for k, row in enumerate(LAYERS)],
)


@each_layer
def test_layer(name, args, options, inputs):
    mine, theirs = made(tracejit, name, args, options), made(torch, name, args, options)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        assert tuple(mine.state_dict()[key].shape) == tuple(value.shape)
    mine.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    differentiable = any(x.dtype == np.float64 for x in inputs) or list(mine.parameters())
    assert differentiable
    for a, b in zip(called(tracejit, mine, inputs), called(torch, theirs, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    assert repr(mine) == repr(theirs)


@each_layer
def test_captured_layer(name, args, options, inputs):
    """One program; results and gradients are those of eager mode, in a second call too."""
    layer = made(tracejit, name, args, options)
    state = {k: v.clone() for k, v in layer.state_dict().items()}

    def twice(layer):
        found = []
        for _ in range(2):
            layer.zero_grad()
            tracejit.manual_seed(3)
            found += called(tracejit, layer, inputs)
        return found

    eager = twice(layer)
    layer.load_state_dict(state)
    compiled = tracejit.script(layer)
    for a, b in zip(twice(compiled), eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    report = compiled.report()
    assert (report.cache_misses, report.breaks) == (1, [])


def test_every_layer_has_a_row():
    special = {"Module", "Parameter", "Sequential", "ModuleList", "ModuleDict", "ParameterList",
               "ParameterDict", "MultiheadAttention", "DataParallel", "Buffer",
               "AdaptiveLogSoftmaxWithLoss",
               "CrossMapLRN2d", "LinearCrossEntropyOptions"}  # fmt: skip
    classes = {name for name in nn.__all__ if inspect.isclass(getattr(nn, name))}
    special |= {n for n in classes if n.startswith(("Lazy", "Uninitialized", "Transformer"))}
    special |= {n for n in classes if n.startswith(("RNN", "LSTM", "GRU"))}
    assert classes - special == {row[0] for row in LAYERS}


def test_layers_take_pytorch_arguments_in_their_places():
    for name in nn.__all__:
        layer = getattr(nn, name)
        tensors = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")
        if not inspect.isclass(layer) or name in ("Module", *tensors):
            continue
        mine = inspect.signature(layer.__init__).parameters.values()
        expected = list(inspect.signature(getattr(torch.nn, name).__init__).parameters)
        placed = [p.name for p in mine if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert placed == expected[: len(placed)], name


def test_functional_has_pytorch_signatures():
    public = {name: f for name, f in vars(F).items() if callable(f) and not name.startswith("_")}
    assert len(public) > 25
    for name, function in public.items():
        theirs = getattr(torch.nn.functional, name)
        try:
            expected = list(inspect.signature(theirs).parameters)
        except ValueError:
            continue  # written in C
        if expected == ["args", "kwargs"]:
            continue  # one of two functions, as a flag says
        # PyTorch's private arguments start with an underscore.
        wanted = [p for p in expected if not p.startswith("_")]
        mine = list(inspect.signature(function).parameters)
        assert mine[:2] == wanted[:2] or name in ("sigmoid", "tanh", "logsigmoid"), name


@pytest.mark.parametrize("order", [0, 1.0, 2.0, 3.0, float("inf"), -float("inf")])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clip_grad_norm(order, limit):
    results = []
    for library in (tracejit, torch):
        params = [library.nn.Parameter(library.zeros(s)) for s in ((3, 2), (4,), (1,))]
        for p, seed in zip(params[:2], (1, 2)):
            p.grad = library.tensor(
                np.random.default_rng(seed).normal(size=tuple(p.shape)).astype(np.float32)
            )
        total = library.nn.utils.clip_grad_norm_(iter(params), limit, order)  # read once
        assert params[2].grad is None
        results.append([total.numpy(), *(p.grad.numpy() for p in params[:2])])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("order", [2.0, 3.5])
@pytest.mark.parametrize("kind", ["float16", "complex64"])
def test_clip_grad_norm_in_other_dtypes(order, kind):
    """Squares of halves overflow, and those of complex numbers are none of magnitudes."""
    results = []
    for library in (tracejit, torch):
        p = library.nn.Parameter(library.zeros(2, dtype=getattr(library, kind)))
        p.grad = library.tensor([300.0, 400.0], dtype=p.dtype) * (1j if p.is_complex() else 1)
        total = library.nn.utils.clip_grad_norm_(p, 1.0, order)
        results.append([total.numpy(), p.grad.numpy()])
    for a, b in zip(*results):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-3)


def test_clipping_by_value_and_errors():
    p = nn.Parameter(tracejit.zeros(3))
    p.grad = tracejit.tensor([-5.0, 0.5, 7.0])
    nn.utils.clip_grad_value_([p], 1.0)
    assert p.grad.tolist() == [-1.0, 0.5, 1.0]
    p.grad = tracejit.tensor([float("nan"), 1.0, 1.0])
    with pytest.raises(RuntimeError, match="total norm of order 2.0 for gradients"):
        nn.utils.clip_grad_norm_(p, 1.0, norm_type=2, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([nn.Parameter(tracejit.zeros(1))], 1.0).item() == 0.0


def test_vectors():
    params = [nn.Parameter(tracejit.ones(2, 2)), nn.Parameter(tracejit.zeros(3))]
    vector = nn.utils.parameters_to_vector(params)
    assert vector.tolist() == [1.0] * 4 + [0.0] * 3 and vector.requires_grad
    nn.utils.vector_to_parameters(tracejit.arange(7, dtype=tracejit.float32), params)
    assert params[0].tolist() == [[0.0, 1.0], [2.0, 3.0]] and params[1].tolist() == [4.0, 5.0, 6.0]


def test_dropout_keeps_the_mean_and_rests_in_eval():
    tracejit.manual_seed(0)
    layer, x = nn.Dropout(0.25), tracejit.ones(10000)
    out = layer(x)
    assert set(np.unique(out.numpy())) == {0.0, np.float32(1 / 0.75)}
    assert abs(out.mean().item() - 1) < 0.03
    assert layer.eval()(x).tolist() == x.tolist()
    with pytest.raises(ValueError, match="has to be between 0 and 1, but got 2"):
        nn.Dropout(2)


def test_embedding_padding_and_pretrained():
    layer = nn.Embedding(4, 2, padding_idx=1)
    assert layer.weight[1].tolist() == [0.0, 0.0] and layer.weight[0].abs().sum().item() > 0
    frozen = nn.Embedding.from_pretrained(tracejit.ones(3, 2))
    assert not frozen.weight.requires_grad and frozen(tracejit.tensor([2])).tolist() == [[1.0, 1.0]]
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)
    sparse = nn.Embedding(3, 2, sparse=True)
    sparse(tracejit.tensor([1])).sum().backward()
    assert sparse.weight.grad.is_sparse


def test_embedding_shortens_the_rows_it_reads():
    begin = tracejit.tensor([[3.0, 4.0], [0.1, 0.2], [5.0, 12.0]])
    read = tracejit.tensor([[0, 0], [1, 0]])
    for norm_type, first in ((2.0, [0.6, 0.8]), (1.0, [3 / 7, 4 / 7])):
        for way in (lambda layer: layer, tracejit.script):
            layer = nn.Embedding.from_pretrained(
                begin.clone(), freeze=False, max_norm=1.0, norm_type=norm_type)
            out = way(layer)(read)
            assert np.allclose(layer.weight.tolist(), [first, [0.1, 0.2], [5.0, 12.0]])
            assert np.allclose(out[0, 0].tolist(), first) and out.requires_grad


def test_variances_must_not_be_negative():
    """Also in a program, which checks them when it runs."""
    captured = tracejit.script(F.gaussian_nll_loss)
    x, good, bad = tracejit.rand(3), tracejit.ones(3), tracejit.tensor([1.0, -1.0, 1.0])
    for loss in (F.gaussian_nll_loss, captured, captured):
        assert tracejit.allclose(loss(x, x, good), tracejit.tensor(0.0))
        with pytest.raises(ValueError, match="var has negative entry/entries"):
            loss(x, x, bad)
    assert captured.report().cache_misses == 1


@pytest.mark.parametrize("name", ["ReLU", "ReLU6", "SiLU", "Mish", "Hardswish", "Hardsigmoid"])
def test_what_layers_say_that_write_to_their_input(name):
    ours, theirs = getattr(tracejit.nn, name)(True), getattr(torch.nn, name)(True)
    assert repr(ours) == repr(theirs) and ours.inplace
