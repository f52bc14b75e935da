"""What encoders make of padding, and say of masks and of their layers, against PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

AT_END = [[0, 0, 0], [0, 0, 1]]
FLOATS = [[0.0, -np.inf, -np.inf], [0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]]
CASES = {
    "padding at the end": {},
    "padding of a whole sequence": {"padding": [[0, 1, 1], [0, 0, 0]]},
    "padding in between": {"padding": [[0, 0, 0], [0, 1, 0]]},
    "padding of both kinds": {"padding": [[0, 1, 0], [0, 0, 1]]},
    "padding as numbers": {"padding": [[0.0, 0.0, 0.0], [0.0, 0.0, -np.inf]]},
    "gradients": {"grad": True},
    "frozen": {"grad": True, "frozen": True},
    "training": {"train": True},
    "not asked for": {"enable_nested_tensor": False},
    "not looked at": {"mask_check": False},
    "two masks": {"mask": FLOATS},
    "two bool masks": {"mask": np.triu(np.ones((3, 3), bool), 1)},
    "two float masks": {"padding": [[0.0, 0.0, 0.0], [0.0, 0.0, -np.inf]], "mask": FLOATS},
    "no padding mask": {"padding": None, "mask": FLOATS},
    "slow path": {"fast": False},
    "gelu": {"activation": "gelu"},
    "GELU": {"activation": "GELU()"},
    **{f"{name}={value}": {name: value} for name, value in (
        ("norm_first", True), ("bias", False), ("nhead", 1), ("activation", "Tanh()"))},
}  # fmt: skip


def _run(lib, state, capture=None, padding=AT_END, mask=None, grad=False, frozen=False,
         train=False, fast=True, enable_nested_tensor=True, mask_check=True,
         **options):  # fmt: skip
    kind = options.get("activation", "relu")
    options["activation"] = getattr(lib.nn, kind[:-2])() if kind.endswith("()") else kind
    options.setdefault("nhead", 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        layer = lib.nn.TransformerEncoderLayer(8, dim_feedforward=16, dropout=0.0,
                                               batch_first=True, **options)
        encoder = lib.nn.TransformerEncoder(layer, 2, lib.nn.LayerNorm(8), mask_check=mask_check,
                                            enable_nested_tensor=enable_nested_tensor)
        encoder.load_state_dict({k: lib.tensor(v) for k, v in state(encoder).items()})
        encoder.train(train).requires_grad_(not frozen)
        x = lib.tensor(np.random.default_rng(0).standard_normal((2, 3, 8), dtype=np.float32))
        if padding is not None:
            floats = isinstance(padding[0][0], float)
            padding = lib.tensor(padding, dtype=lib.float32 if floats else lib.bool)
        call = encoder if capture is None else capture(encoder)
        lib.backends.mha.set_fastpath_enabled(fast)
        try:
            with lib.set_grad_enabled(grad):
                out = call(x, mask=None if mask is None else lib.tensor(mask),
                           src_key_padding_mask=padding)  # fmt: skip
        finally:
            lib.backends.mha.set_fastpath_enabled(True)
    first = encoder.layers[0]
    said = sorted({str(w.message) for w in seen if "prototype" not in str(w.message)})
    return out.detach().numpy(), said, (encoder.use_nested_tensor, first.activation_relu_or_gelu)


def _weights(encoder):
    numbers = np.random.default_rng(1)
    return {name: numbers.standard_normal(tuple(x.shape)).astype(np.float32)
            for name, x in encoder.state_dict().items()}  # fmt: skip


@pytest.mark.parametrize(("name", "capture"), [
    *((name, None) for name in CASES),
    *((name, tracejit.script) for name in (
        "padding at the end", "padding of both kinds", "padding as numbers", "two masks")),
])  # fmt: skip
def test_encoders_treat_padding_as_pytorch_does(name, capture):
    got = _run(tracejit, _weights, capture, **dict(CASES[name]))
    want = _run(torch, _weights, **dict(CASES[name]))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-4)
    assert got[1:] == want[1:]


@pytest.mark.parametrize("kinds", [("bool", "float32"), ("float32", "bool"), ("bool", "bool"),
                                   ("float64", "float32")])  # fmt: skip
@pytest.mark.parametrize("module", ["MultiheadAttention", "TransformerEncoderLayer",
                                    "TransformerDecoderLayer"])  # fmt: skip
def test_masks_of_different_kinds_are_warned_of(module, kinds):
    def said(lib):
        padding, mask = (lib.zeros(3, 3, dtype=getattr(lib, kind)) for kind in kinds)
        layer, x = getattr(lib.nn, module)(8, 2), lib.ones(3, 3, 8)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                if module == "MultiheadAttention":
                    layer(x, x, x, key_padding_mask=padding, attn_mask=mask)
                elif module == "TransformerEncoderLayer":
                    layer(x, src_mask=mask, src_key_padding_mask=padding)
                else:
                    layer(x, x, tgt_mask=mask, tgt_key_padding_mask=padding)
            except RuntimeError:
                return "refused"
        return {str(w.message) for w in seen}

    assert said(tracejit) == said(torch)


def test_captured_encoders_follow_the_switch_of_the_fast_path():
    layer = tracejit.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = tracejit.nn.TransformerEncoder(layer, 1).eval()
    x, padding = tracejit.rand(2, 3, 8), tracejit.tensor(AT_END, dtype=tracejit.bool)
    call = tracejit.script(lambda x: encoder(x, src_key_padding_mask=padding))
    given = []
    with tracejit.no_grad():
        for fast in (True, False, True, False):
            tracejit.backends.mha.set_fastpath_enabled(fast)
            given.append(bool((call(x)[1, 2] == 0).all()))
    tracejit.backends.mha.set_fastpath_enabled(True)
    assert given == [True, False, True, False] and not call.report().breaks
