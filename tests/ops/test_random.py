"""Generators and what they draw: reproducible, independent of shape splits, distributed as they
should."""

import copy
import pickle

import pytest

import tracejit
from tracejit.nn.functional import dropout
from tracejit.ops.generators import Generator
from tracejit.ops.random import bernoulli, normal, rand, randint, randn, randperm
from tracejit.ops.record import REGISTRY
from tracejit.ops.types import bfloat16, bool_, float16, float32, float64, int64


@pytest.fixture(autouse=True)
def seeded():
    tracejit.manual_seed(0)


def test_the_same_seed_gives_the_same_numbers():
    first = [rand(3, 4), randn(5), randint(0, 9, (7,)), randperm(6)]
    tracejit.manual_seed(0)
    for x, y in zip(first, [rand(3, 4), randn(5), randint(0, 9, (7,)), randperm(6)]):
        assert x.tolist() == y.tolist()


def test_draws_do_not_repeat_and_states_can_be_restored():
    g = Generator().manual_seed(5)
    state = g.get_state()
    first, second = rand(8, generator=g), rand(8, generator=g)
    assert first.tolist() != second.tolist() and g.offset == 2
    g.set_state(state)
    assert rand(8, generator=g).tolist() == first.tolist()
    with pytest.raises(RuntimeError, match="RNG state must be"):
        g.set_state(tracejit.zeros(3))


def test_an_element_depends_on_its_number_alone():
    tracejit.manual_seed(1)
    long = rand(100)
    tracejit.manual_seed(1)
    assert rand(2, 5).reshape(10).tolist() == long[:10].tolist()


def test_kernels_count_elements_as_eager_mode_does():
    class Emit:
        def operand(self, k, index):
            return ("state", index)

        def call(self, template, **scalars):
            return template, scalars

    template, scalars = REGISTRY["uniform"].element(Emit(), (1, 2), offset=3, shape=(2, 5),
                                                    dtype=float32, device=None)
    assert scalars["number"] == 7 and scalars["drawn"] == ("state", (1,))
    assert template == ("philox_uniform_float32(uint64({seed}), uint64({drawn} + 3), "
                        "uint64({number}))")


def test_generators_copy_and_pickle_with_their_state():
    g = Generator().manual_seed(-3)
    rand(2, generator=g)
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert rand(4, generator=other).tolist() == rand(4, generator=copy.deepcopy(g)).tolist()
    assert g.initial_seed() == 2**64 - 3


@pytest.mark.parametrize("d", [float32, float64, float16, bfloat16])
def test_moments(d):
    u, n = rand(20000, dtype=d).double(), randn(20000, dtype=d).double()
    assert u.min().item() >= 0 and u.max().item() < 1
    assert abs(u.mean().item() - 0.5) < 0.01 and abs(u.var().item() - 1 / 12) < 0.005
    assert abs(n.mean().item()) < 0.03 and abs(n.var().item() - 1) < 0.05


def test_integers_and_permutations():
    x = randint(-2, 3, (5000,))
    assert x.dtype is int64 and sorted(set(x.tolist())) == [-2, -1, 0, 1, 2]
    assert sorted(randperm(50).tolist()) == list(range(50))
    assert randint(7, (2, 3)).shape == (2, 3)


def test_bernoulli_by_number_and_by_tensor():
    x = tracejit.zeros(10000).bernoulli_(0.3)
    assert abs(x.mean().item() - 0.3) < 0.02
    p = tracejit.tensor([0.0, 1.0]).expand(100, 2)
    assert bernoulli(p).mean(0).tolist() == [0.0, 1.0]


def test_normal_with_tensors_broadcasts():
    mean = tracejit.tensor([[0.0], [100.0]])
    assert normal(mean, tracejit.ones(50)).mean(1).tolist() == pytest.approx([0, 100], abs=1)
    assert normal(2.0, 0.0, (3,)).tolist() == [2.0] * 3


def test_in_place_draws():
    x = tracejit.zeros(1000)
    assert x.uniform_(2, 3) is x and 2 <= x.min().item() and x.max().item() < 3
    assert abs(x.normal_(5, 0.1).mean().item() - 5) < 0.05
    assert set(tracejit.zeros(100, dtype=bool_).random_().tolist()) == {True, False}
    assert 0 <= tracejit.zeros(50, dtype=int64).random_(4).max().item() < 4


@pytest.mark.parametrize("call, error, text", [
    (lambda: randint(3, 3, (1,)), RuntimeError, "random_ expects 'from' to be less than 'to'"),
    (lambda: normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0"),
    (lambda: rand(2, dtype=int64), NotImplementedError, "rand"),
    (lambda: tracejit.zeros(2).bernoulli_(1.5), RuntimeError, "p to be in"),
    (lambda: tracejit.zeros(2).uniform_(2, 1), RuntimeError, "uniform_ expects"),
    (lambda: dropout(tracejit.zeros(2), 1.5), ValueError, "dropout probability has to be"),
    (lambda: randperm(-1), RuntimeError, "non-negative"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_dropout_zeroes_scales_and_differentiates():
    x = tracejit.ones(10000, requires_grad=True)
    y = dropout(x, 0.25)
    kept = y != 0
    assert abs(kept.double().mean().item() - 0.75) < 0.02
    assert y[kept].tolist() == pytest.approx([4 / 3] * int(kept.sum().item()))
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 1.0).sum().item() == 0
