"""LeNet-5 on images of digits: convolutions, a DataLoader, a training step as one program.

scikit-learn's digits, enlarged to 28 by 28 pixels, or MNIST's files where you have them:

    python examples/lenet.py                          half a minute
    python examples/lenet.py --data FOLDER            files as tracejit.datasets.MNIST reads them
    python examples/lenet.py --eager --steps 50
"""

import sys

import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn
from tracejit.datasets import MNIST, Digits
from tracejit.utils.data import DataLoader, TensorDataset

BATCH = 64
WANTED_ACCURACY = 0.97


def images(folder, train):
    """All images as (count, 1, 28, 28) between 0 and 1, and their classes."""
    if folder:
        data = MNIST(folder, train)
        return data.data.unsqueeze(1).float() / 255, data.targets
    digits = Digits(train)
    small = digits.data.unsqueeze(1).float() / digits.full
    large = F.interpolate(small, size=(28, 28), mode="bilinear", align_corners=False)
    return large, digits.targets


class LeNet(nn.Module):
    """Two convolutions with pooling, three linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class Task:
    """The network, its optimizer, and the images to train on."""

    def __init__(self, data):
        self.loader = DataLoader(TensorDataset(*data), batch_size=BATCH, shuffle=True)
        self.model = LeNet()
        self.optimizer = tracejit.optim.Adam(self.model.parameters(), lr=2e-3)

    def batches(self):
        while True:
            yield from self.loader

    def step(self, x, target):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), target)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main(argv: list[str] | None = None) -> int:
    parser = runs.arguments(__doc__, steps=300, quick=25)
    parser.add_argument("--data", help="folder with MNIST's files; else scikit-learn's digits")
    options = runs.parsed(parser, argv)
    train, (x, classes) = images(options.data, True), images(options.data, False)
    found = runs.train(lambda: Task(train), options)
    with tracejit.no_grad():
        guesses = found[-1].task.model(x).argmax(dim=1)
    wrong = runs.target(options, "held-out accuracy", (guesses == classes).float().mean().item(),
                        low=WANTED_ACCURACY)
    runs.save_pictures(x[:24, 0], options.out / "lenet.png", map(str, guesses[:24].tolist()))
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
