"""A convolutional autoencoder that takes noise out of pictures."""

import numpy as np
import torch
import torch.nn as nn


class ConvAutoencoder(nn.Module):
    def __init__(self):
        super(ConvAutoencoder, self).__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(True),
            nn.Conv2d(8, 4, 3, stride=2, padding=1), nn.ReLU(True))
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1), nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 2, stride=2), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


def model():
    return ConvAutoencoder()


def train(model):
    rng = np.random.default_rng(0)
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)

    @torch.compile
    def step(noisy, clean):
        output = model(noisy)
        loss = criterion(output, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), output.detach()

    losses = []
    for count in (8, 8, 3):
        clean = torch.from_numpy((rng.random((count, 1, 12, 12)) > 0.7).astype(np.float32))
        noise = 0.3 * torch.from_numpy(rng.standard_normal(clean.shape).astype(np.float32))
        loss, output = step((clean + noise).clamp(0.0, 1.0), clean)
        losses.append(loss.data.item())
    return {"losses": losses, "pictures": output.mul(255).add_(0.5).clamp_(0, 255)}
