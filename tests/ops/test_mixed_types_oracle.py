"""Functions of two tensors of different dtypes: PyTorch's dtype, and numbers that neither wrap nor
round in the narrower of both."""

import itertools

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

# Numbers that a factor of 70 takes beyond the small types.
VALUES = {
    "bool": [True, False], "uint8": [200, 3], "int8": [100, -7], "int16": [300, -5],
    "int32": [40000, -9], "int64": [50000, 3], "float16": [100.5, -0.3333],
    "bfloat16": [1.01, -3.33], "float32": [1.1, -167.25], "float64": [0.1, -1234.567],
}  # fmt: skip
FUNCTIONS = {
    "add": lambda t, x, y: t.add(x, y, alpha=70),
    "sub": lambda t, x, y: t.sub(x, y, alpha=70),
    "rsub": lambda t, x, y: t.rsub(x, y, alpha=70),
    "add, a float": lambda t, x, y: t.add(x, y, alpha=0.125),
    "in place": lambda t, x, y: x.clone().add_(y, alpha=70),
    "of lists": lambda t, x, y: t._foreach_add([x], [y], alpha=70)[0],
    "addcmul": lambda t, x, y: t.addcmul(x, y, y, value=3),
    "ldexp": lambda t, x, y: t.ldexp(x, y.clamp(-7, 9) if y.dtype != t.bool else y),
    "mse_loss": lambda t, x, y: t.nn.functional.mse_loss(x, y),
    "l1_loss": lambda t, x, y: t.nn.functional.l1_loss(x, y, reduction="none"),
    "smooth_l1_loss": lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, reduction="none"),
    "huber_loss": lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="sum"),
    "cosine_similarity": lambda t, x, y: t.nn.functional.cosine_similarity(x, y, 0),
}
ULP = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-6, "float64": 1e-13}


def operand(t, name, alone):
    x = t.tensor(VALUES[name], dtype=getattr(t, name))
    return x[0] if alone else x


def numbers(x):
    name = str(x.dtype).split(".")[1]
    wide = x.detach().to(torch.float32) if name == "bfloat16" and isinstance(x, torch.Tensor) else x
    array = np.asarray(wide.numpy())
    return name, array.astype(float if name in ULP else array.dtype)


def attempt(function, *operands):
    try:
        return numbers(function(*operands))
    except (RuntimeError, NotImplementedError, TypeError):
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_types(name, captured):
    pairs = list(itertools.product(VALUES, VALUES, (False, True), (False, True)))
    for first, second, x_alone, y_alone in pairs[::29 if captured else 1]:
        def ours(x, y):
            return FUNCTIONS[name](tracejit, x, y)

        own = tracejit.script(ours) if captured else ours
        sides = [operand(t, kind, alone) for t in (torch, tracejit)
                 for kind, alone in ((first, x_alone), (second, y_alone))]
        want = attempt(FUNCTIONS[name], torch, *sides[:2])
        if want is None:  # PyTorch refuses some that we compute
            continue
        got = attempt(own, *sides[2:])
        case = f"{name}({first}{[] if x_alone else [2]}, {second}{[] if y_alone else [2]})"
        assert got is not None and got[0] == want[0], f"{case}: {got}, PyTorch {want}"
        # PyTorch rounds parts of some to the narrower of both types.
        limit = max([ULP[kind] for kind in (first, second, want[0]) if kind in ULP], default=0)
        size = np.abs(want[1], where=np.isfinite(want[1]), out=np.zeros(want[1].shape)).max()
        np.testing.assert_allclose(got[1], want[1], rtol=limit, atol=limit * max(1, size),
                                   err_msg=case)


def test_a_norm_beyond_the_type_gives_zero():
    for t in (tracejit, torch):
        x = t.tensor([1e30, 1.0])
        assert t.nn.functional.cosine_similarity(x, x, 0).item() == 0


@pytest.mark.parametrize("exponent", [[200, -3], [-1074, 1000]])
def test_exact_scaling(exponent):
    """A power of two beyond the type times a small number is within it."""
    for values, kind in (([1e-40, 3.0], "float32"), ([1e-300, 5.0], "float64")):
        made = [t.ldexp(t.tensor(values, dtype=getattr(t, kind)), t.tensor(exponent)).tolist()
                for t in (tracejit, torch)]  # fmt: skip
        assert made[0] == made[1]


def test_joined_with_nothing_that_needs_gradients():
    """Tensors of shape (0,) are skipped among those of more dimensions, and have gradients."""
    made = []
    for t in (tracejit, torch):
        empty = t.ones(0, requires_grad=True)
        joined = t.cat([t.ones(2, 2), empty])
        joined.sum().backward()
        made.append((joined.tolist(), joined.requires_grad, empty.grad.tolist()))
    assert made[0] == made[1]


@pytest.mark.parametrize("divide", [
    lambda t, x: x // 0, lambda t, x: x % x, lambda t, x: x.fmod(0),
    lambda t, x: t.div(x, 0, rounding_mode="trunc"), lambda t, x: t.zeros(0, 1).int() // 0,
])  # fmt: skip
def test_nothing_divided_by_zero(divide):
    """No element, no error."""
    x = [t.zeros(0, dtype=t.int32) for t in (tracejit, torch)]
    assert divide(tracejit, x[0]).shape == divide(torch, x[1]).shape
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        tracejit.ones(1, dtype=tracejit.int32) // 0


def test_dimensions_are_checked_first():
    for t in (tracejit, torch):
        with pytest.raises(IndexError, match="Dimension out of range"):
            t.ones(2, 0).gather(2, t.ones(0, 1, 3).long())
        with pytest.raises(IndexError, match="Dimension out of range"):
            t.logsumexp(t.tensor(1.0), 2)


@pytest.mark.parametrize("kind", ["int32", "float16", "float32"])
@pytest.mark.parametrize("number", [np.float32(1.5), np.int64(3), np.float64(-2.25)])
def test_numbers_of_numpy(number, kind):
    """They count as Python numbers: as values, and as factors."""
    calls = [
        lambda t, x: x.index_fill(0, t.tensor([1]), number),
        lambda t, x: t.addcmul(x, x, x, value=number),
        lambda t, x: t.add(x, x, alpha=number),
        lambda t, x: t.sub(x.double(), x, alpha=number),
    ]
    for call in calls:
        found = []
        for t in (tracejit, torch):
            try:
                found.append(numbers(call(t, t.tensor([1, 2, 3]).to(getattr(t, kind)))))
            except RuntimeError as error:
                found.append((str(error), np.zeros(())))
        assert found[0][0] == found[1][0]
        np.testing.assert_array_equal(found[0][1], found[1][1])
