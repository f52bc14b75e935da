"""Attention and transformers give PyTorch's results, weights, gradients, names and text."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(4)


def normal(*shape):
    return RNG.normal(size=shape)


X, Y, Z = normal(5, 3, 8), normal(4, 3, 8), normal(4, 3, 6)
PADDING = np.array([[False, False, True, False]] * 2 + [[False] * 4])
CAUSAL = np.triu(np.ones((5, 5), bool), 1)
PLAIN: dict = {}

# options of the layer; inputs and masks of the call
ATTENTION = [
    (PLAIN, (X, X, X), PLAIN),
    ({"bias": False}, (X, Y, Y), {"need_weights": False}),
    ({"batch_first": True}, (X, X, X), {"average_attn_weights": False}),
    (PLAIN, (X, Y, Y), {"key_padding_mask": PADDING}),
    (PLAIN, (X, X, X), {"attn_mask": CAUSAL, "is_causal": True}),
    (PLAIN, (X, X, X), {"attn_mask": normal(6, 5, 5), "need_weights": False}),
    ({"add_bias_kv": True, "add_zero_attn": True}, (X, Y, Y),
     {"key_padding_mask": PADDING, "attn_mask": normal(5, 4)}),
    ({"kdim": 6, "vdim": 6}, (X, Z, Z), PLAIN),
    (PLAIN, (X[:, 0], Y[:, 0], Y[:, 0]), {"key_padding_mask": PADDING[0]}),
]  # fmt: skip
LAYERS = [
    ("TransformerEncoderLayer", (8, 2, 16, 0.0), PLAIN, (X,), PLAIN),
    ("TransformerEncoderLayer", (8, 2, 16, 0.0, "gelu"), {"norm_first": True, "bias": False}, (X,),
     {"src_mask": CAUSAL}),
    ("TransformerEncoderLayer", (8, 2, 16, 0.0), {"batch_first": True}, (Y,),
     {"src_key_padding_mask": np.array([[False, True, False]] * 4)}),
    ("TransformerDecoderLayer", (8, 2, 16, 0.0), PLAIN, (X, Y),
     {"tgt_mask": CAUSAL, "memory_key_padding_mask": PADDING}),
    ("Transformer", (8, 2, 2, 1, 16, 0.0), PLAIN, (Y, X),
     {"src_key_padding_mask": PADDING, "tgt_mask": CAUSAL, "memory_key_padding_mask": PADDING}),
]  # fmt: skip


def given(library, x):
    if not isinstance(x, np.ndarray):
        return x
    return library.tensor(x.tolist(), dtype=library.bool if x.dtype == bool else library.float64)


def seen(library, name, args, options, inputs, call, state, capture):
    layer = getattr(library.nn, name)(*args, **options).double()
    if state is not None:
        layer.load_state_dict({k: given(library, v) for k, v in state.items()})
    tensors = {id(x): given(library, x) for x in inputs}  # the same array, the same tensor
    for x in tensors.values():
        x.requires_grad_()
    function = tracejit.script(layer) if capture else layer
    out = function(*(tensors[id(x)] for x in inputs),
                   **{k: given(library, v) for k, v in call.items()})
    results = out if isinstance(out, tuple) else (out,)
    sum((r * r).sum() for r in results if r is not None).backward()
    grads = [p.grad for p in layer.parameters()] + [x.grad for x in tensors.values()]
    arrays = [None if r is None else r.detach().numpy() for r in (*results, *grads)]
    kept = {k: v.numpy() for k, v in layer.state_dict().items()}
    return arrays, repr(layer), kept


def check(name, args, options, inputs, call):
    theirs, text, state = seen(torch, name, args, options, inputs, call, None, False)
    for capture in (False, True):
        mine, shown, kept = seen(tracejit, name, args, options, inputs, call, state, capture)
        assert shown == text and list(kept) == list(state)
        for a, b in zip(mine, theirs, strict=True):
            if a is None or b is None:
                assert a is b
            else:
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(ATTENTION)))
def test_attention(number):
    options, inputs, call = ATTENTION[number]
    check("MultiheadAttention", (8, 2), options, inputs, call)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case[0])
def test_transformer(case):
    check(*case)


def test_a_stack_of_layers_trains_captured_in_one_program():
    layer = tracejit.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    model = tracejit.nn.TransformerEncoder(layer, 3, tracejit.nn.LayerNorm(8))
    optimizer = tracejit.optim.SGD(model.parameters(), lr=0.05)

    @tracejit.script
    def step(x):
        loss = ((model(x) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(tracejit.rand(n, 5, 8)).item() for n in (4, 6, 4, 2, 4, 6, 4, 4)]
    assert losses[-1] < losses[0]
    assert step.report().cache_misses == 1 and not step.report().breaks


def test_a_probability_that_a_module_holds():
    """Kernels have it as a constant of their own dtype, in the mask and in the scale."""
    attention = tracejit.nn.MultiheadAttention(4, 2, dropout=0.25)
    captured = tracejit.script(attention)
    for p in (0.25, 0.5, 0.25):
        attention.dropout = p
        x, found = tracejit.rand(3, 2, 4), []
        for layer in (attention, captured):
            tracejit.manual_seed(5)
            found.append(layer(x, x, x)[1])
        assert tracejit.allclose(*found)
        assert (found[0].sum(-1) - 1).abs().max() > 0.01  # some were left out


def test_masks_and_errors():
    for library in (tracejit, torch):
        mask = library.nn.Transformer.generate_square_subsequent_mask(3)
        assert mask.tolist()[0][1:] == [-np.inf] * 2 and mask.tolist()[2] == [0.0] * 3
        attention, x = library.nn.MultiheadAttention(4, 2), library.ones(2, 1, 4)
        with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
            attention(x, x, x, is_causal=True)
        with pytest.raises(ValueError, match="must be greater than 0, got embed_dim=0"):
            library.nn.MultiheadAttention(0, 2)
        with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
            library.nn.MultiheadAttention(5, 2)
        with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
            library.nn.TransformerEncoderLayer(4, 2, activation="tanh")
