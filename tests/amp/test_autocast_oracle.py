"""Autocast beside PyTorch's: dtypes of results and gradients, switches, warnings, contexts."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import tracejit
from tracejit.core.ops import autocast as switching
from tracejit.nn import functional

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 4))
LABELS = np.array([0, 1, 2, 3])
# name -> (t, F, x, h): x in float32, h in bfloat16
OPS = {
    "mm": lambda t, F, x, h: x @ x, "mv": lambda t, F, x, h: t.mv(x, x[0]),
    "dot": lambda t, F, x, h: t.dot(x[0], x[1]), "inner": lambda t, F, x, h: t.inner(x, x),
    "vectors": lambda t, F, x, h: t.matmul(x[0], x[1]),
    "outer": lambda t, F, x, h: t.outer(x[0], x[1]),
    "bmm": lambda t, F, x, h: t.bmm(x[None], x[None]),
    "addmm": lambda t, F, x, h: t.addmm(x, x, x),
    "baddbmm": lambda t, F, x, h: t.baddbmm(x[None], x[None], x[None]),
    "einsum": lambda t, F, x, h: t.einsum("ij,jk->ik", x, x),
    "linear": lambda t, F, x, h: F.linear(x, x, x[0]),
    "linear_of_mixed": lambda t, F, x, h: F.linear(h, x),
    "float64": lambda t, F, x, h: x.double() @ x.double(),
    "integers": lambda t, F, x, h: (x > 0).long() @ (x > 0).long(),
    "conv1d": lambda t, F, x, h: F.conv1d(x[None], x[:2, :, None].expand(2, 4, 2)),
    "prelu": lambda t, F, x, h: F.prelu(x, x[0]),
    "attention": lambda t, F, x, h: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "in_place": lambda t, F, x, h: x.clone().addmm_(x, x),
    "softmax": lambda t, F, x, h: t.softmax(h, -1), "sum": lambda t, F, x, h: h.sum(),
    "layer_norm": lambda t, F, x, h: F.layer_norm(h, (4,)), "exp": lambda t, F, x, h: h.exp(),
    "pow": lambda t, F, x, h: h.pow(2), "prod": lambda t, F, x, h: h.prod(),
    "add": lambda t, F, x, h: h + x, "cat": lambda t, F, x, h: t.cat([h, x]),
    "stack": lambda t, F, x, h: t.stack([h, x]),
    "index_copy": lambda t, F, x, h: h.index_copy(0, t.tensor([0]), x[:1]),
    "mse_loss": lambda t, F, x, h: F.mse_loss(h, h),
    "cross_entropy": lambda t, F, x, h: F.cross_entropy(h, t.tensor(LABELS)),
    "nll_loss": lambda t, F, x, h: F.nll_loss(h, t.tensor(LABELS)),
    "binary_cross_entropy": lambda t, F, x, h: F.binary_cross_entropy(h.sigmoid(), h.sigmoid()),
    "with_logits": lambda t, F, x, h: F.binary_cross_entropy_with_logits(h, h.sigmoid()),
    "huber_loss": lambda t, F, x, h: F.huber_loss(h, h),
    "l1_loss": lambda t, F, x, h: F.l1_loss(h, h),
    "smooth_l1_loss": lambda t, F, x, h: F.smooth_l1_loss(h, h),
    "kl_div": lambda t, F, x, h: F.kl_div(h, h.exp()),
    "soft_margin": lambda t, F, x, h: F.soft_margin_loss(h, h.detach()),
    "triplet": lambda t, F, x, h: F.triplet_margin_loss(h, h, h),
    "multi_margin": lambda t, F, x, h: F.multi_margin_loss(h, t.tensor(LABELS)),
    "gaussian": lambda t, F, x, h: F.gaussian_nll_loss(h, h, h.exp()),
    "reflect": lambda t, F, x, h: F.pad(h[None], (1, 1), mode="reflect"),
    "replicate": lambda t, F, x, h: F.pad(h[None], (1, 1), mode="replicate"),
    "circular": lambda t, F, x, h: F.pad(h[None], (1, 1), mode="circular"),
    "constant": lambda t, F, x, h: F.pad(h[None], (1, 1)),
    "avg_pool3d": lambda t, F, x, h: F.avg_pool3d(h.reshape(1, 1, 4, 2, 2), 1),
    "avg_pool2d": lambda t, F, x, h: F.avg_pool2d(h.reshape(1, 1, 4, 4), 1),
    "max_pool3d": lambda t, F, x, h: F.max_pool3d(h.reshape(1, 1, 4, 2, 2), 1),
    "adaptive_avg_pool3d": lambda t, F, x, h: F.adaptive_avg_pool3d(h.reshape(1, 1, 4, 2, 2), 1),
    "grid_sample": lambda t, F, x, h: F.grid_sample(
        h.reshape(1, 1, 4, 4), t.zeros(1, 2, 2, 2), align_corners=False),
    "cosine": lambda t, F, x, h: F.cosine_similarity(h, h),
    "cosine_loss": lambda t, F, x, h: F.cosine_embedding_loss(h, h, t.ones(4)),
    "tensordot": lambda t, F, x, h: t.tensordot(x, x, 1), "trace": lambda t, F, x, h: h.trace(),
    "cdist": lambda t, F, x, h: t.cdist(h, h), "quantile": lambda t, F, x, h: t.quantile(h, 0.5),
    "addmv": lambda t, F, x, h: t.addmv(x[0], x, x[0]),
    "multilabel_margin": lambda t, F, x, h: F.multilabel_margin_loss(
        h, t.tensor([[0, 1, -1, -1]] * 4)),
    "ctc": lambda t, F, x, h: F.ctc_loss(h[:, None].log_softmax(-1), t.tensor([[1, 2]]),
                                         t.tensor([4]), t.tensor([2])),
    "fft": lambda t, F, x, h: t.fft.fft(h).abs(), "irfft": lambda t, F, x, h: t.fft.irfft(h[:3]),
    "inverse": lambda t, F, x, h: t.linalg.inv(h), "solve": lambda t, F, x, h: t.linalg.solve(h, h),
    "gelu": lambda t, F, x, h: F.gelu(h), "batch_norm": lambda t, F, x, h: F.batch_norm(
        h, t.zeros(4), t.ones(4), training=True),
}  # fmt: skip


def name_of(dtype) -> str:
    return str(dtype).split(".")[-1]


def computed(t, F, name, context=lambda t: t.autocast("cpu")):
    """The result's dtype and values, and those of the gradient, of x in float32."""
    x = t.tensor(X, dtype=t.float32, requires_grad=True)
    with context(t):
        y = OPS[name](t, F, x, x.bfloat16())
    found = [name_of(y.dtype), y.detach().double().numpy()]
    if y.requires_grad:
        y.double().sum().backward()
        found += [name_of(x.grad.dtype), x.grad.double().numpy()]
    return found


@pytest.mark.parametrize("name", OPS)
def test_dtypes_and_values(name):
    mine = computed(tracejit, functional, name)
    theirs = computed(torch, torch.nn.functional, name)
    assert mine[::2] == theirs[::2]
    tolerance = 1e-9 if mine[0] == "float64" else 0.05
    for a, b in zip(mine[1::2], theirs[1::2]):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max()))


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(layer):
    found = []
    for t in (tracejit, torch):
        with t.autocast("cpu"):
            try:
                output, _ = getattr(t.nn, layer)(4, 3)(t.zeros(5, 2, 4))
            except RuntimeError as error:  # of oneDNN, on processors without its kernels
                if t is tracejit or "primitive descriptor" not in str(error):
                    raise
                found.append("bfloat16")  # what it gives on the others
                continue
        found.append(name_of(output.dtype))
    assert found[0] == found[1]


CONTEXTS = {
    "off": lambda t: t.autocast("cpu", enabled=False),
    "float16": lambda t: t.autocast("cpu", dtype=t.float16),
    "amp": lambda t: t.amp.autocast("cpu"), "older": lambda t: t.cpu.amp.autocast(),
    "cuda": lambda t: t.autocast("cuda"), "older_cuda": lambda t: t.cuda.amp.autocast(),
    "unsupported": lambda t: t.autocast("cpu", dtype=t.float64),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts(name):
    found = []
    for t, F in ((torch, torch.nn.functional), (tracejit, functional)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            context = CONTEXTS[name](t)
        texts = [(w.category, str(w.message)) for w in told]
        dtypes = [computed(t, F, op, lambda t: CONTEXTS[name](t))[0] for op in ("mm", "mse_loss")]
        found.append((texts, dtypes, name_of(context.fast_dtype), context.device,
                      context._enabled))  # fmt: skip
    assert found[1] == found[0]


def test_contexts_nest_and_end():
    for t in (torch, tracejit):
        x, seen = t.ones(2, 2), []
        outer = t.autocast("cpu")

        @t.autocast("cpu", dtype=t.float16)
        def product(x):
            return x @ x

        with outer:
            seen += [(x @ x).dtype, t.is_autocast_enabled("cpu"), t.is_autocast_enabled()]
            with t.autocast("cpu", enabled=False):
                seen += [(x @ x).dtype, t.is_autocast_enabled("cpu")]
            seen += [product(x).dtype, (x @ x).dtype, t.get_autocast_dtype("cpu")]
        seen += [(x @ x).dtype, t.is_autocast_enabled("cpu"), t.get_autocast_dtype("cuda")]
        with pytest.raises(ZeroDivisionError), outer:
            1 / 0  # noqa: B018
        seen.append(t.is_autocast_enabled("cpu"))
        if t is torch:
            expected = list(map(str, seen))
    assert [s.replace("tracejit", "torch") for s in map(str, seen)] == expected


def test_a_context_may_be_entered_within_itself():
    context = tracejit.autocast("cpu")
    with context, context:
        pass
    assert not tracejit.is_autocast_enabled("cpu")


def test_switches_are_of_the_thread():
    seen = []
    with tracejit.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(tracejit.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert seen == [False]


def test_a_changed_weight_is_cast_anew():
    w = tracejit.ones(2, 2, requires_grad=True)
    x = tracejit.ones(2, 2)
    with tracejit.autocast("cpu"):
        before = (x @ w).sum()
        with tracejit.no_grad():
            w.mul_(3)
        assert float((x @ w).sum()) == 3 * float(before)


def test_backward_inside_computes_in_the_dtypes_of_forward():
    w = tracejit.ones(2, 2, requires_grad=True)
    with tracejit.autocast("cpu"):
        ((w * 1.0).mean() * 1.001).backward()
    np.testing.assert_allclose(w.grad.numpy(), 0.25025, rtol=1e-6)


def test_policy_of_cuda_devices(monkeypatch):
    """No GPU is needed to see what their policy says: here it is taken for the CPU's."""
    def policy(policy, tensors):
        return policy["cuda"], "cpu"

    monkeypatch.setattr(switching, "_policy", policy)
    x = tracejit.ones(2, 2)
    h = x.bfloat16()
    with tracejit.autocast("cpu"):
        assert all(y.dtype is tracejit.bfloat16 for y in (x @ x, tracejit.mv(x, x[0])))
        wide = (h.exp(), h.sum(), tracejit.softmax(h, -1), functional.layer_norm(h, (2,)),
                h.pow(2), h.reciprocal(), functional.mse_loss(h, h), h.log(), h.norm(),
                tracejit.addcmul(x, h, h))  # fmt: skip
        assert [y.dtype for y in wide] == [tracejit.float32] * len(wide)
        kept = (h + h, functional.relu(h), functional.gelu(h), h.mean(), tracejit.dot(h[0], h[0]))
        assert [y.dtype for y in kept] == [tracejit.bfloat16] * len(kept)
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            functional.binary_cross_entropy(h, h)


def test_functions_of_the_user():
    def made(t):
        class Cast(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu", cast_inputs=t.float32)
            def forward(ctx, x):
                ctx.seen = (x.dtype, t.is_autocast_enabled("cpu"))
                return x @ x

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                return grad * (2 if t.is_autocast_enabled("cpu") else 3)

        class Follow(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu")
            def forward(ctx, x):
                return x @ x

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                return (grad.float() @ grad.float()).float() + t.is_autocast_enabled("cpu")

        x, seen = t.ones(2, 2, requires_grad=True), []
        for function in (Cast, Follow):
            for on in (True, False):
                with t.autocast("cpu", enabled=on):
                    y = function.apply(x)
                (grad,) = t.autograd.grad(y.sum(), x)
                seen += [name_of(y.dtype), name_of(grad.dtype), grad.tolist()]
        return seen

    assert made(tracejit) == made(torch)


def test_errors():
    for t in (torch, tracejit):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class"):
            t.autocast(3)
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class"):
            t.amp.custom_fwd(device_type=3)
        with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
            t.autocast("nowhere")
