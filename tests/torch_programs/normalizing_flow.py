"""Affine coupling layers with exact likelihoods, and their inverse."""

import math

import numpy as np
import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.s = nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(), nn.Linear(12, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(), nn.Linear(12, 2))
        self.register_buffer("mask", torch.tensor(mask))

    def forward(self, x):
        kept = x * self.mask
        s, t = self.s(kept) * (1 - self.mask), self.t(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * torch.exp(s) + t), s.sum(dim=1)

    def inverse(self, y):
        kept = y * self.mask
        s, t = self.s(kept) * (1 - self.mask), self.t(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (y - t) * torch.exp(-s)


class RealNVP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling([float(i % 2), float(1 - i % 2)]) for i in range(4))

    def log_prob(self, x):
        total = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, log_det = layer(x)
            total += log_det
        return total - 0.5 * (x ** 2).sum(1) - math.log(2 * math.pi)

    def inverse(self, z):
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def model():
    return RealNVP()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    log_prob = torch.compile(model.log_prob)
    losses = []
    for count in (32, 32, 20):
        a = torch.from_numpy(rng.standard_normal((count, 2)).astype("float32"))
        x = torch.stack([a[:, 0], 0.3 * a[:, 1] + a[:, 0] ** 2], dim=-1)
        loss = -log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        z = x
        for layer in model.layers:
            z, _ = layer(z)
        assert torch.allclose(model.inverse(z), x, atol=1e-5)
    return {"losses": losses, "z": z}
