"""A Wasserstein GAN: a critic with a gradient penalty, three of its steps for each generator's."""

import numpy as np
import torch
import torch.nn as nn


def model():
    return nn.ModuleDict({
        "G": nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2)),
        "D": nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 1))})


def train(model):
    G, D = model["G"], model["D"]
    optimizer_G = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizer_D = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def compute_gradient_penalty(real, fake, alpha):
        interpolates = (alpha * real + ((1 - alpha) * fake)).requires_grad_(True)
        d_interpolates = D(interpolates)
        gradients = torch.autograd.grad(
            outputs=d_interpolates, inputs=interpolates,
            grad_outputs=torch.ones_like(d_interpolates, requires_grad=False),
            create_graph=True, retain_graph=True, only_inputs=True)[0]
        return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()

    @torch.compile
    def critic(real, z, alpha):
        optimizer_D.zero_grad()
        fake = G(z).detach()
        d_loss = -torch.mean(D(real)) + torch.mean(D(fake))
        d_loss = d_loss + 10 * compute_gradient_penalty(real.data, fake.data, alpha)
        d_loss.backward()
        optimizer_D.step()
        return d_loss.detach()

    @torch.compile
    def generator(z):
        for p in D.parameters():
            p.requires_grad = False
        optimizer_G.zero_grad()
        g_loss = -torch.mean(D(G(z)))
        g_loss.backward()
        optimizer_G.step()
        for p in D.parameters():
            p.requires_grad = True
        return g_loss.detach()

    rng, losses = np.random.default_rng(0), []
    for i in range(6):
        draw = [torch.from_numpy(rng.standard_normal((12, n)).astype("float32")) for n in (2, 3)]
        alpha = torch.from_numpy(rng.random((12, 1), dtype="float32"))
        losses.append(critic(draw[0] * 0.3 + 1, draw[1], alpha).item())
        if i % 3 == 2:
            losses.append(generator(draw[1]).item())
    return losses
