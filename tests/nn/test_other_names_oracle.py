"""Names that say the same in another way: pooling with indices, clipping with a known norm, batch
norms without statistics, activations in place; as PyTorch has them."""

from __future__ import annotations

import pytest

import tracejit

CALLS = """
f.max_pool1d_with_indices(image[0], 2)
f.max_pool2d_with_indices(image, 2, stride=1)
f.max_pool3d_with_indices(image[None], (1, 2, 2))
f.adaptive_max_pool1d_with_indices(image[0], 3)
f.adaptive_max_pool2d_with_indices(image, 2)
f.adaptive_max_pool3d_with_indices(image[None], 1)
[x.shape for x in f.fractional_max_pool2d_with_indices(image, 2, output_size=2)]
t.celu_(-t.ones(1), alpha=2.0), t.selu_(t.ones(1)), t.threshold_(t.ones(1), 2, 3)
t.rrelu_(-t.ones(1))
(p.grad.mul_(3), t.nn.utils.clip_grads_with_norm_([p], 1.0, t.tensor(15.0)), p.grad)
(t.nn.utils.clip_grads_with_norm_(p, 10.0, t.tensor(5.0)), p.grad)
t.func.replace_all_batch_norm_modules_(norms) is norms, norms, list(norms.buffers())
(t.func.replace_all_batch_norm_modules_(norms[0]), norms[0](rows).std(0).detach().round(decimals=2))
""".strip().split("\n")


def shown(library, call):
    p = library.nn.Parameter(library.ones(2))
    p.grad = library.tensor([3.0, 4.0])
    nn = library.nn
    norms = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2), nn.BatchNorm2d(3, affine=False))
    image = library.arange(16.0).reshape(1, 1, 4, 4)
    names = {"t": library, "f": nn.functional, "p": p, "norms": norms, "image": image,
             "rows": library.arange(6.0).reshape(3, 2)}  # fmt: skip
    return repr(eval(call, names)).replace("torch.", "tracejit.").replace("Native", "")


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_other_names_do_what_they_do_in_pytorch(call):
    torch = pytest.importorskip("torch")
    assert shown(tracejit, call) == shown(torch, call)


def test_samples_of_batch_norms_are_mapped_over():
    norm = tracejit.func.replace_all_batch_norm_modules_(tracejit.nn.BatchNorm1d(2))
    x = tracejit.randn(3, 4, 2)
    each = tracejit.stack([norm(row) for row in x])
    assert tracejit.allclose(tracejit.vmap(norm)(x), each, atol=1e-6)
