"""A Gaussian process: its marginal likelihood by a Cholesky factor, maximised by L-BFGS."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn.functional import softplus


class GP(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in (
            "lengthscale", "outputscale", "noise")})

    def kernel(self, a, b):
        distance = (a[:, None] - b[None, :]) / softplus(self.raw["lengthscale"])
        return softplus(self.raw["outputscale"]) * torch.exp(-0.5 * distance ** 2)

    def factor(self, x):
        noise = softplus(self.raw["noise"]) * 0.1 + 1e-4
        return torch.linalg.cholesky(self.kernel(x, x) + noise * torch.eye(len(x)))

    def negative_log_likelihood(self, x, y):
        chol = self.factor(x)
        alpha = torch.cholesky_solve(y[:, None], chol)
        return (0.5 * y @ alpha[:, 0] + chol.diagonal().log().sum()
                + 0.5 * len(x) * math.log(2 * math.pi))

    @torch.no_grad()
    def predict(self, x, y, new):
        chol = self.factor(x)
        across = self.kernel(x, new)
        solved = torch.linalg.solve_triangular(chol, across, upper=False)
        mean = across.T @ torch.cholesky_solve(y[:, None], chol)[:, 0]
        return mean, self.kernel(new, new).diagonal() - solved.square().sum(0)


def model():
    return GP()


def train(model):
    rng = np.random.default_rng(0)
    x = torch.linspace(0, 4, 15)
    y = torch.sin(2 * x) + 0.1 * torch.from_numpy(rng.standard_normal(15).astype("float32"))
    compiled = torch.compile(model.negative_log_likelihood)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = compiled(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    mean, variance = model.predict(x, y, torch.tensor([0.1, 2.05, 5.0]))
    return {"losses": losses, "mean": mean, "variance": variance}
