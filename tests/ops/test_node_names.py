"""`grad_fn` has PyTorch's name wherever one node of ours stands for one of PyTorch's."""

import warnings

import numpy as np
import pytest

import tracejit

SAME = """
x.mean()  x.sum()  x.var()  x.std()  x.var(0)  x.std(0)  m.var_mean(x)[0]  m.std_mean(x)[1]
x.norm()  x.norm(1)  x.norm(3., 0)  x.max()  x.min()  x.max(1)[0]  x.amax(1)  x.prod()
x.cumsum(1)  x.logsumexp(1)  F.softmax(x, 1)  F.log_softmax(x, 1)
F.mse_loss(x, y)  F.mse_loss(x, y, reduction='sum')  F.mse_loss(x, y, reduction='none')
F.l1_loss(x, y)  F.smooth_l1_loss(x, y)  F.huber_loss(x, y)  F.kl_div(x, y)
F.binary_cross_entropy(x, y)  F.binary_cross_entropy_with_logits(x, y)
F.cross_entropy(x, t)  F.nll_loss(x, t)  F.layer_norm(x, (4,), b, b)
F.batch_norm(x, None, None, b, b, True)  F.batch_norm(x, c, c)  F.group_norm(x, 2)
F.gelu(x)  F.gelu(x, approximate='tanh')  F.silu(x)  F.relu(x)  F.elu(x)  F.leaky_relu(x)
F.softplus(x)  F.hardtanh(x)  F.logsigmoid(x)  F.linear(x, w, b)  F.embedding(t, x)
F.pad(x, (1,1))  x @ w  m.mm(x, w)  m.mv(w, b)  m.dot(b, b)  m.addmm(x, x, w)
m.baddbmm(x[None], x[None], w[None])  x.masked_fill(x > 0, 1.)  x.nan_to_num()
m.div(x, y, rounding_mode='floor')  m.div(x, y, rounding_mode='trunc')  x.sort()[0]  x.topk(2)[0]
m.atan2(x, y)  m.hypot(x, y)  x + y  x - y  x * y  x / y  -x  x ** 2  x.exp()  x.log1p()
x.sqrt()  x.tanh()  x.sigmoid()  x.abs()  x.sign()  x.floor()  x.clamp(0, 1)  m.where(x > 0, x, y)
x[0]  x[1:]  x[t]  x.view(12)  x.permute(1, 0)  x.unsqueeze(0)  x.expand(2, 3, 4)  x.flip(0)
F.max_pool2d(x[None, None], 2)  F.max_pool3d(x[None, None, None], 1)
F.avg_pool2d(x[None, None], 2)  F.avg_pool3d(x[None, None, None], 1)
F.adaptive_avg_pool2d(x[None, None], 2)  F.adaptive_max_pool2d(x[None, None], 2)
F.interpolate(x[None], size=3)  F.interpolate(x[None], size=3, mode='linear')
F.interpolate(x[None, None], size=3, mode='bilinear', antialias=True)
F.interpolate(x[None, None], size=3, mode='bicubic')
F.interpolate(x[None, None], size=3, mode='nearest-exact')
F.interpolate(x[None, None, None], size=3, mode='trilinear')
x.tril()  x.clone()  m.cat([x, y])  x.gather(0, t[None])  x.scatter_add(0, t[None], y)
"""
CALLS = [call for line in SAME.splitlines() for call in line.split("  ") if call]


def name_in(library, functional, tensor, call):
    rng = np.random.default_rng(0)
    x, y, w, b = (tensor(rng.uniform(0.2, 0.9, shape).astype("f4")).requires_grad_()
                  for shape in ((3, 4), (3, 4), (4, 4), (4,)))
    names = {"m": library, "F": functional, "x": x, "y": y, "w": w, "b": b,
             "c": b.detach(),
             "t": tensor(np.array([1, 0, 2]))}
    return eval(call, names).grad_fn.name()


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_names_are_pytorchs(call):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = name_in(torch, torch.nn.functional, torch.from_numpy, call)
    assert name_in(tracejit, tracejit.nn.functional, tracejit.from_numpy, call) == want


def test_the_sink_of_a_leaf_has_pytorchs_long_name():
    x = tracejit.ones(2, requires_grad=True)
    [(sink, _)] = x.exp().grad_fn.next_functions
    assert (sink.name(), type(sink).__name__) == (
        "torch::autograd::AccumulateGrad", "AccumulateGrad")
