"""A small DCGAN of digits: two networks, two optimizers, one program for a step of both.

    python examples/dcgan.py
"""

import sys

import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn
from tracejit.datasets import Digits

BATCH, LATENT, WIDTH = 32, 16, 16
LARGEST_DISTANCE = 0.05


def generator():
    """Noise to pictures of 16 by 16, values from -1 to 1."""
    return nn.Sequential(
        nn.ConvTranspose2d(LATENT, 2 * WIDTH, 4, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.ReLU(),
        nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(),
        nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1), nn.Tanh())


def discriminator():
    """Pictures to one score: above zero for real ones."""
    return nn.Sequential(
        nn.Conv2d(1, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * WIDTH),
        nn.LeakyReLU(0.2), nn.Conv2d(2 * WIDTH, 1, 4), nn.Flatten(0))


class Task:
    """Both networks; a step trains one after the other and gives the sum of their losses."""

    def __init__(self, pictures):
        self.pictures = pictures
        self.generator, self.discriminator = generator(), discriminator()
        # A larger eps than usual: two networks against each other amplify every rounding.
        self.optimizers = [
            tracejit.optim.Adam(net.parameters(), lr=5e-4, betas=(0.5, 0.999), eps=1e-5)
            for net in (self.generator, self.discriminator)]

    def batches(self):
        while True:
            for rows in tracejit.randperm(len(self.pictures)).split(BATCH):
                yield (self.pictures[rows],)

    def step(self, real):
        for_generator, for_discriminator = self.optimizers
        ones = tracejit.ones(real.shape[0])
        fake = self.generator(tracejit.randn(real.shape[0], LATENT, 1, 1))
        for_discriminator.zero_grad()
        loss = (F.binary_cross_entropy_with_logits(self.discriminator(real), 0.9 * ones)
                + F.binary_cross_entropy_with_logits(self.discriminator(fake.detach()), 0 * ones))
        loss.backward()
        for_discriminator.step()

        for_generator.zero_grad()
        fooled = F.binary_cross_entropy_with_logits(self.discriminator(fake), ones)
        fooled.backward()
        for_generator.step()
        return loss.detach() + fooled.detach()


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=600, quick=20), argv)
    data = Digits()
    small = data.data.unsqueeze(1).float() / data.full
    pictures = F.interpolate(small, size=(16, 16), mode="bilinear") * 2 - 1
    found = runs.train(lambda: Task(pictures), options)
    with tracejit.no_grad():
        made = found[-1].task.generator.eval()(tracejit.randn(256, LATENT, 1, 1))
        # How far the mean picture is from that of the digits: noise or one picture alone is far.
        distance = (made.mean(dim=0) - pictures.mean(dim=0)).square().mean().item()
        spread = (made.std(dim=0).mean() / pictures.std(dim=0).mean()).item()
    wrong = runs.target(options, "squared distance of the mean pictures", distance,
                        high=LARGEST_DISTANCE)
    wrong += runs.target(options, "spread of pixels beside the digits'", spread, low=0.5)
    runs.save_pictures(made[:32, 0] / 2 + 0.5, options.out / "dcgan.png")
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
