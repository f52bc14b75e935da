"""Soft actor-critic: squashed Gaussians, twin critics, a learnt temperature, averaged targets."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import AffineTransform, TanhTransform


def data(*shape, k=0):
    return torch.sin(torch.arange(math.prod(shape)) * 2.3 + k).reshape(shape)


LOG_STD_MAX, LOG_STD_MIN = 2, -20


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        self.mu = nn.Linear(8, 2)
        self.ls = nn.Linear(8, 2)
        self.register_buffer("action_scale", torch.tensor([2.0, 1.0]))
        self.register_buffer("action_bias", torch.tensor((0.5, 0.0)))

    def forward(self, o, eps):
        h = self.net(o)
        mu = self.mu(h)
        std = torch.exp(torch.clamp(self.ls(h), LOG_STD_MIN, LOG_STD_MAX))
        pi = Normal(mu, std)
        u = mu + std * eps
        logp = pi.log_prob(u).sum(axis=-1)
        logp -= (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(axis=1)
        td = TransformedDistribution(
            Independent(Normal(mu, std), 1),
            [
                TanhTransform(cache_size=1),
                AffineTransform(self.action_bias, self.action_scale, event_dim=1),
            ],
        )
        a = torch.tanh(u) * self.action_scale + self.action_bias
        return a, logp, td.log_prob(a.clamp(-1.49, 2.49).detach() * 0.9)


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, o, a):
        return torch.squeeze(self.q(torch.cat([o, a], dim=-1)), -1)


def model():
    return ActorCritic()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.q1, self.q2 = Actor(), Q(), Q()


def train(model):
    ac, targ = model, copy.deepcopy(model)
    for p in targ.parameters():
        p.requires_grad = False
    q_params = itertools.chain(ac.q1.parameters(), ac.q2.parameters())
    log_alpha = torch.zeros(1, requires_grad=True)
    target_entropy = -torch.prod(torch.Tensor((2,))).item()
    qo = torch.optim.Adam(q_params, lr=1e-3)
    po = torch.optim.Adam(list(ac.pi.parameters()), lr=1e-3)
    ao = torch.optim.Adam([log_alpha], lr=1e-2)

    @torch.compile
    def update(o, a, r, o2, d, eps):
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            a2, lp2, _ = ac.pi(o2, eps)
            backup = r + 0.99 * (1 - d) * (
                torch.minimum(targ.q1(o2, a2), targ.q2(o2, a2)) - alpha * lp2
            )
        q1, q2 = ac.q1(o, a), ac.q2(o, a)
        lq = ((q1 - backup) ** 2).mean() + F.mse_loss(q2, backup)
        qo.zero_grad()
        lq.backward()
        qo.step()
        pi, lp, td = ac.pi(o, eps)
        lpi = (alpha * lp - torch.min(ac.q1(o, pi), ac.q2(o, pi))).mean()
        po.zero_grad()
        lpi.backward()
        po.step()
        la = (-log_alpha.exp() * (lp + target_entropy).detach()).mean()
        ao.zero_grad()
        la.backward()
        ao.step()
        with torch.no_grad():
            for p, pt in zip(ac.parameters(), targ.parameters()):
                pt.data.mul_(0.995)
                pt.data.add_((1 - 0.995) * p.data)
        return lq.item(), lpi.item(), la.item(), td

    history = []
    for i in range(3):
        *ls, td = update(
            data(4, 3, k=i),
            data(4, 2, k=i),
            data(4, k=i),
            data(4, 3, k=i + 1),
            (torch.arange(4) % 4 == 3).float(),
            data(4, 2, k=7),
        )
        history.append(ls)
    return {"history": history, "td": td, "targ": dict(targ.state_dict()), "log_alpha": log_alpha}
