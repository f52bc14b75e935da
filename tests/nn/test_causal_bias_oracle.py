"""Causal masks by name (`nn.attention.bias`) against PyTorch, eagerly and captured."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tracejit
from tracejit.nn.attention import bias

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

NAMES = ("causal_upper_left", "causal_lower_right")
SIZES = ((3, 3), (3, 5), (5, 3))


def _inputs(lib, queries, keys, heads=2):
    numbers = np.random.default_rng(0)
    shapes = ((2, 4, queries, 8), (2, heads, keys, 8), (2, heads, keys, 8))
    return [lib.tensor(numbers.standard_normal(s), requires_grad=True) for s in shapes]


def _attend(lib, name, size, attend, **arguments):
    make = getattr(__import__(f"{lib.__name__}.nn.attention.bias", fromlist=[name]), name)
    inputs = _inputs(lib, *size)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        out = attend(*inputs, make(*size), enable_gqa=True, **arguments)
    gradients = lib.autograd.grad(out.square().sum(), inputs)
    said = [(w.category, str(w.message)) for w in seen if "causal" in str(w.message)]
    return [x.detach().numpy() for x in (out, *gradients)], said


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["eager", "script", "trace"])
def test_attention_with_a_causal_bias_is_pytorchs(name, size, kind):
    attend = tracejit.nn.functional.scaled_dot_product_attention

    def call(q, k, v, mask, **arguments):
        return attend(q, k, v, mask, **arguments)

    if kind != "eager":
        call = getattr(tracejit, kind)(call)
    got = _attend(tracejit, name, size, call, scale=0.3)
    want = _attend(torch, name, size, torch.nn.functional.scaled_dot_product_attention, scale=0.3)
    assert got[1] == want[1]
    for a, b in zip(got[0], want[0]):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_a_bias_made_in_a_captured_function_follows_the_sizes():
    @tracejit.script
    def attend(q, k, v):
        mask = bias.causal_lower_right(q.size(-2), k.size(-2))
        return tracejit.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    for size in ((3, 5), (4, 6), (2, 2), (1, 7)):
        q, k, v = _inputs(tracejit, *size, heads=4)
        mask = tracejit.tensor(np.tri(*size, size[1] - size[0], dtype=bool))
        want = tracejit.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        np.testing.assert_allclose(attend(q, k, v).detach().numpy(), want.detach().numpy())


def test_captured_attention_tells_one_bias_from_another():
    attend = tracejit.script(tracejit.nn.functional.scaled_dot_product_attention)
    q, k, v = _inputs(tracejit, 3, 5, heads=4)
    first, last = (getattr(bias, name)(3, 5) for name in NAMES)
    kept = bias.causal_upper_left(3, 5)
    outs = [attend(q, k, v, mask) for mask in (first, last, kept)]
    kept.variant = bias.CausalVariant.LOWER_RIGHT
    outs.append(attend(q, k, v, kept))
    assert tracejit.equal(outs[0], outs[2]) and tracejit.equal(outs[1], outs[3])
    assert not tracejit.equal(outs[0], outs[1])


@pytest.mark.parametrize("call", [
    "b.causal_upper_left(3)", "b.causal_lower_right(1, 2, 3)", "b.CausalBias(1, 2, 3)",
    "b.causal_upper_left(2, 3)", "b.causal_lower_right(2, 3)", "list(b.CausalVariant)",
    "b.causal_lower_right(2, 3).variant, b.causal_upper_left(2, 3).seq_len_kv",
    "attend(x, x, x, b.causal_upper_left(2, 2), is_causal=True)",
])  # fmt: skip
def test_what_biases_say_and_refuse(call):
    def outcome(lib):
        names = {"b": __import__(f"{lib.__name__}.nn.attention.bias", fromlist=["b"]),
                 "attend": lib.nn.functional.scaled_dot_product_attention, "x": lib.ones(1, 2, 2)}
        try:
            return repr(eval(call, names))
        except Exception as error:
            return type(error), str(error)

    assert outcome(tracejit) == outcome(torch)
