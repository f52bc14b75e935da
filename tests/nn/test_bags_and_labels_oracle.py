"""Bags of rows and losses of labels against PyTorch: errors, changes of the table, gradients of
weights, batches of changing sizes, and a module around a module."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(6, 3))


def both(run):
    """What `run(library)` gives in both libraries, as it is or as an error."""
    seen = []
    for library in (tracejit, torch):
        try:
            seen.append(run(library))
        except Exception as error:
            text = str(error).replace("torch.", "tracejit.").replace("tracejit.Size", "")
            seen.append(f"{type(error).__name__}: {text}".replace("(", "").replace(")", ""))
    return seen


def bag(lib, index, *args, table=TABLE, **options):
    options = {k: lib.tensor(v) if isinstance(v, (list, np.ndarray)) else v
               for k, v in options.items()}  # fmt: skip
    args = [lib.tensor(a) if isinstance(a, list) else a for a in args]
    return lib.nn.functional.embedding_bag(lib.tensor(index), lib.tensor(table), *args, **options)


F32, X = TABLE.astype(np.float32), RNG.normal(size=(3, 4))
REFUSED = [
    lambda lib, F: bag(lib, [1, 2]),
    lambda lib, F: bag(lib, [[1, 2]], [0]),
    lambda lib, F: bag(lib, [1, 2], [[0]]),
    lambda lib, F: bag(lib, [[[1]]]),
    lambda lib, F: bag(lib, [1, 2], [0], mode="x"),
    lambda lib, F: bag(lib, [1, 2], [0], per_sample_weights=[1.0, 2.0], table=F32),
    lambda lib, F: bag(lib, [1, 2], [0], mode="sum", per_sample_weights=[1.0], table=F32),
    lambda lib, F: bag(lib, [1, 2], [0], mode="sum", per_sample_weights=[1.0, 2.0]),
    lambda lib, F: bag(lib, [1, 2], [0], mode="max", scale_grad_by_freq=True),
    lambda lib, F: bag(lib, [1, 2], [0], mode="max", sparse=True),
    lambda lib, F: bag(lib, [1, 2], [0], padding_idx=9),
    lambda lib, F: lib.nn.EmbeddingBag(3, 2, padding_idx=3),
    lambda lib, F: lib.nn.EmbeddingBag(3, 2, _weight=lib.ones(2, 2)),
    lambda lib, F: lib.nn.EmbeddingBag.from_pretrained(lib.ones(2)),
    lambda lib, F: lib.nn.TripletMarginWithDistanceLoss(margin=0),
    lambda lib, F: F.multilabel_margin_loss(lib.tensor(X), lib.tensor([0, 1])),
    lambda lib, F: F.multilabel_margin_loss(lib.tensor(X), lib.tensor(X.astype(np.float32))),
    lambda lib, F: F.multilabel_margin_loss(lib.tensor(X), lib.tensor([[0, 1, 2, 4]] * 3)),
    lambda lib, F: F.multilabel_margin_loss(lib.ones(1, 3, 4), lib.ones(3, 4)),
    lambda lib, F: F.multilabel_margin_loss(lib.ones(2, 0), lib.ones(2, 0).long()),
    *((lambda lib, F, shape=shape, labels=labels: F.multi_margin_loss(
        lib.ones(shape), lib.tensor(labels)))
      for shape, labels in (((2, 3), 1), ((2, 3), [1]), ((2, 3), [[1], [2]]), ((2, 3), [1, 3]),
                            ((2, 3), [1, -1]), ((2, 3), [1.0, 2.0]), ((2, 0), [1, 1]),
                            ((2, 1, 3), [1, 1]), ((3,), [1, 1]))),
    lambda lib, F: F.multi_margin_loss(lib.ones(2, 3), lib.tensor([1, 1]), weight=lib.ones(2)),
    lambda lib, F: ctc(lib, [5, 6], [2, 2]),
    lambda lib, F: ctc(lib, [5], [2, 2]),
    lambda lib, F: ctc(lib, [5, 5], [2]),
    lambda lib, F: ctc(lib, [5, 5], [2, 3]),
    lambda lib, F: ctc(lib, [5, 5], [-1, 2]),
    lambda lib, F: ctc(lib, [5.0, 5.0], [2, 2]),
    lambda lib, F: ctc(lib, [5, 5], [2, 2], blank=4),
    lambda lib, F: ctc(lib, [5, 5], [2, 2], targets=[1, 2, 2]),
    lambda lib, F: ctc(lib, [5, 5], [2, 2], kind=np.int64),
]  # fmt: skip
LOGS = np.log(RNG.dirichlet(np.ones(4), (5, 2)))


def ctc(lib, steps, counts, targets=((1, 2), (2, 2)), kind=np.float64, **options):
    given = [lib.tensor(x) for x in (LOGS.astype(kind), np.array(targets), steps, counts)]
    return lib.nn.functional.ctc_loss(*given, **options)


@pytest.mark.parametrize("run", REFUSED)
def test_refused(run):
    mine, theirs = both(lambda lib: run(lib, lib.nn.functional))
    assert mine == theirs and "Error: " in mine


def test_offsets_must_fit():
    for offsets, text in (([1], r"offsets\[0\] has to be 0"), ([0, 5], "can not be greater than")):
        captured = tracejit.script(tracejit.nn.functional.embedding_bag)
        given = [tracejit.tensor([1, 2]), tracejit.tensor(TABLE), tracejit.tensor(offsets)]
        for run in (tracejit.nn.functional.embedding_bag, captured, captured):
            with pytest.raises(RuntimeError, match=text):
                run(*given)


@pytest.mark.parametrize(
    ("index", "options"),
    [
        ([0, 5, 2, 2, 1], {"offsets": [0, 2, 2], "per_sample_weights": [0.5, 2.0, 1.0, 3.0, -1.0]}),
        ([[0, 5], [2, 2]], {"per_sample_weights": [[0.5, 2.0], [1.0, 3.0]], "padding_idx": 5}),
        ([0, 5, 2], {"offsets": [0, 0, 3, 3]}),
        ([], {"offsets": [0, 0]}),
    ],
)
def test_weights_of_samples(index, options):
    """Results and gradients of the table and of the samples' weights."""

    def run(library, script=lambda f: f):
        table = library.tensor(TABLE, requires_grad=True)
        given = {k: library.tensor(v) if type(v) is list else v for k, v in options.items()}
        leaves, factors = [table], given.get("per_sample_weights")
        if factors is not None:
            given["per_sample_weights"] = factors.double().requires_grad_()
            leaves.append(given["per_sample_weights"])
        called = script(library.nn.functional.embedding_bag)
        places = library.tensor(np.array(index, np.int64))
        out = called(places, table, mode="sum", **given)
        grads = library.autograd.grad((out**2).sum(), leaves)
        return [x.detach().numpy() for x in (out, *grads)]

    mine, theirs = both(run)
    captured = run(tracejit, lambda f: tracejit.script(f, mode="graph"))
    for a, b, c in zip(mine, theirs, captured, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
        np.testing.assert_allclose(c, b, rtol=1e-10)


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_one_program_for_changing_sizes(mode):
    def losses(index, offsets, table, x, labels, logs, said):
        F = tracejit.nn.functional
        n = tracejit.full((2,), 2)
        bags = F.embedding_bag(index, table, offsets, padding_idx=0)
        loss = F.ctc_loss(logs, said, n * 2, n, reduction="sum")
        return bags.sum() + F.multilabel_margin_loss(x, labels) + loss

    captured = tracejit.script(losses, mode=mode)
    for k in (3, 5, 4, 7):
        given = [np.arange(k) % 4, np.arange(k - 1), TABLE, np.ones((k, 4)) * np.arange(4),
                 np.array([[1, 3, -1, 0]] * k), LOGS[:, :2].repeat(k, 0)[: k + 2],
                 np.array([[1, 2], [3, 1]])]  # fmt: skip
        given = [tracejit.tensor(x) for x in given]
        assert captured(*given).item() == pytest.approx(losses(*given).item(), rel=1e-10)
    report = captured.report()
    assert (report.compiles, report.breaks) == (1, []), report


def test_rows_are_scaled_down_in_place():
    def run(library, script=lambda f: f):
        table = library.tensor(TABLE)
        called = script(library.nn.functional.embedding)
        out = called(library.tensor([[1, 4], [4, 4]]), table, max_norm=0.5)
        return out.numpy(), table.numpy()

    mine, theirs = both(run)
    captured = run(tracejit, lambda f: tracejit.script(f, mode="graph"))
    for a, b, c in zip(mine, theirs, captured, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_allclose(c, b, rtol=1e-6)
    assert np.abs(mine[1] - TABLE).max() > 0.1


def test_a_module_around_a_module():
    def run(library):
        layer = library.nn.DataParallel(library.nn.Linear(2, 1))
        for p in layer.parameters():
            p.data.fill_(0.5)
        out = layer(library.ones(3, 2))
        return repr(layer), list(layer.state_dict()), layer.device_ids, out.tolist()

    mine, theirs = both(run)
    assert mine == theirs


IN_PLACE = [("celu_", (0.5,)), ("elu_", ()), ("hardtanh_", (-0.3, 0.4)), ("leaky_relu_", (0.2,)),
            ("rrelu_", ()), ("selu_", ()), ("threshold_", (0.1, 2.0))]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), IN_PLACE)
def test_activations_in_place(name, args):
    def run(library, script=lambda f: f):
        x = library.tensor(X, requires_grad=True)
        y = x * 1
        function = getattr(library.nn.functional, name)
        out = script(lambda y: function(y, *args))(y)
        y.sum().backward()
        return y.detach().numpy(), out is y, x.grad.numpy()

    mine, theirs = both(run)
    captured = run(tracejit, lambda f: tracejit.script(f, mode="graph"))
    for found in (mine, captured):
        assert found[1] is theirs[1] is True
        np.testing.assert_allclose(found[0], theirs[0], rtol=1e-12)
        np.testing.assert_allclose(found[2], theirs[2], rtol=1e-12)


@pytest.mark.parametrize(
    "sizes",
    [((5, 2), (5, 4)), ((5, 3), (4, 4)), ((5, 3), (5, 3)), ((5, 1, 3), (5, 4)),
     ((5, 3), (5, 4), (3,))],
)  # fmt: skip
def test_bilinear_refuses(sizes):
    mine, theirs = both(
        lambda lib: lib.nn.functional.bilinear(
            lib.ones(sizes[0]), lib.ones(sizes[1]), lib.ones(2, 3, 4),
            *(lib.ones(s) for s in sizes[2:]))
    )  # fmt: skip
    assert mine == theirs and "Error" in mine


def test_gumbel_softmax():
    """Classes are drawn as often as they are likely; hard rows have the soft rows' gradient."""
    F = tracejit.nn.functional
    logits = tracejit.tensor([0.5, 0.3, 0.2], dtype=tracejit.float64).log().repeat(20000, 1)
    captured = tracejit.script(F.gumbel_softmax)
    for draw in (F.gumbel_softmax, captured, captured):
        tracejit.manual_seed(0)
        hard = draw(logits, tau=0.3, hard=True)
        assert tracejit.allclose(hard.mean(0), logits[0].exp(), atol=0.02)
        tracejit.manual_seed(0)
        soft = draw(logits, tau=0.3)
        assert tracejit.allclose(soft.sum(-1), tracejit.ones(20000).double())
        assert tracejit.equal(soft.argmax(-1), hard.argmax(-1))
    grads = []
    for hard in (False, True):
        x = logits[:5].clone().requires_grad_()
        tracejit.manual_seed(0)
        (F.gumbel_softmax(x, hard=hard, dim=0) * tracejit.arange(3)).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1] and any(grads[0][0])
    with pytest.raises(RuntimeError, match="dtype must be a floating point but you specified Int"):
        F.gumbel_softmax(tracejit.ones(3).int())
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect."):
        F.gumbel_softmax(tracejit.ones(3), eps=1e-3)
