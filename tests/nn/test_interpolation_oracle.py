"""Interpolation: PyTorch's errors, and one program for all batch sizes."""

from types import SimpleNamespace

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area", "other")
LINES, IMAGES, VOLUMES = (2, 3, 4), (2, 3, 4, 4), (2, 3, 4, 4, 4)

# shape, dtype, options: refused unless the mode suits the shape
CALLS = [
    *((shape, "float32", {"mode": mode, "size": 6, **more})
      for mode in MODES for shape in ((3, 4), LINES, IMAGES, VOLUMES)
      for more in ({}, {"align_corners": True}, {"antialias": True})),
    *((shape, dtype, {"mode": mode, "size": 3})
      for dtype in ("int64", "bool") for shape, modes in (
          (LINES, ("nearest", "nearest-exact", "linear")),
          (IMAGES, ("nearest", "nearest-exact", "bilinear", "bicubic", "area")),
          (VOLUMES, ("nearest", "nearest-exact", "trilinear"))) for mode in modes),
    *((shape, "float32", {"size": size})
      for shape in (LINES, IMAGES, VOLUMES) for size in (0, -1, (1, 2, 3, 4))),
    *((shape, "float32", {"size": 3}) for shape in ((2, 0, 4), (2, 0, 4, 4), (2, 3, 0, 4))),
    (IMAGES, "float32", {}),
    (IMAGES, "float32", {"size": 3, "scale_factor": 2}),
    (IMAGES, "float32", {"scale_factor": (1.0, 2.0, 3.0)}),
    (IMAGES, "float32", {"scale_factor": 0.1}),
    (IMAGES, "float32", {"scale_factor": -1.0}),
    (IMAGES, "float32", {"size": 3, "recompute_scale_factor": True}),
    (IMAGES, "float32", {"size": (None, 2)}),
]  # fmt: skip


def outcome(to, shape, dtype, options):
    x = to.library.zeros(shape).to(getattr(to.library, dtype))
    try:
        return tuple(to.library.nn.functional.interpolate(x, **options).shape)
    except Exception as error:
        return type(error), str(error).partition("\nException raised")[0]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_what_is_refused_is_what_pytorch_refuses(call):
    ours, theirs = (outcome(SimpleNamespace(library=x), *call) for x in (tracejit, torch))
    assert ours == theirs


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_a_program_serves_all_batch_sizes(mode):
    def resized(x):
        y = tracejit.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
        y = tracejit.nn.functional.interpolate(y, size=(5, 4), mode="bicubic")
        return tracejit.nn.functional.interpolate(y, scale_factor=1.5)

    compiled = tracejit.script(resized, mode=mode)
    for batch in (2, 5, 1, 0):
        found = []
        for function in (compiled, resized):
            x = tracejit.arange(batch * 36.0).reshape(batch, 3, 4, 3).sin().requires_grad_()
            y = function(x)
            (y * y).sum().backward()
            found.append((y.detach().numpy(), x.grad.numpy()))
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert (compiled.report().cache_misses, compiled.report().breaks) == (1, [])


def test_scaled_sizes_stay_symbolic_for_whole_factors():
    compiled = tracejit.script(lambda x: tracejit.nn.functional.interpolate(x, scale_factor=2))
    for size in (3, 5, 8):
        assert compiled(tracejit.ones(1, 1, size, 2)).shape == (1, 1, 2 * size, 4)
    assert compiled.report().cache_misses == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_place_is_rounded_as_in_pytorch(mode, dtype):
    for size, out in ((2, 41), (2, 49), (4, 49), (4, 82), (18, 66), (21, 77), (26, 46), (30, 22)):
        found = []
        for library in (tracejit, torch):
            x = library.arange(size, dtype=getattr(library, dtype)).reshape(1, 1, size)
            found.append(library.nn.functional.interpolate(x, size=out, mode=mode).tolist())
        assert found[0] == found[1], (size, out)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes(mode, antialias):
    """Their weights are integers: to the bit."""
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 12, 9), dtype=np.uint8)
    for options in ({"size": (7, 14)}, {"size": (24, 9)}, {"scale_factor": (0.5, 1.7)},
                    {"size": (1, 40), "align_corners": True}):
        run = tracejit.script(tracejit.nn.functional.interpolate)
        options |= {"mode": mode, "antialias": antialias}
        theirs = torch.nn.functional.interpolate(torch.tensor(image), **options)
        eager = tracejit.nn.functional.interpolate(tracejit.tensor(image), **options)
        assert eager.dtype is tracejit.uint8
        assert eager.equal(run(tracejit.tensor(image), **options))
        assert eager.tolist() == theirs.tolist()
