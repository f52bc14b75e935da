"""Initialisation: PyTorch's distributions, in place, off the tape."""

import math

import numpy as np
import pytest

import tracejit
from tracejit import nn
from tracejit.nn import init

SHAPE = (60, 80, 3)
FAN_IN, FAN_OUT = 240, 180

# function, arguments, expected standard deviation, expected bound
FILLS = [
    (init.uniform_, (-2.0, 2.0), 4 / math.sqrt(12), 2.0),
    (init.normal_, (0.0, 3.0), 3.0, math.inf),
    (init.xavier_uniform_, (2.0,), 2 * math.sqrt(2 / 420), 2 * math.sqrt(6 / 420)),
    (init.xavier_normal_, (2.0,), 2 * math.sqrt(2 / 420), math.inf),
    (init.kaiming_uniform_, (math.sqrt(5),), math.sqrt(1 / 3 / FAN_IN), 1 / math.sqrt(FAN_IN)),
    (init.kaiming_uniform_, (0, "fan_out", "relu"), math.sqrt(2 / FAN_OUT), math.sqrt(6 / FAN_OUT)),
    (init.kaiming_normal_, (0, "fan_in", "tanh"), 5 / 3 / math.sqrt(FAN_IN), math.inf),
    (init.trunc_normal_, (0.0, 1.0, -1.0, 1.0), 0.5396, 1.0),
]


@pytest.mark.parametrize(
    ("fill", "args", "deviation", "bound"), FILLS, ids=lambda x: getattr(x, "__name__", None)
)
def test_distribution(fill, args, deviation, bound):
    tracejit.manual_seed(0)
    tensor = nn.Parameter(tracejit.empty(SHAPE))
    assert fill(tensor, *args) is tensor and tensor.is_leaf and tensor.requires_grad
    values = tensor.detach().numpy()
    assert values.std() == pytest.approx(deviation, rel=0.03)
    assert abs(values.mean()) < 4 * deviation / math.sqrt(values.size)
    assert np.abs(values).max() <= bound
    if bound < math.inf:
        assert np.abs(values).max() > 0.98 * bound


def test_seed_decides():
    drawn = []
    for seed in (1, 1, 2):
        tracejit.manual_seed(seed)
        drawn.append(init.normal_(tracejit.empty(5)).tolist())
    assert drawn[0] == drawn[1] != drawn[2]
    generator = tracejit.Generator().manual_seed(1)
    before = tracejit.get_rng_state().tolist()
    assert init.normal_(tracejit.empty(5), generator=generator).tolist() == drawn[0]
    assert tracejit.get_rng_state().tolist() == before


def test_constants():
    t = tracejit.empty(2, 3)
    assert init.constant_(t, 2.5).tolist() == [[2.5] * 3] * 2
    assert init.ones_(t).tolist() == [[1.0] * 3] * 2
    assert init.eye_(t).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert init.zeros_(t).tolist() == [[0.0] * 3] * 2


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(2 / 1.25)
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / (1 + 0.01**2))
    assert init.calculate_gain("sigmoid") == 1.0


@pytest.mark.parametrize(("call", "text"), [
    (lambda: init.calculate_gain("sinus"), "Unsupported nonlinearity sinus"),
    (lambda: init.calculate_gain("leaky_relu", True), "negative_slope True not a valid number"),
    (lambda: init.xavier_uniform_(tracejit.empty(3)), "fewer than 2 dimensions"),
    (lambda: init.kaiming_normal_(tracejit.empty(3, 3), mode="fan"), "Mode fan not supported"),
    (lambda: init.eye_(tracejit.empty(3)), "Only tensors with 2 dimensions"),
])  # fmt: skip
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_layers_start_as_pytorch_does():
    tracejit.manual_seed(0)
    layer = nn.Linear(100, 400)
    bound = 1 / math.sqrt(100)
    for p in layer.parameters():
        largest = p.abs().max().item()
        assert 0.97 * bound < largest <= bound
    embedding = nn.Embedding(100, 100).weight
    assert embedding.std().item() == pytest.approx(1.0, rel=0.03)
    norm = nn.LayerNorm(3)
    assert norm.weight.tolist() == [1.0] * 3 and norm.bias.tolist() == [0.0] * 3


def test_empty_tensors_warn():
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        init.kaiming_uniform_(tracejit.empty(0, 3))
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        init.trunc_normal_(tracejit.empty(3), mean=9.0)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 2, 2), (1, 1), (0, 3)])
def test_orthogonal_rows_or_columns(shape):
    weight = init.orthogonal_(tracejit.empty(*shape, dtype=tracejit.float64), gain=2)
    matrix = weight.numpy().reshape(shape[0], math.prod(shape[1:])) / 2
    square = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(square, np.eye(len(square)), atol=1e-12)
    with pytest.raises(ValueError, match="2 or more dimensions"):
        init.orthogonal_(tracejit.empty(3))


def test_sparse_columns():
    weight = init.sparse_(tracejit.empty(10, 4), 0.35, std=1.0).numpy()
    assert ((weight == 0).sum(0) == 4).all() and 0.3 < weight.std() < 1.5


@pytest.mark.oracle
def test_dirac_and_older_names():
    torch = pytest.importorskip("torch")
    for shape, groups in (((4, 2, 3), 2), ((2, 3, 2, 3), 1), ((3, 3, 1, 2, 3), 3)):
        mine = init.dirac_(tracejit.empty(*shape), groups)
        assert mine.tolist() == torch.nn.init.dirac_(torch.empty(*shape), groups).tolist()
    for library in (torch, tracejit):
        with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.constant_`"):
            assert library.nn.init.constant(library.empty(2), 3).tolist() == [3, 3]
        with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
            library.nn.init.dirac_(library.empty(3, 3, 3), 2)
    older = {n for n in dir(torch.nn.init) if hasattr(torch.nn.init, n + "_")}
    assert older <= set(dir(init))
