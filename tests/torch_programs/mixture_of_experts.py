"""Tokens go to the two experts that a gate likes best; the load is to be balanced."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class MoE(nn.Module):
    def __init__(self, dim, experts=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList([
            nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
            for _ in range(experts)])

    def forward(self, x):
        probs = self.gate(x).softmax(dim=-1)
        weights, chosen = torch.topk(probs, self.k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        full = torch.zeros_like(probs).scatter(-1, chosen, weights)
        out = torch.stack([expert(x) for expert in self.experts], dim=-2)
        load = F.one_hot(chosen, probs.size(-1)).sum(dim=1).float().mean(dim=0)
        balance = (load * probs.mean(dim=0)).sum() * len(self.experts)
        return torch.einsum("te,ted->td", full, out), balance


def sparse_forward(moe, x):
    """As `forward`, computing only what is asked of each expert."""
    weights, chosen = moe.gate(x).softmax(-1).topk(moe.k)
    weights /= weights.sum(-1, keepdim=True)
    results = torch.zeros_like(x)
    for i, expert in enumerate(moe.experts):
        token, nth = torch.where(chosen == i)
        results[token] += weights[token, nth, None] * expert(x[token])
    return results


def model():
    return MoE(6)


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.RAdam(model.parameters(), lr=0.01)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        out, balance = model(x)
        loss = F.l1_loss(out, x.flip(-1)) + 0.01 * balance
        loss.backward()
        optimizer.step()
        return loss.detach(), balance.detach()

    history = []
    for tokens in (20, 20, 11):
        x = torch.from_numpy(rng.standard_normal((tokens, 6)).astype("float32"))
        history.append([value.item() for value in step(x)])
    with torch.no_grad():
        sparse, dense = sparse_forward(model, x), model(x)[0]
    assert torch.allclose(sparse, dense, atol=1e-6)
    return {"history": history, "out": sparse}
