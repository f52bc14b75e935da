"""Windows, pixels and distances: PyTorch's errors; views and writes through `Tensor.unfold`."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
IMAGE, COLUMNS, PIXELS = (2, 3, 6, 6), (2, 12, 25), (2, 8, 4, 6)

# function, shapes, dtype, arguments
CALLS = [
    *(("unfold", IMAGE, "float32", (2, *args))
      for args in ((0,), (1, -1), (1, 0, 0), (1, 0, (1, 1, 1)), ((1,),))),
    *(("unfold", IMAGE, "float32", (kernel,)) for kernel in (0, 7, (1, 2, 3))),
    *(("unfold", shape, "float32", (2,))
      for shape in ((6, 6), (1, 1, 1, 1, 1), (2, 0, 6, 6), (2, 3, 0, 6), (0, 3, 6, 6))),
    *((name, shape, dtype, args) for dtype in ("int64", "bool")
      for name, shape, args in (("unfold", IMAGE, (2,)), ("fold", COLUMNS, (6, 2)))),
    *(("fold", COLUMNS, "float32", (6, 2, *args))
      for args in ((0,), (1, -1), (1, 0, 0), (2,), (1, 1))),
    *(("fold", shape, "float32", (6, 2))
      for shape in ((25,), IMAGE, (2, 12, 5), (2, 5, 25), (0, 12, 25), (2, 0, 25), (2, 12, 0))),
    *(("fold", COLUMNS, "float32", args) for args in ((6, 0), ((6, 6, 6), 2), (1, 2), (0, 2))),
    *((name, PIXELS, "float32", (factor,))
      for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
      for factor in (0, -1, 3, 4, 5)),
    *((name, (4, 4), "float32", (2,))
      for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")),
    *((f"lp_pool{n}d", (2, 3, *(6,) * n), "float32", args)
      for n in (1, 2, 3) for args in ((0, 2), (2, 9), (float("inf"), 3))),
]  # fmt: skip


def outcome(call):
    try:
        return tuple(call().shape)
    except Exception as error:
        return type(error), str(error).partition("\nException raised")[0]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_what_is_refused(call):
    name, shape, dtype, args = call
    ours, theirs = (
        outcome(lambda library=library: getattr(library.nn.functional, name)(
            library.zeros(shape).to(getattr(library, dtype)), *args))
        for library in (tracejit, torch))  # fmt: skip
    assert ours == theirs


@pytest.mark.parametrize("args", [
    (1, 5, 1), (1, 2, 0), (1, -1, 1), (1, 0, 1), (2, 1, 1), (-3, 1, 1), (0, 3, 2),
])  # fmt: skip
def test_what_tensor_unfold_refuses(args):
    assert outcome(lambda: tracejit.zeros(3, 4).unfold(*args)) == outcome(
        lambda: torch.zeros(3, 4).unfold(*args))  # fmt: skip


@pytest.mark.parametrize("name", ["cosine_similarity", "pairwise_distance"])
def test_what_distances_refuse(name):
    def call(library, shapes, dtype):
        given = [library.zeros(shape).to(getattr(library, dtype)) for shape in shapes]
        return outcome(lambda: getattr(library.nn.functional, name)(*given))

    for args in ((((4, 5), (3, 5)), "float32"), (((5,), (5,)), "float32"),
                 (((4, 5), (4, 5)), "int64")):  # fmt: skip
        assert call(tracejit, *args) == call(torch, *args), args


@pytest.mark.parametrize("vector", [[0.03, 0.04], [0.0, 0.0], [0.3, 0.4]])
def test_the_cosine_of_short_vectors(vector):
    found = []
    for library in (tracejit, torch):
        x, y = (library.tensor([v], dtype=library.float64).requires_grad_()
                for v in (vector, [1.0, 2.0]))  # fmt: skip
        cosine = library.nn.functional.cosine_similarity(x, y, eps=0.1)
        cosine.sum().backward()
        found.append([a.detach().numpy() for a in (cosine, x.grad, y.grad)])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)


def windows_written(library, x):
    view = x.unfold(1, 2, 2)
    view[:, 1] = 7.0
    view.mul_(2)
    x.unfold(0, 1, 1).add_(1)
    return view


def overlapping_windows_written(library, x):
    view = x.unfold(1, 3, 1)
    view.copy_(library.arange(18.0).reshape(2, 3, 3))
    x.unfold(0, 2, 1)[0, 1:3].fill_(5)
    return view


@pytest.mark.parametrize("program", [windows_written, overlapping_windows_written])
@pytest.mark.parametrize("mode", [None, "graph", "compiled"])
def test_writes_go_through_windows(program, mode):
    def written(x):
        return program(tracejit, x)

    call = written if mode is None else tracejit.script(written, mode=mode)
    for _ in range(2):
        ours, theirs = (library.arange(10.0).reshape(2, 5) for library in (tracejit, torch))
        found, wanted = call(ours), program(torch, theirs)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        assert found.stride() == wanted.stride()
        ours.zero_()
        assert found.sum().item() == 0


def test_gradients_through_a_write_to_windows():
    grads = []
    for library in (tracejit, torch):
        x = library.arange(5.0).requires_grad_()
        y = x * 2
        y.unfold(0, 2, 2).mul_(3)
        (y * y).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_maxima_go_back(n):
    found = []
    for library in (tracejit, torch):
        F = library.nn.functional
        x = library.tensor(np.random.default_rng(0).normal(size=(2, 3, *(5,) * n)))
        x.requires_grad_()
        y, at = getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)
        z = getattr(F, f"max_unpool{n}d")(y, at, 2, output_size=(5,) * n)
        (z * z * z).sum().backward()
        found.append((z.detach().numpy(), x.grad.numpy()))
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b)


def test_unpooling_refuses():
    def call(library, shape, indices, output_size=None):
        x, at = library.zeros(shape), library.zeros(indices).to(library.int64)
        return outcome(lambda: library.nn.functional.max_unpool2d(x, at, 2, None, 0, output_size))

    for args in (((2, 3, 2, 2), (2, 3, 2, 1)), ((2, 2), (2, 2)), ((1, 2, 2), (1, 2, 2), (9, 9)),
                 ((1, 2, 2), (1, 2, 2), (3,)), ((1, 2, 2), (1, 2, 2), (5, 3))):  # fmt: skip
        assert call(tracejit, *args) == call(torch, *args), args
