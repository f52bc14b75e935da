"""Learning to learn: gradients through the steps of an inner training run."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(1, 12), nn.Linear(12, 1)

    def forward(self, x, params=None):
        w1, b1, w2, b2 = self.parameters() if params is None else params
        return F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)


def model():
    return Net()


def train(model):
    meta_optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    rng = np.random.default_rng(0)

    @torch.compile
    def step(support_x, support_y, query_x, query_y):
        meta_optimizer.zero_grad()
        outer_loss = 0.0
        for task in range(2):
            params = list(model.parameters())
            for _ in range(2):
                inner = F.mse_loss(model(support_x[task], params), support_y[task])
                grads = torch.autograd.grad(inner, params, create_graph=True)
                params = [p - 0.05 * g for p, g in zip(params, grads)]
            outer_loss = outer_loss + F.mse_loss(model(query_x[task], params), query_y[task])
        outer_loss.backward()
        meta_optimizer.step()
        return outer_loss.detach()

    losses = []
    for _ in range(4):
        amplitude = torch.from_numpy(rng.uniform(0.5, 2, (2, 1, 1)).astype("float32"))
        x = torch.from_numpy(rng.uniform(-2, 2, (2, 2, 6, 1)).astype("float32"))
        y = amplitude * torch.sin(x)
        losses.append(step(x[0], y[0], x[1], y[1]).item())
    return losses
