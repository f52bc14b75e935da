"""Poolings: PyTorch's errors and indices; one program for all batch sizes."""

from types import SimpleNamespace

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
OURS = SimpleNamespace(library=tracejit, F=tracejit.nn.functional, nn=tracejit.nn)
THEIRS = SimpleNamespace(library=torch, F=torch.nn.functional, nn=torch.nn)

# function, shape, dtype, arguments: each is refused
REFUSED = [
    *((f"{kind}_pool{n}d", (2, 3, *(6,) * n), "float32", args)
      for n in (1, 2, 3)
      for kind, further in (("max", [(2, 2, 0, 0), (2, 2, 0, (1,) * (n + 1))]), ("avg", []))
      for args in [((2,) * (n + 1),), (2, (2,) * (n + 1)), (2, 2, (0,) * (n + 1)), (0,), (2, 0),
                   (2, 2, -1), (2, 2, 2), (7,), ("a",), (2.5,), *further]),
    *((f"{kind}_pool{n}d", shape, "float32", (2,))
      for n in (1, 2, 3) for kind in ("max", "avg", "adaptive_max", "adaptive_avg")
      for shape in ((4,) * n, (4,) * (n + 3), (2, 3, *(0,) * n))),
    *((f"{kind}_pool{n}d", (2, 3, *(6,) * n), dtype, (2,))
      for n in (1, 2, 3) for kind, dtype in (("max", "bool"), ("avg", "bool"), ("avg", "uint8"),
                                             ("adaptive_max", "int64"), ("adaptive_avg", "int64"))),
    *((f"adaptive_{kind}_pool{n}d", (2, 3, *(6,) * n), "float32", (size,))
      for n in (1, 2, 3) for kind in ("max", "avg") for size in ((2,) * (n + 1), -1)),
    ("max_pool1d", (2, 3, 6), "int64", (2,)),
    ("max_pool1d", (2, 3, 6), "float32", (3, 1, 2, 2)),
    ("max_pool2d", (2, 3, 6, 6), "float32", (3, 1, 2, 2)),
    ("max_pool2d", (2, 0, 6, 6), "float32", (2,)),
    ("max_pool3d", (2, 3, 6, 6, 6), "float32", (3, 1, (0, 1, 2), 2)),
    ("avg_pool2d", (2, 3, 6, 6), "float32", (2, 2, 0, False, True, 0)),
    ("avg_pool3d", (2, 3, 6, 6, 6), "float32", (2, 2, 0, False, True, 0)),
    ("adaptive_avg_pool1d", (2, 3, 6), "float32", ((None,),)),
    ("adaptive_max_pool2d", (2, 0, 6, 6), "float32", (2,)),
    ("adaptive_avg_pool3d", (2, 0, 6, 6, 6), "float32", (2,)),
]  # fmt: skip


def refusal(to, name, shape, dtype, args):
    x = to.library.zeros(shape).to(getattr(to.library, dtype))
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)) as caught:
        getattr(to.F, name)(x, *args)
    return type(caught.value), str(caught.value).partition("\nException raised")[0]


@pytest.mark.parametrize("call", REFUSED, ids=lambda call: f"{call[0]}-{call[3]}")
def test_errors_are_pytorchs(call):
    assert refusal(OURS, *call) == refusal(THEIRS, *call)


@pytest.mark.parametrize("layer, shape", [
    (lambda nn: nn.MaxPool1d(3, 2, 1, return_indices=True), (2, 3, 8)),
    (lambda nn: nn.MaxPool2d((2, 3), 1, ceil_mode=True, return_indices=True), (2, 3, 5, 6)),
    (lambda nn: nn.MaxPool3d(2, return_indices=True), (3, 4, 5, 3)),
    (lambda nn: nn.AdaptiveMaxPool1d(3, True), (3, 8)),
    (lambda nn: nn.AdaptiveMaxPool2d((3, None), True), (2, 3, 5, 6)),
    (lambda nn: nn.AdaptiveMaxPool3d(2, True), (2, 3, 4, 5, 3)),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["distinct", "equal", "nan"])
def test_indices_are_pytorchs(layer, shape, kind):
    rng = np.random.default_rng(4)
    x = rng.normal(size=shape) if kind == "distinct" else rng.integers(0, 3, shape) * 1.0
    if kind == "nan":
        x.flat[::7] = np.nan
    for a, b in zip(layer(OURS.nn)(tracejit.tensor(x)), layer(THEIRS.nn)(torch.tensor(x))):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_a_program_serves_all_batch_sizes(mode):
    def pooled(x):
        y = tracejit.nn.functional.max_pool2d(x, 3, 2, 1)
        y = tracejit.nn.functional.avg_pool2d(y, 2, ceil_mode=True)
        y = tracejit.nn.functional.adaptive_max_pool2d(y, (2, 1))
        return tracejit.nn.functional.adaptive_avg_pool2d(y, 1)

    compiled = tracejit.script(pooled, mode=mode)
    for batch in (2, 5, 1, 3, 0):
        grads = []
        for function in (compiled, pooled):
            x = tracejit.arange(batch * 3 * 81.0).reshape(batch, 3, 9, 9).sin().requires_grad_()
            y = function(x)
            (y * y).sum().backward()
            grads += [y.detach().numpy(), x.grad.numpy()]
        np.testing.assert_allclose(grads[0], grads[2], rtol=1e-6)
        np.testing.assert_allclose(grads[1], grads[3], rtol=1e-6)
    assert (compiled.report().cache_misses, compiled.report().breaks) == (1, [])


def test_names_beside_the_functional_ones():
    for name in ("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "adaptive_avg_pool1d",
                 "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "cosine_similarity",
                 "pairwise_distance"):  # fmt: skip
        assert hasattr(torch, name)
        for module in (tracejit, tracejit.nn.functional):  # an object each, as some of PyTorch's
            assert getattr(module, name).__name__ == name


def test_fractional_pooling_of_a_volume_without_a_batch_reads_the_first_samples():
    found = []
    for lib in (tracejit, torch):
        pool = lib.nn.FractionalMaxPool3d(2, output_size=3, _random_samples=lib.ones(2, 4, 3) / 3)
        found.append(pool(lib.arange(4 * 5 * 5 * 5.0).reshape(4, 5, 5, 5)).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_windows_of_padding_alone_are_the_lowest(n, dtype):
    for side in (THEIRS, OURS):
        x = side.library.ones(2, 1, *(1,) * n, dtype=getattr(side.library, dtype))
        pool = getattr(side.F, f"max_pool{n}d")
        compiled = side is OURS and tracejit.script(lambda x, pool=pool: pool(x, 2, 2, 1, 2))
        for call in (lambda x: pool(x, 2, 2, 1, 2), *[compiled] * bool(compiled)):  # noqa: B023
            assert (call(x) == -float("inf")).all()
    assert pool(x, 2, 2, 1, 2, return_indices=True)[1].max() == 0


def test_no_windows_are_an_empty_result():
    for n in (2, 3):
        shapes = []
        for side in (THEIRS, OURS):
            pool = getattr(side.F, f"fractional_max_pool{n}d")
            x = side.library.ones(1, 2, *(6,) * n)
            shapes.append(tuple(pool(x, 2, output_size=(0, *(1,) * (n - 1))).shape))
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("shape, samples", [
    ((1, 0, 5, 5), None), ((0, 5, 5), None), ((2, 3, 5, 5), (2, 4, 2)), ((2, 3, 5, 5), (2, 3, 3)),
    ((2, 3, 5, 5), (1, 3, 2)), ((2, 3, 5, 5), (2, 3)), ((2, 3, 5, 5), (0, 3, 2)),
    ((0, 3, 5, 5), None),
])  # fmt: skip
def test_fractional_pooling_refuses(shape, samples):
    told = []
    for side in (THEIRS, OURS):
        given = None if samples is None else side.library.ones(samples)
        try:
            x = side.library.ones(shape)
            told.append(tuple(side.F.fractional_max_pool2d(x, 2, 2, _random_samples=given).shape))
        except RuntimeError as error:
            told.append(str(error))
    assert told[0] == told[1]
