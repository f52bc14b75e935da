"""Two views of each picture are to be alike, all others not; and Barlow's decorrelation."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def nt_xent(z1, z2, temperature=0.5):
    n = z1.shape[0]
    z = F.normalize(torch.cat([z1, z2], dim=0), dim=1)
    similarity = torch.mm(z, z.T) / temperature
    mask = torch.eye(2 * n, dtype=torch.bool, device=z.device)
    similarity.masked_fill_(mask, float("-inf"))
    labels = (torch.arange(2 * n) + n) % (2 * n)
    return F.cross_entropy(similarity, labels)


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


def barlow(z1, z2, lambd=5e-3):
    z1, z2 = ((z - z.mean(0)) / z.std(0) for z in (z1, z2))
    c = z1.T @ z2 / z1.size(0)
    on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
    return on_diag + lambd * off_diagonal(c).pow(2).sum()


def model():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, dampening=0.1)
    compiled = torch.compile(lambda a, b: (nt_xent(model(a), model(b)), barlow(model(a), model(b))))
    history = []
    for count in (7, 7, 4):
        x = torch.from_numpy(rng.standard_normal((count, 8)).astype("float32"))
        noise = torch.from_numpy(rng.standard_normal((count, 8)).astype("float32")) * 0.1
        contrast, redundancy = compiled(x, x + noise)
        optimizer.zero_grad()
        (contrast + 0.1 * redundancy).backward()
        optimizer.step()
        history.append((contrast.item(), redundancy.item()))
    return history
