"""What losses refuse and warn of, as PyTorch does, eagerly and compiled."""

import warnings

import pytest

import tracejit as tj

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

NAN = float("nan")
CASES = [
    (name, shapes, kinds)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                 "binary_cross_entropy_with_logits")
    for shapes in (((3,), (3,)), ((3, 1), (3,)))
    for kinds in (("float32", "float32"), ("float32", "int64"), ("int64", "int64"),
                  ("float64", "float32"), ("int32", "float32"))
    # here they are computed in what the dtypes promote to
    if (name, kinds) not in (("huber_loss", ("int32", "float32")),
                             ("binary_cross_entropy_with_logits", ("float64", "float32")))
]  # fmt: skip


def seen(library, f, *args):
    """The value or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            found = f(*args)
            found = found.dtype, [round(x, 4) for x in found.reshape(-1).tolist()]
        except Exception as error:
            found = type(error).__name__, error
    names = "torch.", "tracejit."
    return tuple(str(x).replace(names[library is tj], "")
                 for x in (*found, [str(w.message) for w in given]))


def loss(library, name, shapes, kinds, reduction, compiled=False):
    function = getattr(library.nn.functional, name)

    def call(x, y):
        return function(x, y, reduction=reduction)

    args = [library.full(shape, 1).to(getattr(library, kind)) for shape, kind in zip(shapes, kinds)]
    return seen(library, tj.script(call) if compiled else call, *args)


@pytest.mark.parametrize(("name", "shapes", "kinds"), CASES)
def test_sizes_and_dtypes(name, shapes, kinds):
    for reduction in ("mean", "none"):
        expected = loss(torch, name, shapes, kinds, reduction)
        assert loss(tj, name, shapes, kinds, reduction) == expected
        assert loss(tj, name, shapes, kinds, reduction, compiled=True) == expected


def test_errors_of_losses_are_caught_where_they_are_raised():
    @tj.script
    def f(a, b):
        try:
            return tj.nn.functional.mse_loss(a, b)
        except NotImplementedError:
            return "refused"

    for _ in range(2):
        assert f(tj.arange(3), tj.arange(3)) == "refused"
        assert f(tj.ones(3), tj.zeros(3)).item() == 1.0


@pytest.mark.parametrize("numerics", ["fast", "eager"])
def test_nan_of_a_diverged_model_stays_nan(numerics):
    f = tj.script(lambda p, y: tj.nn.functional.binary_cross_entropy(p, y, reduction="none"),
                  numerics=numerics)
    for p, y, expected in ((NAN, 1.0, NAN), (NAN, 0.0, NAN), (0.5, NAN, NAN), (0.0, 1.0, 100.0),
                           (1.0, 0.0, 100.0), (1.0, 1.0, 0.0)):
        found = f(tj.tensor([p]), tj.tensor([y]))
        assert tj.allclose(found, tj.tensor([expected]), equal_nan=True)
