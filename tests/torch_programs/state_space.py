"""A diagonal state space as a convolution by FFT, with options of optimizers on parameters."""

import math

import torch
import torch.nn as nn


def data(*shape, k=0):
    return torch.sin(torch.arange(math.prod(shape)) * 2.3 + k).reshape(shape)


class DropoutNd(nn.Module):
    def __init__(self, p: float = 0.5, tie=True):
        super().__init__()
        self.p = p
        self.binomial = torch.distributions.binomial.Binomial(probs=1 - self.p)

    def forward(self, X):
        return X


class S4DKernel(nn.Module):
    def __init__(self, d, N=8, dt_min=0.001, dt_max=0.1, lr=None):
        super().__init__()
        log_dt = torch.linspace(0, 1, d) * (math.log(dt_max) - math.log(dt_min)) + math.log(dt_min)
        C = torch.complex(data(d, N // 2), data(d, N // 2, k=1))
        self.C = nn.Parameter(torch.view_as_real(C))
        self.register("log_dt", log_dt, lr)
        self.register("log_A_real", torch.log(0.5 * torch.ones(d, N // 2)), lr)
        self.register("A_imag", math.pi * torch.arange(N // 2).repeat(d, 1), lr)

    def forward(self, L):
        dt = torch.exp(self.log_dt)
        C = torch.view_as_complex(self.C)
        A = -torch.exp(self.log_A_real) + 1j * self.A_imag
        dtA = A * dt.unsqueeze(-1)
        K = dtA.unsqueeze(-1) * torch.arange(L, device=A.device)
        C = C * (torch.exp(dtA) - 1.0) / A
        return 2 * torch.einsum("hn, hnl -> hl", C, torch.exp(K)).real

    def register(self, name, t, lr=None):
        if lr == 0.0:
            self.register_buffer(name, t)
        else:
            self.register_parameter(name, nn.Parameter(t))
            optim = {"weight_decay": 0.0}
            if lr is not None:
                optim["lr"] = lr
            getattr(self, name)._optim = optim


class S4D(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.D = nn.Parameter(torch.linspace(-1, 1, d))
        self.kernel = S4DKernel(d, lr=1e-3)
        self.drop = DropoutNd(0.1)
        self.out = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(dim=-2))
        self.act = nn.GELU()

    def forward(self, u):
        L = u.size(-1)
        k = self.kernel(L=L)
        kf = torch.fft.rfft(k, n=2 * L)
        uf = torch.fft.rfft(u, n=2 * L)
        y = torch.fft.irfft(uf * kf, n=2 * L)[..., :L]
        y = y + u * self.D.unsqueeze(-1)
        return self.out(self.drop(self.act(y)))


def setup(model, lr, wd):
    allp = list(model.parameters())
    opt = torch.optim.AdamW([p for p in allp if not hasattr(p, "_optim")], lr=lr, weight_decay=wd)
    hps = [p._optim for p in allp if hasattr(p, "_optim")]
    hps = [dict(s) for s in sorted(dict.fromkeys(frozenset(hp.items()) for hp in hps))]
    for hp in hps:
        opt.add_param_group({"params": [p for p in allp if getattr(p, "_optim", None) == hp], **hp})
    for i, g in enumerate(opt.param_groups):
        print(
            " | ".join(
                [f"Optimizer group {i}", f"{len(g['params'])} tensors"]
                + [f"{k} {v}" for k, v in g.items() if k in ("lr", "weight_decay")]
            )
        )
    return opt


def model():
    return S4D(4)


def train(model):
    opt = setup(model, 0.01, 0.01)
    groups = [(len(g["params"]), g["lr"], g["weight_decay"]) for g in opt.param_groups]

    @torch.compile
    def step(u):
        loss = (model(u) - u.flip(-1)).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    losses = [step(data(2, 4, 7, k=i)).item() for i in range(3)]
    return {"groups": groups, "losses": losses, "grad": model.kernel.C.grad}
