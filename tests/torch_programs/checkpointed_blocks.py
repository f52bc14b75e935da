"""Blocks whose activations are computed again in the backward: the same gradients."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.ff = nn.LayerNorm(dim), nn.Linear(dim, dim)
        self.gamma = nn.Parameter(1e-1 * torch.ones(dim))

    def forward(self, x):
        return x + self.gamma * torch.nn.functional.gelu(self.ff(self.norm(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList(Block(6) for _ in range(2))
        self.rest = nn.Sequential(*[Block(6) for _ in range(4)])

    def forward(self, x, save_memory):
        for block in self.first:
            x = checkpoint(block, x, use_reentrant=False) if save_memory else block(x)
        if save_memory:
            return checkpoint_sequential(self.rest, 2, x, use_reentrant=False)
        return self.rest(x)


def model():
    return Net()


def train(model):
    rng = np.random.default_rng(0)
    compiled = torch.compile(model)
    found = []
    for save_memory in (True, False):
        x = torch.from_numpy(np.random.default_rng(1).standard_normal((4, 6)).astype("float32"))
        x.requires_grad_(True)
        model.zero_grad()
        compiled(x, save_memory).square().mean().backward()
        found.append([x.grad, *(p.grad.clone() for p in model.parameters())])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*found))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for count in (4, 3):
        x = torch.from_numpy(rng.standard_normal((count, 6)).astype("float32"))
        loss = compiled(x, True).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "grads": found[0]}
