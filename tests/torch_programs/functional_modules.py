"""Modules called with parameters from elsewhere: an ensemble, fast weights, a hypernetwork."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4, bias=False)
        self.same = nn.Linear(4, 4, bias=False)
        self.same.weight = self.inner.weight
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x, scale=1.0):
        return self.same(torch.tanh(self.norm(self.inner(x)))) * scale


def model():
    return nn.ModuleDict({"net": Tied(), "hyper": nn.Linear(2, 16)})


def message(function, *args, **kwargs):
    try:
        return list(function(*args, **kwargs).shape)
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def train(model):
    rng, net, hyper = np.random.default_rng(0), model["net"], model["hyper"]
    optimizer = torch.optim.Adam(hyper.parameters(), lr=0.01)

    @torch.compile
    def step(x, context):
        optimizer.zero_grad()
        weights = {"inner.weight": hyper(context).view(4, 4)}
        out = functional_call(net, weights, (x,), {"scale": 0.5})
        loss = (out - x.flip(1)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    for count in (6, 6, 3):
        x = torch.from_numpy(rng.standard_normal((count, 4)).astype("float32"))
        losses.append(step(x, torch.ones(2)).item())
    params, buffers = dict(net.named_parameters()), dict(net.named_buffers())
    fast = {name: p - 0.1 * g for (name, p), g in zip(params.items(), torch.autograd.grad(
        functional_call(net, (params, buffers), x).square().sum(), list(params.values())))}
    net.eval()
    outer = {"inner.weight": x[:1].T @ x[:1]}
    outs = [functional_call(net, given, x) for given in (params, fast, outer)]
    texts = [message(functional_call, net, given, x, **options) for given, options in (
        ({"nope": x}, {}), ({"nope": x}, {"strict": True}), (3, {}), ([3], {}),
        (({"inner.weight": x}, {"inner.weight": x}), {}), (fast, {"strict": True}),
        ({"inner.weight": torch.ones(4, 4), "same.weight": torch.zeros(4, 4)}, {}),
        ({"inner.weight": torch.ones(4, 4)}, {"tie_weights": False}))]
    return {"losses": losses, "outs": outs, "texts": texts,
            "left": net.inner.weight is params["inner.weight"]}
