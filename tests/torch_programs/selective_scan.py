"""A selective state space: a scan over time as a loop, named tuples, marks on parameters."""

import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


def data(*shape, k=0):
    return torch.sin(torch.arange(math.prod(shape)) * 2.3 + k).reshape(shape)


class Cache(NamedTuple):
    conv: torch.Tensor
    ssm: torch.Tensor


def segsum(x):
    T = x.size(-1)
    x = x[..., None].repeat(*(1,) * x.dim(), T) if False else x.unsqueeze(-1).expand(*x.shape, T)
    mask = torch.tril(torch.ones(T, T, device=x.device, dtype=torch.bool), diagonal=-1)
    x = x.masked_fill(~mask, 0)
    x_segsum = torch.cumsum(x, dim=-2)
    mask = torch.tril(torch.ones(T, T, device=x.device, dtype=torch.bool), diagonal=0)
    return x_segsum.masked_fill(~mask, -torch.inf)


def selective_scan(u, delta, A, B, C, D):
    (b, length, d_in), n = u.shape, A.shape[1]
    deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
    deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
    x = torch.zeros((b, d_in, n), device=deltaA.device)
    ys = []
    for i in range(length):
        x = deltaA[:, i] * x + deltaB_u[:, i]
        y = torch.einsum("bdn,bn->bd", x, C[:, i, :])
        ys.append(y)
    return torch.stack(ys, dim=1) + u * D, x


class MambaBlock(nn.Module):
    def __init__(self, d_model=6, n=4, dt_rank=2, d_conv=3):
        super().__init__()
        d = self.d_inner = 2 * d_model
        self.n, self.dt_rank = n, dt_rank
        self.in_proj = nn.Linear(d_model, d * 2, bias=False)
        self.conv1d = nn.Conv1d(d, d, bias=True, kernel_size=d_conv, groups=d, padding=d_conv - 1)
        self.x_proj = nn.Linear(d, dt_rank + n * 2, bias=False)
        self.dt_proj = nn.Linear(dt_rank, d, bias=True)
        A = torch.arange(1, n + 1, dtype=torch.float32).unsqueeze(0).repeat(d, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.A_log._no_weight_decay = True
        self.D = nn.Parameter(torch.ones(d))
        self.out_proj = nn.Linear(d, d_model, bias=False)

    def forward(self, x):
        (b, length, d) = x.shape
        x, res = self.in_proj(x).split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = self.conv1d(x.transpose(1, 2))[:, :, :length].transpose(1, 2)
        x = F.silu(x)
        A = -torch.exp(self.A_log.float())
        delta, B, C = self.x_proj(x).split(split_size=[self.dt_rank, self.n, self.n], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        y, last = selective_scan(x, delta, A, B, C, self.D.float())
        return self.out_proj(y * F.silu(res)), Cache(res, last)


def model():
    return MambaBlock()


def train(model):
    marked = [n for n, p in model.named_parameters() if getattr(p, "_no_weight_decay", False)]
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, centered=True)

    @torch.compile
    def step(x):
        y, cache = model(x)
        loss = (y - x.roll(1, 1)).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss.detach(), cache

    losses = []
    for i in range(3):
        loss, cache = step(data(2, 5, 6, k=i))
        losses.append(loss.item())
    shown = f"{type(cache).__name__} {cache._fields} {tuple(cache.ssm.shape)}"
    decay = torch.exp(segsum(data(2, 4).abs().neg()))
    return {
        "marked": marked,
        "losses": losses,
        "cache": cache._asdict(),
        "shown": shown,
        "decay": decay,
    }
