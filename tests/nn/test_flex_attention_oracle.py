"""Attention with functions of places against PyTorch's, eager and captured, and masks by blocks."""

import importlib

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
ours, theirs = (importlib.import_module(f"{m}.nn.attention.flex_attention")
                for m in ("tracejit", "torch"))


def causal(b, h, q, kv):
    return q >= kv


def near(b, h, q, kv):
    return (q - kv < 3) & (kv - q < 2)


def nothing_at_first(b, h, q, kv):
    return q > kv


def relative(score, b, h, q, kv):
    return score * (h + 1) + (q - kv) * 0.1


CASES = {
    "plain": {}, "relative": {"mod": relative}, "causal": {"mask": causal},
    "both": {"mod": relative, "mask": near}, "empty rows": {"mask": nothing_at_first},
    "groups": {"mask": causal, "enable_gqa": True}, "scale": {"scale": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("mode", ["eager", "script", "trace"])
@pytest.mark.parametrize("case", CASES)
def test_attention(case, mode):
    options = dict(CASES[case])
    mod, mask = options.pop("mod", None), options.pop("mask", None)
    rng = np.random.default_rng(0)
    heads = 2 if options.get("enable_gqa") else 4
    arrays = [rng.standard_normal(s) for s in ((2, 4, 5, 3), (2, heads, 6, 3), (2, heads, 6, 2))]

    def run(q, k, v):
        blocks = None if mask is None else ours.create_block_mask(mask, None, None, 5, 6)
        return ours.flex_attention(q, k, v, mod, blocks, return_lse=True, **options)

    called = run if mode == "eager" else getattr(tracejit, mode)(run)
    blocks = None if mask is None else theirs.create_block_mask(mask, None, None, 5, 6, "cpu")
    expected = theirs.flex_attention(
        *map(torch.tensor, arrays), mod, blocks, return_lse=True, **options)
    for _ in range(2):
        inputs = [tracejit.tensor(a, requires_grad=True) for a in arrays]
        found = called(*inputs)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a.detach().numpy(), b.numpy(), rtol=1e-10, atol=1e-10)
        (found[0].sin().sum() + found[1].masked_fill(found[1] < -1e30, 0).sum()).backward()
    if mode == "eager":  # PyTorch has no gradients of it on the CPU
        assert tracejit.autograd.gradcheck(
            lambda *x: run(*x)[0], tuple(tracejit.tensor(a, requires_grad=True) for a in arrays))
    else:
        plain = [tracejit.tensor(a, requires_grad=True) for a in arrays]
        out, lse = run(*plain)
        (out.sin().sum() + lse.masked_fill(lse < -1e30, 0).sum()).backward()
        for a, b in zip(inputs, plain):
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [2, (2, 4), 128], ids=str)
@pytest.mark.parametrize("mask", [causal, near], ids=["causal", "near"])
@pytest.mark.parametrize("apart", [True, False])
def test_blocks(mask, size, apart):
    a, b = (flex.create_block_mask(flex.and_masks(mask, flex.noop_mask), 2, None, 5, 7, "cpu",
                                   size, separate_full_blocks=apart)
            for flex in (ours, theirs))
    assert a.shape == b.shape and a.numel() == b.numel() and a.sparsity() == b.sparsity()
    assert a.to_dense().tolist() == b.to_dense().tolist()
    for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
                 "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None) and (x is None or x.tolist() == y.tolist()), name
