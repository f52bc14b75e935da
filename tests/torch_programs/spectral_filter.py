"""Layers in the frequency domain: real transforms, complex weights, and rotary positions."""

import numpy as np
import torch
import torch.nn as nn


class SpectralConv1d(nn.Module):
    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(channels, channels, modes, 2) / channels)

    def forward(self, x):
        x_ft = torch.fft.rfft(x)
        weight = torch.view_as_complex(self.weight)
        low = torch.einsum("bix,iox->box", x_ft[:, :, :self.modes], weight)
        out_ft = torch.zeros(x.shape[0], low.shape[1], x.size(-1) // 2 + 1, dtype=torch.cfloat)
        out_ft[:, :, :self.modes] = low
        return torch.fft.irfft(out_ft, n=x.size(-1))


def precompute_freqs_cis(dim, end, theta=100.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(xq, freqs_cis):
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    return torch.view_as_real(xq_ * freqs_cis[None]).flatten(2).type_as(xq)


class FNO(nn.Module):
    def __init__(self):
        super().__init__()
        self.spectral, self.local = SpectralConv1d(4, 3), nn.Conv1d(4, 4, 1)
        self.register_buffer("freqs", precompute_freqs_cis(4, 12), persistent=False)

    def forward(self, x):
        y = torch.relu(self.spectral(x) + self.local(x))
        return apply_rotary_emb(y.transpose(1, 2).contiguous(), self.freqs)


def model():
    return FNO()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    for count in (5, 5, 2):
        x = torch.from_numpy(rng.standard_normal((count, 4, 12)).astype("float32"))
        losses.append(step(x, x.cumsum(-1).transpose(1, 2) / 4).item())
    return {"losses": losses, "freqs": torch.view_as_real(model.freqs)}
