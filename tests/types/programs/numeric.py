"""Numbers: linear algebra, transforms, special functions, gradients, a Function of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit
from tracejit import Tensor
from tracejit.autograd import Function, grad, gradcheck


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]
        return 3 * x * x * grad


def whiten(x: Tensor) -> tuple[Tensor, Tensor]:
    centred = x - x.mean(dim=0, keepdim=True)
    covariance = centred.T @ centred / (len(x) - 1)
    values, vectors = tracejit.linalg.eigh(covariance)
    scale = vectors @ tracejit.diag(values.clamp(min=1e-6).rsqrt()) @ vectors.mT
    return centred @ scale, values


def low_pass(signal: Tensor, keep: int) -> Tensor:
    spectrum = tracejit.fft.rfft(signal)
    frequency = tracejit.fft.rfftfreq(signal.shape[-1], d=0.01)
    spectrum[..., frequency > frequency[keep]] = 0
    return tracejit.fft.irfft(spectrum, n=signal.numel())


@tracejit.script(fullgraph=True, numerics="eager")
def loss(theta: Tensor, x: Tensor, y: Tensor, scale: float = 1.0) -> Tensor:
    residual = y - x @ theta
    return scale * (residual.square().sum() + 0.1 * tracejit.linalg.vector_norm(theta) ** 2)


def newton(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    theta = theta.detach().requires_grad_(True)
    (first,) = grad(loss(theta, x, y, scale=2.0), theta, create_graph=True)
    rows = [grad(g, theta, retain_graph=True)[0] for g in first.unbind()]
    return theta.detach() - tracejit.linalg.solve(tracejit.stack(rows), first.detach())


def main() -> None:
    tracejit.set_default_dtype(tracejit.float64)
    generator = tracejit.Generator().manual_seed(3)
    x = tracejit.randn(50, 3, generator=generator)
    y = x @ tracejit.tensor([1.0, -2.0, 0.5]) + 0.1 * tracejit.randn(50, generator=generator)
    white, spectrum = whiten(x)
    print(white.std(dim=0), spectrum.max().item(), float(spectrum.min()))
    theta = tracejit.zeros(3)
    for _ in range(3):
        theta = newton(theta, x, y)
    q, r = tracejit.linalg.qr(x)
    u, s, vh = tracejit.linalg.svd(x, full_matrices=False)
    sign, logdet = tracejit.linalg.slogdet(x.T @ x)
    print(theta.numpy().round(3), (q @ r - x).abs().max(), (u * s @ vh).shape, sign * logdet)
    time = tracejit.linspace(0, 1, steps=100)
    wave = tracejit.sin(2 * tracejit.pi * 3 * time) + 0.1 * tracejit.cos(60 * time)
    print(low_pass(wave, 5).norm(), wave.var(unbiased=False), time.device, time.ndim)
    t = tracejit.tensor([0.5, 1.5], requires_grad=True)
    special = tracejit.special.gammaln(t) + tracejit.special.erf(t) + tracejit.special.i0(t)
    special.sum().backward()
    print(t.grad, tracejit.special.logsumexp(t, dim=0), tracejit.special.expit(t))
    print(Cube.apply(t).sum(), gradcheck(Cube.apply, (t,)))
    array = np.linspace(0.0, 1.0, 4)
    shared = tracejit.from_numpy(array)
    top = tracejit.sort(shared, descending=True)
    values, places = shared.max(dim=0)
    print(top.values, top.indices, values, places, shared[::2], shared[None, 1:], shared[[0, 2]])
    kinds = tracejit.where(shared > 0.5, 1.0, -1.0).to(tracejit.int32)
    a, b = tracejit.meshgrid(shared, shared, indexing="ij")
    c = tracejit.einsum("ij,jk->ik", a, b)
    print(kinds.dtype.is_floating_point, c.reshape(2, 8).permute(1, 0).shape, np.asarray(c).sum())
    print(tracejit.complex(shared, shared).abs(), (1 - shared) ** 2 // 1, -shared % 2, ~kinds)
    print(loss.report().compiles, sorted(loss.graphs)[:1], 2**shared, bool((shared == array).all()))
    total: float = shared.sum().item()
    size: tuple[int, ...] = shared.size()
    print(total, size, shared.tolist(), tracejit.finfo(tracejit.float32).eps, [*shared])
    with tracejit.enable_grad(), tracejit.autograd.set_detect_anomaly(True):
        print(tracejit.func.grad(lambda v: (v * v).sum())(shared), tracejit.is_grad_enabled())


if __name__ == "__main__":
    main()
