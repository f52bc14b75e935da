"""A graph convolutional network on Zachary's karate club: two members' sides are known, 32 asked.

Each layer mixes the features of neighbours: a product with the normalised adjacency matrix.

    python examples/karate_gcn.py
"""

import sys

import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn

WANTED_ACCURACY = 0.9
# Who met whom outside the club (W. W. Zachary, 1977), and who stayed with the instructor.
FRIENDS = {
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31], 1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32], 3: [7, 12, 13], 4: [6, 10], 5: [6, 10, 16], 6: [16],
    8: [30, 32, 33], 9: [33], 13: [33], 14: [32, 33], 15: [32, 33], 18: [32, 33], 19: [33],
    20: [32, 33], 22: [32, 33], 23: [25, 27, 29, 32, 33], 24: [25, 27, 31], 25: [31],
    26: [29, 33], 27: [33], 28: [31, 33], 29: [32, 33], 30: [32, 33], 31: [32, 33], 32: [33],
}  # fmt: skip
INSTRUCTOR = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21]


def normalised_adjacency():
    """D^-1/2 (A + I) D^-1/2 of the 34 members."""
    adjacency = tracejit.eye(34)
    for one, others in FRIENDS.items():
        adjacency[one, others] = 1.0
        adjacency[others, one] = 1.0
    scale = adjacency.sum(dim=1).rsqrt()
    return scale[:, None] * adjacency * scale


class GCN(nn.Module):
    """Two graph convolutions, from who one is to which side one takes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(34, 8, bias=False), nn.Linear(8, 2)

    def forward(self, x, adjacency):
        hidden = F.relu(adjacency @ self.first(x))
        return adjacency @ self.second(hidden)


class Task:
    """The network and the whole graph, which is every batch."""

    def __init__(self):
        self.adjacency, self.who = normalised_adjacency(), tracejit.eye(34)
        self.known, self.sides = tracejit.tensor([0, 33]), tracejit.tensor([0, 1])
        self.model = GCN()
        self.optimizer = tracejit.optim.Adam(self.model.parameters(), lr=0.02, weight_decay=5e-4)

    def batches(self):
        while True:
            yield self.who, self.adjacency

    def step(self, who, adjacency):
        self.optimizer.zero_grad()
        scores = self.model(who, adjacency)
        loss = F.cross_entropy(scores[self.known], self.sides)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=200, quick=25), argv)
    found = runs.train(Task, options)
    sides = tracejit.ones(34, dtype=tracejit.int64)
    sides[INSTRUCTOR] = 0
    task = found[-1].task
    with tracejit.no_grad():
        guesses = task.model(task.who, task.adjacency).argmax(dim=1)
    right = guesses == sides
    wrong = runs.target(options, "members on the side they took", right.float().mean().item(),
                        low=WANTED_ACCURACY)
    print("on the other side:", [i for i, same in enumerate(right.tolist()) if not same])
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
