"""Clusters, power iterations and optimal transport: loops without gradients that end by a value."""

import numpy as np
import torch


def model():
    return torch.nn.Module()


@torch.compile
def lloyd(x, centers):
    moved, steps = torch.tensor(float("inf")), 0
    while moved > 1e-4:
        labels = torch.cdist(x, centers).argmin(dim=1)
        onehot = torch.nn.functional.one_hot(labels, 3).to(x.dtype)
        new = onehot.T @ x / onehot.sum(0).clamp(min=1)[:, None]
        moved = (new - centers).norm()
        centers = new
        steps += 1
    return centers, labels, steps


@torch.compile
def power_iteration(matrix, vector):
    value = matrix.new_zeros(())
    for _ in range(50):
        vector = matrix @ vector
        vector = vector / vector.norm()
        new = vector @ matrix @ vector
        if torch.abs(new - value) < 1e-6:
            break
        value = new
    return new, vector


@torch.compile
def sinkhorn(cost, reg=0.2):
    K = torch.exp(-cost / reg)
    u = torch.ones(cost.shape[0]) / cost.shape[0]
    error = torch.tensor(1.0)
    while error > 1e-5:
        v = 1.0 / cost.shape[1] / (K.T @ u)
        before, u = u, 1.0 / cost.shape[0] / (K @ v)
        error = (u - before).abs().sum()
    return u[:, None] * K * v[None, :]


@torch.no_grad()
def train(model):
    rng = np.random.default_rng(0)
    found = []
    for count in (30, 21):
        means = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
        noise = torch.from_numpy(rng.standard_normal((count, 2)).astype("float32"))
        x = means[torch.arange(count) % 3] + 0.5 * noise
        centers, labels, steps = lloyd(x, x[[0, 1, 5]])
        covariance = (x - x.mean(0)).T @ (x - x.mean(0)) / (count - 1)
        value, vector = power_iteration(covariance, torch.ones(2))
        plan = sinkhorn(torch.cdist(x, means) ** 2 / 16)
        found.append((centers, labels.bincount(minlength=3), int(steps), value, vector.abs(),
                      plan.sum(0), plan.max()))
    return found
