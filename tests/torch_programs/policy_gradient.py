"""REINFORCE with a baseline on a small walk; actions are drawn by NumPy from the policy."""

from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Walk:
    """Positions 0 to 6; the right end pays, each step costs."""

    def reset(self):
        self.place = 3
        return self.state()

    def state(self):
        return np.eye(7, dtype=np.float32)[self.place]

    def step(self, action):
        self.place += 1 if action else -1
        done = self.place in (0, 6)
        return self.state(), (1.0 if self.place == 6 else -0.05), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(7, 12)
        self.action_head = nn.Linear(12, 2)
        self.value_head = nn.Linear(12, 1)

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def model():
    return Policy()


def train(model):
    eps = np.finfo(np.float32).eps.item()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rng, env = np.random.default_rng(0), Walk()

    def finish_episode(states, actions, returns):
        returns = (returns - returns.mean()) / (returns.std() + eps)
        probabilities, values = model(states)
        advantage = returns - values.squeeze(-1).detach()
        chosen = probabilities.gather(1, actions.unsqueeze(1)).squeeze(1)
        policy_loss = (-chosen.log() * advantage).sum()
        value_loss = F.smooth_l1_loss(values.squeeze(-1), returns, reduction="sum")
        optimizer.zero_grad()
        loss = policy_loss + value_loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    finish_episode = torch.compile(finish_episode)
    losses, lengths = [], []
    for episode in range(5):
        state, done = env.reset(), False
        states, actions, rewards = [], [], []
        while not done and len(states) < 20:
            with torch.no_grad():
                probs, _ = model(torch.from_numpy(state).float().unsqueeze(0))
            action = int(rng.random() < probs[0, 1].item())
            states.append(state)
            actions.append(action)
            state, reward, done = env.step(action)
            rewards.append(reward)
        R, returns = 0, deque()
        for r in rewards[::-1]:
            R = r + 0.99 * R
            returns.appendleft(R)
        losses.append(finish_episode(torch.from_numpy(np.stack(states)), torch.tensor(actions),
                                     torch.tensor(list(returns))).item())
        lengths.append(len(rewards))
    return {"losses": losses, "lengths": lengths}
