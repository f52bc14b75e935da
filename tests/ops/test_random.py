"""Generators and what they draw: reproducible, independent of shape splits, distributed as they
should."""

import copy
import pickle

import pytest

import tracejit
from tracejit.core.ops.generators import Generator
from tracejit.core.ops.random import bernoulli, normal, rand, randint, randn, randperm
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import bfloat16, bool_, float16, float32, float64, int64, uint8
from tracejit.nn import functional
from tracejit.nn.functional import dropout


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
    assert state.dtype is uint8
    with pytest.raises(TypeError, match="RNG state must be a ByteTensor"):
        g.set_state(tracejit.zeros(3))
    with pytest.raises(TypeError, match="expected a ByteTensor, but got list"):
        g.set_state([1])
    with pytest.raises(RuntimeError, match="RNG state size to be 3"):
        g.set_state(tracejit.zeros(3, dtype=uint8))


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
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()):
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


ERRORS = [
    "rand(2, dtype=int64)", "randn(2, dtype=int64)", "rand()", "rand(-1)",
    "rand_like(ones(2, dtype=int64))", "rand(2, generator=5)",
    "randint(3, 3, (1,))", "randint(0, (2,))", "randint(0, 300, (2,), dtype=uint8)",
    "randint(-1, 3, (2,), dtype=uint8)", "randint(0, 2**40, (2,), dtype=int32)",
    "randint(2.5, (2,))", "randint(5, 3)", "randint(5, (2,), requires_grad=True)",
    "randperm(-1)", "randperm(3.0)", "randperm(300, dtype=uint8)", "randperm(3, dtype=bool)",
    "normal(0.0, 1.0)", "normal(0.0, -1.0, (2,))", "normal(zeros(2), -1.0)",
    "normal(zeros(2), tensor([-1.0, 1.0]))", "normal(zeros(2), ones(3))",
    "normal(zeros(2), ones(2), (2,))", "normal(zeros(2, dtype=int64), 1.0)",
    "bernoulli(tensor([1.5]))", "bernoulli(tensor([1, 0]))", "bernoulli(tensor([0.5]), 2.0)",
    "zeros(2).normal_(0, -1)", "zeros(2, dtype=int64).normal_()", "zeros(2).uniform_(2, 1)",
    "zeros(2, dtype=int64).uniform_()", "zeros(2).bernoulli_(1.5)", "zeros(2).random_(5, 3)",
    "zeros(2, dtype=uint8).random_(0, 300)", "zeros(2).exponential_(0)",
    "zeros(2, dtype=int64).exponential_()", "zeros(2).geometric_(0)", "zeros(2).geometric_(1.0)",
    "zeros(2).cauchy_(0, -1)", "zeros(2).log_normal_(1, -2)", "zeros(2, dtype=int64).log_normal_()",
    "multinomial(zeros(2), 1)", "multinomial(zeros(2), 1, True)", "multinomial(ones(2), 3)",
    "multinomial(tensor([1.0, -1.0]), 1)", "multinomial(tensor([1.0, nan]), 1)",
    "multinomial(tensor([1, 2]), 1)", "multinomial(ones(2, 2, 2), 1)", "multinomial(ones(2), 0)",
    "multinomial(tensor([[0.0, 0.0], [1.0, 1.0]]), 1)", "multinomial(ones(2), 1, out=zeros(1))",
    "multinomial(ones(2**24 + 1), 1)", "poisson(tensor([1, 2]))",
    "poisson(tensor([-1.0]))", "binomial(tensor([10]), tensor([0.5]))",
    "nn.functional.dropout(ones(2), 1.5)", "nn.functional.dropout(ones(2, dtype=int64), 0.5)",
    "nn.functional.dropout1d(ones(2), 0.5)", "feature_dropout(ones(2), 0.5, True)",
    "Generator().manual_seed(2**64)", "Generator().manual_seed(1.5)", "manual_seed('a')",
]  # fmt: skip


def raised(module, text):
    with pytest.raises(Exception) as caught:
        eval(text, {name: getattr(module, name) for name in dir(module)} | {"dtype": module.dtype})
    return caught.value


@pytest.mark.oracle
@pytest.mark.parametrize("text", ERRORS)
def test_errors_are_those_of_pytorch(text):
    torch = pytest.importorskip("torch")
    got, want = raised(tracejit, text), raised(torch, text)
    assert type(got) is type(want)
    expected = str(want).partition("\n")[0].partition("  (Could this")[0]
    if "invalid combination of arguments" in expected:
        expected = expected.partition("(")[0]
    if "generator=int" not in str(want):
        assert str(got).startswith(expected), (str(got), str(want))



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


def test_dropout_of_channels():
    for drop, shape, kept_shape in [
        (functional.dropout1d, (50, 40, 3), (50, 40, 1)),
        (functional.dropout1d, (50, 3), (50, 1)),
        (functional.dropout2d, (50, 40, 2, 3), (50, 40, 1, 1)),
        (functional.dropout3d, (50, 2, 2, 3), (50, 1, 1, 1)),
        (lambda x, p: tracejit.feature_dropout(x, p, True), (50, 40, 3), (50, 40, 1)),
    ]:
        y = drop(tracejit.ones(*shape), 0.5)
        first = y[tuple(slice(0, size) for size in kept_shape)]
        assert bool((y == first).all()) and set(first.reshape(-1).tolist()) == {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance():
    x = randn(100000)
    for drop in (functional.alpha_dropout, functional.feature_alpha_dropout):
        y = drop(x.reshape(1000, 100), 0.3, training=True)
        assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.03
        assert drop(x, 0.3) is x


def test_arguments_of_pytorch():
    out = tracejit.zeros(2, 3)
    assert rand(size=(2, 3), out=out, layout=None, pin_memory=False) is out and out.min() >= 0
    assert out.sum() > 0 and tracejit.randint(high=5, size=(2,)).shape == (2,)
    assert tracejit.randint(low=3, high=4, size=(2,)).tolist() == [3, 3]
    assert tracejit.randint(5, (2,), dtype=float32, requires_grad=True).requires_grad
    z = randn(20000, dtype=tracejit.complex64)
    assert z.dtype is tracejit.complex64 and abs(z.abs().square().mean().item() - 1) < 0.03
    assert tracejit.zeros(3, dtype=int64).random_(-5, None).shape == (3,)
    with pytest.warns(UserWarning, match="is resized"):
        assert rand(3, out=out).shape == (3,)


def test_chances_and_moments_have_no_gradient():
    p = tracejit.full((3,), 0.5, requires_grad=True)
    for y in (bernoulli(p), normal(p, 1.0), normal(p, p), tracejit.poisson(p)):
        (grad,) = tracejit.autograd.grad(y.sum(), p)
        assert grad.tolist() == [0.0] * 3
