"""What transformers tell their layers of causal masks, and what attention makes of the hint."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

MASKS = {
    "none": lambda lib, causal: None,
    "causal": lambda lib, causal: causal,
    "causal bool": lambda lib, causal: causal.bool(),
    "causal double": lambda lib, causal: causal.double(),
    "other": lambda lib, causal: lib.zeros(3, 3),
    "of each head": lambda lib, causal: causal.expand(4, 3, 3),
}


def _told(lib, mask, told, batch_first, capture):
    seen = []

    class Encoder(lib.nn.TransformerEncoderLayer):
        def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
            seen.append((is_causal, src_mask is None or str(src_mask.dtype).split(".")[1]))
            return src

    class Decoder(lib.nn.TransformerDecoderLayer):
        def forward(self, tgt, memory, tgt_mask=None, tgt_is_causal=False, **others):
            seen.append((tgt_is_causal, tgt_mask is None or str(tgt_mask.dtype).split(".")[1]))
            return tgt

    causal = lib.nn.Transformer.generate_square_subsequent_mask(3)
    mask, x = MASKS[mask](lib, causal), lib.ones((2, 3, 8) if batch_first else (3, 2, 8))
    encoder = lib.nn.TransformerEncoder(Encoder(8, 2, 16, batch_first=batch_first), 2)
    decoder = lib.nn.TransformerDecoder(Decoder(8, 2, 16, batch_first=batch_first), 1)
    if capture is not None:
        encoder, decoder = capture(encoder), capture(decoder)
    encoder(x, mask=mask, is_causal=told)
    decoder(x, x, tgt_mask=mask, tgt_is_causal=told)
    return seen


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("told", [None, True, False])
@pytest.mark.parametrize("mask", MASKS)
def test_layers_are_told_whether_a_mask_is_causal(mask, told, batch_first):
    assert (_told(tracejit, mask, told, batch_first, None)
            == _told(torch, mask, told, batch_first, None))  # fmt: skip


def test_captured_encoders_tell_layers_of_each_mask():
    class Layer(tracejit.nn.TransformerEncoderLayer):
        def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
            return src + 1 if is_causal else src

    encoder = tracejit.nn.TransformerEncoder(Layer(8, 2, 16, batch_first=True), 2)
    call = tracejit.script(lambda x, mask: encoder(x, mask=mask))
    causal = tracejit.nn.Transformer.generate_square_subsequent_mask(3)
    x = tracejit.zeros(1, 3, 8)
    masks = [causal, tracejit.zeros(3, 3), causal, tracejit.zeros(3, 3)]
    assert [call(x, mask).max().item() for mask in masks] == [2, 0, 2, 0]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"add_zero_attn": True}, {"add_bias_kv": True}])
@pytest.mark.parametrize("mask", ["causal", "causal bool", "causal double", "other"])
def test_the_hint_is_followed_where_pytorch_follows_it(mask, options, need_weights, padded):
    def attend(lib):
        numbers = np.random.default_rng(0)
        attention = lib.nn.MultiheadAttention(8, 2, **options)
        attention.load_state_dict({
            name: lib.tensor(numbers.standard_normal(tuple(x.shape)).astype(np.float32))
            for name, x in attention.state_dict().items()
        })  # fmt: skip
        x = lib.tensor(numbers.standard_normal((3, 2, 8)).astype(np.float32))
        causal = lib.nn.Transformer.generate_square_subsequent_mask(3)
        padding = lib.tensor([[False] * 3, [False, False, True]]) if padded else None
        try:
            out = attention(x, x, x, padding, need_weights, MASKS[mask](lib, causal),
                            is_causal=True)[0]  # fmt: skip
        except RuntimeError:
            return None
        return out.detach().numpy()

    want = attend(torch)
    if want is not None:  # PyTorch cannot add numbers of another dtype
        np.testing.assert_allclose(attend(tracejit), want, rtol=1e-4, atol=1e-5)
