"""Functions one level below `nn.functional`, and reductions of segments: values and gradients as in
PyTorch, eagerly and captured."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 4, 3, 3)).astype(np.float32)
C = RNG.uniform(0.5, 1.5, size=4).astype(np.float32)
D = RNG.normal(size=(5, 3)).astype(np.float32)
GRID = RNG.uniform(-1, 1, size=(2, 2, 2, 2)).astype(np.float32)
P = RNG.uniform(0.1, 1.0, size=(5, 3)).astype(np.float32)
W = RNG.normal(size=(2, 3, 5)).astype(np.float32)
CELL = [RNG.normal(size=shape).astype(np.float32) for shape in ((8, 3), (8, 2), (8,))]
TIES = np.array([[1, 2], [1, 2], [4, 0], [3, 0], [5, 1]], np.float32)
SPECIAL = np.array([1, np.nan, 2, 5, 2, 0, 2, 3, 0, 0, 4, np.nan], np.float32)


def lengths(t, *counts):
    return t.tensor(list(counts))


CALLS = {
    "native_layer_norm": (lambda t, x, c: t.native_layer_norm(x, [3, 3], None, None, 1e-5), X, C),
    "native_layer_norm of rows": (
        lambda t, x, c: t.native_layer_norm(x.reshape(18, 4), (4,), c, c, 0.1), X, C),
    "native_group_norm": (
        lambda t, x, c: t.native_group_norm(x, c, c + 1, 2, 4, 9, 2, 1e-5), X, C),
    "native_batch_norm": (
        lambda t, x, c: t.native_batch_norm(x, c, c, None, None, True, 0.1, 1e-5), X, C),
    "native_batch_norm by running": (
        lambda t, x, c: t.native_batch_norm(
            x, c, None, t.zeros(4), t.ones(4), False, 0.1, 1e-5), X, C),
    "native_dropout off": (lambda t, x, c: t.native_dropout(x, 0.3, False), X, C),
    "native_dropout of nothing": (lambda t, x, c: t.native_dropout(x, 0.0, None)[0], X, C),
    "native_dropout of all": (lambda t, x, c: t.native_dropout(x, 1.0, True), X, C),
    "batch_norm": (
        lambda t, x, c: t.batch_norm(x, c, None, t.zeros(4), t.ones(4), True, 0.1, 1e-5, False),
        X, C),
    "instance_norm": (
        lambda t, x, c: t.instance_norm(x, c, None, None, None, True, 0.1, 1e-5, False), X, C),
    "group_norm": (lambda t, x, c: t.group_norm(x, 2, c), X, C),
    "rms_norm": (lambda t, x, c: t.rms_norm(x.reshape(18, 4), (4,), c, 1e-6), X, C),
    "embedding": (lambda t, x: t.embedding(x, t.tensor([[1, 2], [0, 4]])), D),
    "embedding padded": (lambda t, x: t.embedding(x, t.tensor([1, 2]), 1, True), D),
    "bilinear": (lambda t, x, c: t.bilinear(c[:3], c[:3], x[0, :2], c[:2]), X, C),
    "broadcast_to of sizes": (lambda t, x: x[0].broadcast_to(2, 3), D),
    "broadcast_to of a tuple": (lambda t, x: t.broadcast_to(x[0], (2, -1)), D),
    "count_nonzero of dimensions": (lambda t, x: (x > 0).count_nonzero(0, 1), D),
    "count_nonzero of one": (lambda t, x: t.count_nonzero(x > 0, dim=1), D),
    "constant_pad_nd": (lambda t, x: t.constant_pad_nd(x, [1, 2], 0.5), D),
    "grid_sampler": (lambda t, x, g: t.grid_sampler(x, g, 0, 1, False), X, GRID),
    "grid_sampler nearest": (lambda t, x, g: t.grid_sampler(x, g, 1, 0, True), X, GRID),
    "native_channel_shuffle": (lambda t, x: t.native_channel_shuffle(x.detach(), 2), X),
    "norm_except_dim": (lambda t, x: t.norm_except_dim(x, 2, 0), D),
    "norm_except_dim 1": (lambda t, x: t.norm_except_dim(x, 2, 1), D),
    "norm_except_dim none": (lambda t, x: t.norm_except_dim(x, 1, -1), D),
    "_weight_norm": (lambda t, x, c: t._weight_norm(x, c[:3].reshape(1, 3), 1), D, C),
    "_softmax": (lambda t, x: (t._softmax(x, 1, False), t._log_softmax(x, 0, False)), D),
    "CrossMapLRN2d": (lambda t, x: t.nn.CrossMapLRN2d(3, 0.5, 0.6, 2)(x.detach()), X[:, :2]),
    **{f"segment {kind}": (lambda t, x, kind=kind: t.segment_reduce(
        x, kind, lengths=lengths(t, 2, 3)), TIES)
        for kind in ("sum", "mean", "max", "min", "prod")},
    **{f"empty {kind}": (lambda t, x, kind=kind: t.segment_reduce(
        x, kind, lengths=lengths(t, 2, 0, 3), initial=1.5), D)
        for kind in ("sum", "mean", "max", "min", "prod")},
    **{f"segment of zeros and NaN {kind}": (lambda t, x, kind=kind: t.segment_reduce(
        x, kind, lengths=lengths(t, 2, 3, 4, 0, 3), initial=2), SPECIAL)
        for kind in ("mean", "max", "min", "prod")},
    "frobenius_norm": (
        lambda t, x: (t.frobenius_norm(x, 1), t.frobenius_norm(x, (1, 2), True)), X),
    "nuclear_norm": (lambda t, x: (t.nuclear_norm(x), t.nuclear_norm(x, (0, 1), True)), D),
    "nuclear_norm of stacks": (lambda t, x: t.nuclear_norm(x, (2, 3)), X),
    "grid_sampler_2d": (lambda t, x, g: t.grid_sampler_2d(x, g, 0, 2, True), X, GRID),
    "activations": (lambda t, x: (
        t.relu(x), x.relu(), t.selu(x), t.celu(x, 0.5), t.rrelu(x, 0.1, 0.2),
        t.threshold(x, 0.1, 0.5), t.dropout(x, 0.5, False), t.dropout(x, 1.0, True),
        t.alpha_dropout(x, 0.5, False), t.feature_alpha_dropout(x, 0.5, False)), X),
    "dropout_": (lambda t, x: (
        t.dropout_(x * 1, 0.5, False), t.dropout_(x * 1, 1.0, True),
        t.alpha_dropout_(x * 1, 0.0, True), t.feature_alpha_dropout_(x * 1, 0.5, False)), X),
    **{f"losses {reduction}": (lambda t, d, p, r=reduction: (
        t.kl_div(d, p, r), t.kl_div(d, p, r, log_target=True),
        t.binary_cross_entropy_with_logits(d, p.detach(), p.detach(), None, r),
        t.margin_ranking_loss(d, p, p.sign(), 0.5, r),
        t.hinge_embedding_loss(d, p.detach().round().sign(), 1.5, r),
        t.cosine_embedding_loss(d, p, (-1) ** t.arange(5), 0.1, r),
        t.triplet_margin_loss(d, p, p - 1, 0.9, 2, 1e-6, True, r),
        t.poisson_nll_loss(d, p, True, True, 1e-8, r),
        t.ctc_loss(d.log_softmax(1)[:, None], t.tensor([[1, 2]]), t.tensor([5]), t.tensor([2]), 0,
                   r, True)), D, P) for reduction in (0, 1, 2)},
    "losses": (lambda t, d, p: (
        t.kl_div(d, p), t.binary_cross_entropy_with_logits(d, p), t.margin_ranking_loss(d, p, p),
        t.hinge_embedding_loss(d, p.detach().sign()), t.triplet_margin_loss(d, p, p + d),
        t.cosine_embedding_loss(d, p, t.ones(5)),
        t.ctc_loss(d.log_softmax(1)[:, None], t.tensor([[1, 2]]), [5], [2])), D, P),
    "conv_tbc": (lambda t, x, w: t.conv_tbc(x[0], w, w[0, 0], 1), X, W),
    "F.conv_tbc": (lambda t, x, w: t.nn.functional.conv_tbc(x[0], w, w[0, 0]), X, W),
    "convolution": (lambda t, x, w: (
        t.convolution(x, x, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1),
        t.convolution(x[0], w.permute(2, 1, 0), w[0, 0], [2], [1], [1], False, [0], 1),
        t.convolution(x, x.mT[:, :, :2].transpose(0, 1), None, [2, 2], [1, 1], [1, 1], True,
                      [1, 1], 1)), X, W),
    "adaptive_max_pool1d": (lambda t, x: t.adaptive_max_pool1d(x[0], 2), X),
    "max_pool1d_with_indices": (lambda t, x: (
        *t.max_pool1d_with_indices(x[0], 2), *t.max_pool1d_with_indices(x[0], 2, 1, 1)), X),
    "affine_grid_generator": (
        lambda t, x: t.affine_grid_generator(x[:, 0, :2], (2, 1, 3, 4), False), X),
    "cells": (lambda t, d, w, v, c: (
        *t.lstm_cell(d, (d[:, :2], d[:, 1:]), w, v, c, c), t.gru_cell(d, d[:, :2], w[:6], v[:6]),
        t.rnn_tanh_cell(d, d[:, :2], w[:2], v[:2], c[:2], c[2:4]),
        t.rnn_relu_cell(d, d[:, :2], w[:2], v[:2], c[:2])), D, *CELL),
    "segment empty": (
        lambda t, x: t.segment_reduce(x.detach(), "max", lengths=lengths(t, 0, 5)), D),
    "segment mean of none": (
        lambda t, x: t.segment_reduce(x.detach(), "mean", lengths=lengths(t, 0, 5)), D),
    "segment offsets": (lambda t, x: t.segment_reduce(x, "sum", offsets=lengths(t, 0, 1, 5)), D),
    "segment unsafe": (
        lambda t, x: t.segment_reduce(x, "sum", lengths=lengths(t, 1, 2), unsafe=True), D),
    "segment rows": (lambda t, x: t.segment_reduce(
        x, "amax", lengths=t.tensor([[1, 3], [4, 0]]), axis=1, initial=-9.0), X),
}


def outcome(library, function, arrays, captured=False):
    tensors = [library.tensor(a, requires_grad=True) for a in arrays]
    run = library.script(function) if captured else function
    found = run(library, *tensors)
    found = found if isinstance(found, tuple) else (found,)
    total = sum((y * y * (k + 1)).sum() for k, y in enumerate(found) if y.requires_grad)
    if not isinstance(total, int):
        total.backward()
    values = [y.detach().float().numpy() for y in found]
    return values, [None if x.grad is None else x.grad.numpy() for x in tensors]


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name):
    function, *arrays = CALLS[name]
    values, grads = outcome(torch, function, arrays)
    for captured in (False, True):
        mine, others = outcome(tracejit, function, arrays, captured)
        for one, other in zip(mine, values, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)
        for one, other in zip(others, grads, strict=True):
            assert (one is None) is (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_dropout_says_what_it_kept():
    x = tracejit.ones(1000)
    out, mask = tracejit.native_dropout(x, 0.25, True)
    assert mask.dtype is tracejit.bool and 600 < int(mask.sum()) < 900
    tracejit.testing.assert_close(out, mask / 0.75)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_channels_of_cross_map_lrn(size):
    values = RNG.normal(size=(2, 7, 2, 3)).astype(np.float32)
    expected = torch.nn.CrossMapLRN2d(size, 0.7, 0.5, 1.5)(torch.tensor(values))
    found = tracejit.nn.CrossMapLRN2d(size, 0.7, 0.5, 1.5)(tracejit.tensor(values))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    x = tracejit.tensor(values[:, :, :1, :1], dtype=tracejit.float64, requires_grad=True)
    assert tracejit.autograd.gradcheck(tracejit.nn.CrossMapLRN2d(size, 0.7, 0.5, 1.5), (x,))
    assert repr(tracejit.nn.CrossMapLRN2d(size)) == repr(torch.nn.CrossMapLRN2d(size))


REFUSED = {
    "name of a reduction": lambda t, x: t.kl_div(x, x, "mean"),
    "name of a reduction of pairs": lambda t, x: t.margin_ranking_loss(x, x, x, 0.0, "none"),
    "bool for a reduction": lambda t, x: t.hinge_embedding_loss(x, x, 1.0, True),
    "reduce": lambda t, x: t.segment_reduce(x, "x", lengths=lengths(t, 5)),
    "sum": lambda t, x: t.segment_reduce(x, "sum", lengths=lengths(t, 1, 1)),
    "negative": lambda t, x: t.segment_reduce(x, "sum", lengths=lengths(t, -1, 6)),
    "nothing": lambda t, x: t.segment_reduce(x, "sum"),
    "indices": lambda t, x: t.segment_reduce(x, "sum", indices=lengths(t, 0, 0, 1)),
    "integers": lambda t, x: t.segment_reduce(x.long(), "sum", lengths=lengths(t, 5)),
    "dimensions": lambda t, x: t.nn.CrossMapLRN2d(2)(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](torch, torch.tensor(D))
    compiled = tracejit.script(lambda x: REFUSED[name](tracejit, x))
    for function in (lambda x: REFUSED[name](tracejit, x), compiled, compiled):
        with pytest.raises(theirs.type) as mine:
            function(tracejit.tensor(D))
        assert str(mine.value) == str(theirs.value)


@pytest.mark.parametrize("call", [
    "x.relu(None)", "x.relu(True)", "x.relu(inplace=True)", "t.relu(x, True)", "t.selu(x, True)",
    "t.relu(x, inplace=True)", "t.celu(x, 1.0, True)", "t.threshold(x, 0.1, 0.2, True)",
    "t.rrelu(x, inplace=True)", "t.dropout(x)", "t.dropout(x, 0.1, True, True)",
    "t.alpha_dropout(x, 0.5)", "t.feature_alpha_dropout(x, 0.1, True, True)",
])  # fmt: skip
def test_surplus_arguments_are_refused(call):
    for library in (torch, tracejit):
        with pytest.raises(TypeError):
            eval(call, {"t": library, "x": library.ones(2, 2)})
