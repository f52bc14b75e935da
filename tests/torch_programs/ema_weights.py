"""An exponential moving average of weights and buffers, swapped in for evaluation."""

import copy

import numpy as np
import torch
from torch import nn


class EMA(nn.Module):
    def __init__(self, model, decay):
        super().__init__()
        self.module = copy.deepcopy(model)
        self.module.eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if ema_v.dtype.is_floating_point:
                ema_v.mul_(self.decay).add_(model_v, alpha=1 - self.decay)
            else:
                ema_v.copy_(model_v)

    def forward(self, x):
        return self.module(x)


def model():
    return nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8, momentum=0.3), nn.ELU(),
                         nn.Linear(8, 1))


def train(model):
    rng = np.random.default_rng(0)
    ema = EMA(model, decay=0.8)
    assert all(a is not b for a, b in zip(ema.parameters(), model.parameters()))
    optimizer = torch.optim.Adamax(model.parameters(), lr=0.02)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(model(x), y)
        loss.backward()
        optimizer.step()
        ema.update(model)
        return loss.detach()

    losses = []
    for count in (10, 10, 4, 10):
        x = torch.from_numpy(rng.standard_normal((count, 5)).astype("float32"))
        losses.append(step(x, x.mean(1, keepdim=True)).item())
    model.eval()
    backup = {k: v.clone() for k, v in model.state_dict().items()}
    plain = model(x)
    model.load_state_dict(ema.module.state_dict())
    swapped = model(x)
    assert torch.equal(swapped, ema(x))
    model.load_state_dict(backup)
    assert torch.equal(plain, model(x))
    return {"losses": losses, "plain": plain, "swapped": swapped, "names": [*ema.state_dict()]}
