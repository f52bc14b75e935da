"""Denoising diffusion: noise by a schedule, a network that tells it, and the way back."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def linear_beta_schedule(timesteps):
    scale = 100 / timesteps
    return torch.linspace(scale * 0.0001, scale * 0.02, timesteps, dtype=torch.float64)


def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Diffusion(nn.Module):
    def __init__(self, timesteps=10):
        super().__init__()
        self.num_timesteps = timesteps
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(8), nn.Linear(8, 16), nn.GELU())
        self.net = nn.Sequential(nn.Linear(2 + 16, 24), nn.SiLU(), nn.Linear(24, 2))
        betas = linear_beta_schedule(timesteps)
        alphas = 1.0 - betas
        cumprod = torch.cumprod(alphas, dim=0)
        previous = F.pad(cumprod[:-1], (1, 0), value=1.0)

        def register(name, value):
            self.register_buffer(name, value.to(torch.float32))

        register("betas", betas)
        register("sqrt_alphas_cumprod", torch.sqrt(cumprod))
        register("sqrt_one_minus", torch.sqrt(1.0 - cumprod))
        register("sqrt_recip_alphas", torch.rsqrt(alphas))
        register("posterior_variance", betas * (1.0 - previous) / (1.0 - cumprod))

    def predict(self, x, t):
        return self.net(torch.cat([x, self.time_mlp(t)], dim=-1))

    def q_sample(self, x_start, t, noise):
        return (extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
                + extract(self.sqrt_one_minus, t, x_start.shape) * noise)

    def forward(self, x, t, noise):
        return F.mse_loss(self.predict(self.q_sample(x, t, noise), t), noise)

    @torch.no_grad()
    def p_sample(self, x, i, noise):
        t = torch.full((x.shape[0],), i, dtype=torch.long)
        mean = extract(self.sqrt_recip_alphas, t, x.shape) * (
            x - extract(self.betas, t, x.shape) * self.predict(x, t)
            / extract(self.sqrt_one_minus, t, x.shape))
        variance = extract(self.posterior_variance, t, x.shape)
        return mean if i == 0 else mean + variance.sqrt() * noise


def model():
    return Diffusion()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    compiled = torch.compile(model)
    losses = []

    def draw(*shape):
        return torch.from_numpy(rng.standard_normal(shape).astype("float32"))

    for count in (16, 16, 10):
        t = torch.from_numpy(rng.integers(0, 10, count))
        loss = compiled(draw(count, 2) * 0.2 + 1, t, draw(count, 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    x = draw(5, 2)
    for i in reversed(range(model.num_timesteps)):
        x = model.p_sample(x, i, draw(5, 2))
    return {"losses": losses, "samples": x}
