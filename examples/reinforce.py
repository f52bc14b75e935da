"""REINFORCE with a baseline: a policy learns to balance a pole on a cart, written here in NumPy.

Sixteen carts are played at once. Episodes end at different times, so that each update has another
length: one program serves all.

    python examples/reinforce.py
"""

import sys

import numpy as np
import runs

import tracejit
from tracejit import nn

CARTS, LONGEST = 16, 200
WANTED_STEPS = 120.0


class CartPoles:
    """Carts with poles (Barto, Sutton and Anderson, 1983): place, speed, angle, angular speed."""

    def __init__(self, count, rng):
        self.state = rng.uniform(-0.05, 0.05, (count, 4))
        self.alive = np.ones(count, bool)

    def push(self, right):
        """A push to the right or left, 0.02 s; poles that lean or carts that leave are out."""
        x, speed, angle, turn = self.state.T
        force = np.where(right, 10.0, -10.0)
        pull = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        bend = (9.8 * np.sin(angle) - np.cos(angle) * pull) / (
            0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        gain = pull - 0.05 * bend * np.cos(angle) / 1.1
        self.state = self.state + 0.02 * np.stack([speed, gain, turn, bend], axis=1)
        self.alive &= (np.abs(self.state[:, 0]) < 2.4) & (np.abs(self.state[:, 2]) < 0.2095)


class Task:
    """The policy; each batch is what it did with sixteen carts."""

    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.act = tracejit.script(self.policy)
        self.optimizer = tracejit.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.lengths: list[float] = []

    def play(self, rng):
        """States, pushes and who was in play, as arrays of (steps, carts)."""
        carts = CartPoles(CARTS, rng)
        seen: list[tuple[np.ndarray, ...]] = []
        while carts.alive.any() and len(seen) < LONGEST:
            state, alive = carts.state.astype(np.float32), carts.alive.copy()
            with tracejit.no_grad():
                logits = self.act(tracejit.from_numpy(state)).numpy()[:, 0]
            right = rng.random(CARTS) < 1 / (1 + np.exp(-logits))
            carts.push(right)
            seen.append((state, right.astype(np.float32), alive.astype(np.float32)))
        return (np.stack(part) for part in zip(*seen))

    def batches(self):
        rng = np.random.default_rng(0)
        while True:
            states, right, alive = self.play(rng)
            self.lengths.append(alive.sum() / CARTS)
            returns = np.zeros_like(alive)
            following = np.zeros(CARTS, np.float32)
            for step in reversed(range(len(alive))):
                following = returns[step] = alive[step] * (1 + 0.98 * following)
            yield tuple(map(tracejit.from_numpy, (states, right, alive, returns)))

    def step(self, states, right, alive, returns):
        """Likelier what brought more than the mean of the carts still in play at that time."""
        self.optimizer.zero_grad()
        count = alive.sum()
        mean = (returns * alive).sum() / count
        spread = (((returns - mean) ** 2 * alive).sum() / count).sqrt()
        advantage = (returns - mean) / (spread + 1e-6)
        logits = self.policy(states).squeeze(-1)
        likelihood = nn.functional.logsigmoid(tracejit.where(right > 0.5, logits, -logits))
        loss = -(likelihood * advantage * alive).sum() / count
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=100, quick=20), argv)
    found = runs.train(Task, options)
    lengths = found[-1].task.lengths
    print(f"steps in balance, of {LONGEST} at most: {np.mean(lengths[:10]):.0f} at first")
    wrong = runs.target(options, "in the last ten batches", float(np.mean(lengths[-10:])),
                        low=WANTED_STEPS)
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
