"""Layers that find their input sizes in the first batch, initialised by `apply`."""

import numpy as np
import torch
from torch import nn


def init_weights(m):
    if isinstance(m, (nn.Linear, nn.Conv2d)):
        nn.init.xavier_uniform_(m.weight)
        if m.bias is not None:
            nn.init.constant_(m.bias, 0.01)


def model():
    net = nn.Sequential(
        nn.LazyConv2d(4, kernel_size=3, padding=1, bias=False), nn.LazyBatchNorm2d(), nn.ReLU(),
        nn.AvgPool2d(kernel_size=2), nn.Flatten(), nn.LazyLinear(8), nn.Sigmoid(),
        nn.LazyLinear(3))
    assert "LazyConv2d" in repr(net)
    net(torch.rand(1, 2, 8, 8))
    net.apply(init_weights)
    net[1].reset_running_stats()
    return net


def train(model):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    loss_fn = nn.CrossEntropyLoss()

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    rng = np.random.default_rng(0)
    losses = []
    for count in (8, 8, 5, 7):
        x = torch.from_numpy(rng.standard_normal((count, 2, 8, 8)).astype("float32"))
        losses.append(step(x, torch.arange(count) % 3).item())
    shapes = {layer.__class__.__name__: list(layer(torch.zeros(2, 2, 8, 8)).shape)
              for layer in model[:1]}
    return {"losses": losses, "shapes": shapes, "names": [n for n, _ in model.named_parameters()]}
