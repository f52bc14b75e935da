"""Small batches whose gradients add up to a large one's, clipped by norm and by value."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, parameters_to_vector


def model():
    return nn.Sequential(nn.Linear(7, 10), nn.SiLU(), nn.Linear(10, 3))


def train(model):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((48, 7)).astype("float32"))
    y = torch.from_numpy(rng.integers(0, 3, 48))
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
    accumulation_steps = 4
    loss_fn = nn.CrossEntropyLoss(reduction="sum")

    @torch.compile
    def forward_backward(x, y):
        loss = loss_fn(model(x), y) / len(y) / accumulation_steps
        loss.backward()
        return loss.detach()

    total_norms, running, vectors = [], 0.0, []
    optimizer.zero_grad()
    for epoch in range(2):
        for i, (xs, ys) in enumerate(zip(x.split(6), y.split(6))):
            running += forward_backward(xs, ys)
            if (i + 1) % accumulation_steps == 0:
                total_norms.append(clip_grad_norm_(model.parameters(), max_norm=0.2).item())
                clip_grad_value_(model.parameters(), clip_value=0.05)
                vectors.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
    whole = loss_fn(model(x), y) / len(y)
    grads = torch.autograd.grad(whole, list(model.parameters()))
    parts = sum(torch.autograd.grad(loss_fn(model(a), b) / len(y), model[0].weight)[0]
                for a, b in zip(x.chunk(5), y.chunk(5)))
    assert torch.allclose(parts, grads[0], atol=1e-6)
    return {"norms": total_norms, "running": running.item(), "vectors": vectors,
            "parameters": parameters_to_vector(model.parameters())}
