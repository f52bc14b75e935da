"""What losses refuse and warn of, as PyTorch does, eagerly and compiled."""

import warnings

import pytest

import tracejit as tj

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CASES = [
    (name, shapes, kinds)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                 "binary_cross_entropy_with_logits")
    for shapes in (((3,), (3,)), ((3, 1), (3,)))
    for kinds in (("float32", "float32"), ("float32", "int64"), ("int64", "int64"),
                  ("float64", "float32"), ("int32", "float32"))
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
    return tuple(str(x).replace("torch.", "").replace("tracejit.", "")
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
def test_logarithms_of_probabilities_stop_at_minus_100(numerics):
    f = tj.script(lambda p, y: tj.nn.functional.binary_cross_entropy(p, y, reduction="none"),
                  numerics=numerics)
    for p, y, expected in ((0.0, 1.0, 100.0), (1.0, 0.0, 100.0), (1.0, 1.0, 0.0)):
        assert f(tj.tensor([p]), tj.tensor([y])).item() == expected


# what the losses over classes, and one_hot, say of what they do not take
REFUSED = [
    *(f"F.{name}(t.zeros{shape}, t.tensor({target}){more})"
      for name in ("cross_entropy", "nll_loss")
      for shape, target in (((1, 3), "[3]"), ((2, 3), "[-1, 2]"), ((3,), "3"),
                            ((1, 3, 2), "[[0, 4]]"), ((1, 3, 1, 2), "[[[0, 4]]]"), ((1, 0), "[0]"))
      for more in ("", ", t.ones(3)", ", ignore_index=-1", ", reduction='none'")),
    *(f"F.{name}(t.zeros({shape}), t.zeros({target}, dtype=t.{dtype}))"
      for name in ("cross_entropy", "nll_loss")
      for shape, target, dtype in (
          ("2, 3", "2", "float32"), ("2, 3", "2", "int32"), ("2, 3", "2", "bool"),
          ("2, 3", "2", "uint8"), ("2, 3", "2, 1", "int64"), ("2, 3", "2, 4", "int64"),
          ("2, 3", "3", "int64"), ("2, 3", "()", "int64"), ("3", "3", "int64"), ("3", "1", "int64"),
          ("3", "2", "int64"), ("()", "()", "int64"), ("2, 3, 2, 2", "2, 3, 2", "int64"),
          ("2, 3, 2, 2", "2, 2", "int64"), ("2, 3, 2", "2, 3", "int64"))),
    *(f"F.{name}(t.zeros(2, 3), t.zeros(2, dtype=t.int64), t.ones(3){more})"
      for name in ("cross_entropy", "nll_loss") for more in (".double()", "[:2]", "[None]")),
    *(f"F.{name}({input}, {target}, {weight})"
      for name in ("cross_entropy", "nll_loss")
      for input, target, weight in (
          ("[1.0]", "t.tensor([0])", "None"), ("t.zeros(1, 3)", "[0]", "None"),
          ("t.zeros(1, 3)", "None", "None"), ("t.zeros(1, 3)", "t.tensor([0])", "[1.0]"),
          ("t.zeros(1, 3, dtype=t.int64)", "t.tensor([0])", "None"))),
    "F.nll_loss(t.zeros(2, 3), t.tensor([0, 1]), ignore_index=1.5)",
    "F.cross_entropy(t.zeros(2, 3), t.zeros(2, 3), ignore_index=1)",
    "F.cross_entropy(t.zeros(2, 3), t.zeros(2, 3), t.ones(2))",
    "F.cross_entropy(t.zeros(2, 3), t.tensor([0, 1]), label_smoothing=-0.1)",
    "F.cross_entropy(t.zeros(2, 3), t.tensor([0, 1]), label_smoothing=1.5)",
    *(f"F.one_hot({arguments})"
      for arguments in ("t.tensor([0, 3]), 3", "t.tensor([-1]), 3", "t.tensor([-1])",
                        "t.tensor(2), 2", "t.tensor([0]), 0", "t.tensor([0]), -2",
                        "t.tensor([0]), 1.5", "[1]",
                        "t.zeros(0, dtype=t.int64)", "t.zeros(0, dtype=t.int64), 2")),
    *(f"F.binary_cross_entropy(t.tensor({input}), t.tensor({target}))"
      for input, target in (("[1.5, 0.5]", "[1.0, 1.0]"), ("[-0.5, 0.5]", "[1.0, 1.0]"),
                            ("[float('nan')]", "[1.0]"), ("[0.5]", "[2.0]"),
                            ("[0.5]", "[float('nan')]"), ("[0.0, 1.0]", "[0.0, 1.0]"))),
    *(f"F.kl_div(t.ones(2), {target})"
      for target in ("t.ones(2, dtype=t.int64)", "1.0", "t.ones(2)", "t.ones(2), reduction='sum'",
                     "t.ones(2), True")),
    *(f"F.{name}(t.full((2,), 0.5), t.ones(2), {option})"
      for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy",
                   "binary_cross_entropy_with_logits", "soft_margin_loss", "hinge_embedding_loss")
      for option in ("reduce=False", "size_average=False", "size_average=True, reduce=True")),
    *(f"F.{name}(t.ones(2, 3, dtype=t.{a}), t.ones({shape}, dtype=t.{b}), reduction='none')"
      for name in ("huber_loss", "soft_margin_loss", "l1_loss", "multilabel_soft_margin_loss",
                   "binary_cross_entropy_with_logits", "mse_loss")
      for a, b in (("float64", "float32"), ("float32", "float64"), ("int64", "float32"),
                   ("float32", "bool"), ("bool", "float32"), ("int64", "int64"))
      for shape in ("2, 3", "1, 3", "2, 2, 3", "2")),
    *(f"F.{name}(t.zeros(2, 3), t.ones(2, 3), weight={weight}, reduction='{reduction}')"
      for name in ("mse_loss", "l1_loss", "huber_loss")
      for weight in ("t.arange(6.0).view(2, 3)", "t.ones(3)")
      for reduction in ("mean", "sum", "none", "other")),
    "F.binary_cross_entropy_with_logits(t.zeros(2).double(), t.ones(2), pos_weight=t.ones(2))",
    "F.multilabel_soft_margin_loss(t.zeros(2, 1), t.ones(1, 2))",
    "F.multilabel_soft_margin_loss(t.zeros(()), t.ones(()))",
    *(f"F.cosine_embedding_loss(t.ones({a}), t.ones({b}), t.ones({target}))"
      for a, b, target in (("4, 5", "4, 5", "4"), ("5", "5", "()"), ("5", "5", "5"),
                           ("2, 5", "2, 5", "()"), ("2, 5", "5", "2"), ("2, 5, 3", "2, 5, 3", "2"),
                           ("2, 5", "2, 5", "2, 1"), ("()", "()", "()"))),
]  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_losses_say(call):
    expected, plain, compiled = (
        seen(library, around(eval(f"lambda t, F: {call}")), library, library.nn.functional)
        for library, around in ((torch, plainly), (tj, plainly), (tj, tj.script))
    )
    assert plain == expected
    assert compiled == expected


def plainly(function):
    return function
