"""A variational autoencoder; its noise is drawn outside, so that it is the same everywhere."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 20)
        self.fc21 = nn.Linear(20, 3)
        self.fc22 = nn.Linear(20, 3)
        self.fc3 = nn.Linear(3, 20)
        self.fc4 = nn.Linear(20, 36)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 36))
        return self.decode(self.reparameterize(mu, logvar, eps)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def model():
    return VAE()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    compiled = torch.compile(model)
    train_loss, history = 0, []
    for count in (10, 10, 6):
        data = torch.from_numpy(rng.random((count, 1, 6, 6), dtype=np.float32))
        eps = torch.from_numpy(rng.standard_normal((count, 3)).astype(np.float32))
        optimizer.zero_grad()
        recon_batch, mu, logvar = compiled(data, eps)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        history.append(loss.item() / len(data))
    with torch.no_grad():
        sample = model.decode(torch.eye(3)).view(3, 1, 6, 6)
        kl = torch.mean(logvar.exp(), dim=0)
    return {"losses": history, "total": train_loss, "sample": sample, "kl": kl}
