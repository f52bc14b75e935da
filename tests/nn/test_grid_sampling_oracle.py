"""Reading images between their elements: PyTorch's errors, gradients at the edges, batch sizes."""

import itertools

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore::UserWarning")]
IMAGES, GRID = (2, 3, 4, 5), (2, 3, 3, 2)

SAMPLED = [
    (IMAGES, GRID, {"mode": "other"}), (IMAGES, GRID, {"padding_mode": "other"}),
    (IMAGES, (1, 3, 3, 2), {}), (IMAGES, (2, 3, 3, 3), {}), (IMAGES, (2, 3, 2), {}),
    ((2, 3, 4), (2, 3, 1), {}), (IMAGES, (2, 3, 3, 3, 2), {}), ((2, 3, 0, 4), GRID, {}),
    ((2, 3, 4, 4, 4), (2, 3, 3, 3, 3), {"mode": "bicubic"}), ((2, 0, 4, 4), GRID, {}),
    ((0, 3, 4, 4), (0, 3, 3, 2), {}), (IMAGES, (2, 0, 3, 2), {}),
]  # fmt: skip
MATRICES = [
    ((2, 2, 3), (2, 3, 4)), ((2, 2, 3), (2, 3, 4, 5, 6)), ((2, 2, 3), (2, 3, -4, 5)),
    ((2, 2, 3), (2, 3, 0, 5)), ((2, 2, 3), (3, 3, 4, 5)), ((2, 3), (2, 3, 4, 5)),
    ((2, 2, 3), (2, 3, 4, 5)),
]  # fmt: skip


def outcome(call):
    try:
        return tuple(call().shape)
    except Exception as error:
        text = str(error).partition("\nException raised")[0]
        return type(error), text.replace("torch.", "").replace("tracejit.", "")


@pytest.mark.parametrize("shape, grid, options", SAMPLED, ids=str)
def test_what_sampling_refuses(shape, grid, options):
    ours, theirs = (
        outcome(lambda library=library: library.nn.functional.grid_sample(
            library.zeros(shape), library.zeros(grid), **options))
        for library in (tracejit, torch))  # fmt: skip
    assert ours == theirs


def test_what_dtypes_sampling_refuses():
    for kinds in (("float32", "float64"), ("float16", "float32"), ("int64", "int64")):
        ours, theirs = (
            outcome(lambda given=[
                library.zeros(shape).to(getattr(library, kind))
                for shape, kind in zip((IMAGES, GRID), kinds)
            ], library=library: library.nn.functional.grid_sample(*given))
            for library in (tracejit, torch))  # fmt: skip
        assert ours == theirs


@pytest.mark.parametrize("shape, size", MATRICES, ids=str)
def test_what_affine_grid_refuses(shape, size):
    ours, theirs = (
        outcome(lambda library=library: library.nn.functional.affine_grid(
            library.zeros(shape), size))
        for library in (tracejit, torch))  # fmt: skip
    assert ours == theirs


@pytest.mark.parametrize("mode, padding, align", itertools.product(
    ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (True, False)))
def test_places_on_elements_and_edges(mode, padding, align):
    rng = np.random.default_rng(0)
    for size in ((3, 5), (1, 4), (1, 1)):
        x, seed = rng.normal(size=(1, 2, *size)), rng.normal(size=(1, 2, 5, 9))
        rows, columns = np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-2, 2, 9), indexing="ij")
        places, found = np.stack([columns, rows], -1)[None], []
        for library in (tracejit, torch):
            image, grid = (library.tensor(a).requires_grad_() for a in (x, places))
            y = library.nn.functional.grid_sample(image, grid, mode, padding, align)
            y.backward(library.tensor(seed))
            found.append([a.detach().numpy() for a in (y, image.grad, grid.grad)])
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_a_program_serves_all_batch_sizes(mode):
    def warped(x, theta):
        F = tracejit.nn.functional
        return F.grid_sample(x, F.affine_grid(theta, x.shape), padding_mode="border")

    compiled = tracejit.script(warped, mode=mode)
    for batch in (2, 5, 1):
        found = []
        for function in (compiled, warped):
            x = tracejit.arange(batch * 36.0).reshape(batch, 3, 4, 3).sin().requires_grad_()
            theta = tracejit.arange(batch * 6.0).reshape(batch, 2, 3).cos().requires_grad_()
            y = function(x, theta)
            (y * y).sum().backward()
            found.append([a.detach().numpy() for a in (y, x.grad, theta.grad)])
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert (compiled.report().cache_misses, compiled.report().breaks) == (1, [])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("n", "mode"), [(2, "bilinear"), (2, "nearest"), (2, "bicubic"),
                                         (3, "bilinear"), (3, "nearest")])  # fmt: skip
def test_places_that_are_no_numbers(n, mode, padding):
    nan, inf = float("nan"), float("inf")
    rows = [[nan, 0.1, 0.2], [0.1, nan, 0.3], [inf, 0.1, 0.2], [-inf, 0.1, 0.2], [nan] * 3]
    found = []
    for library in (tracejit, torch):
        image = library.arange(4.0**n).reshape((1, 1, *(4,) * n))
        grid = library.tensor(rows)[:, :n].reshape((1, 5, *(1,) * (n - 1), n))
        y = library.nn.functional.grid_sample(image, grid, mode, padding, align_corners=True)
        found.append(y.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)
