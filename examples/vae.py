"""A variational autoencoder of digits: noise is drawn inside the step, the same either way.

    python examples/vae.py
"""

import sys

import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn
from tracejit.datasets import Digits

BATCH, HIDDEN, LATENT = 96, 128, 4
WANTED_NATS = 24.5


class VAE(nn.Module):
    """64 pixels to the mean and the variance of a few hidden numbers, and back."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, HIDDEN)
        self.mean, self.log_variance = nn.Linear(HIDDEN, LATENT), nn.Linear(HIDDEN, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 64))

    def forward(self, x):
        hidden = F.relu(self.hidden(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        drawn = mean + tracejit.exp(0.5 * log_variance) * tracejit.randn_like(mean)
        return self.decoder(drawn), mean, log_variance


def bound(model, x):
    """Nats per image: the cross-entropy of the pixels, and what the hidden numbers cost."""
    logits, mean, log_variance = model(x)
    pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    return (pixels + divergence) / x.shape[0]


class Task:
    """The model and the images, in another order each time through."""

    def __init__(self, images):
        self.images, self.model = images, VAE()
        self.optimizer = tracejit.optim.Adam(self.model.parameters(), lr=3e-3)

    def batches(self):
        while True:
            for rows in tracejit.randperm(len(self.images)).split(BATCH):
                yield (self.images[rows],)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = bound(self.model, x)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def images(train):
    data = Digits(train)
    return data.data.flatten(1).float() / data.full


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=3000, quick=25), argv)
    found = runs.train(lambda: Task(images(True)), options)
    model, held_out = found[-1].task.model, images(False)
    with tracejit.no_grad():
        wrong = runs.target(options, "held-out nats per image", bound(model, held_out).item(),
                            high=WANTED_NATS)
        again = model(held_out[:16])[0].sigmoid()
        new = model.decoder(tracejit.randn(16, LATENT)).sigmoid()
    pictures = tracejit.cat([held_out[:16], again, new]).reshape(-1, 8, 8)
    titles = ["given"] * 16 + ["again"] * 16 + ["new"] * 16
    runs.save_pictures(pictures, options.out / "vae.png", titles)
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
