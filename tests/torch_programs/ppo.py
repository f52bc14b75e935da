"""Proximal policy optimisation: distributions, old log-probabilities, clipped ratios, GAE."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, Normal


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        self.actor_mean = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
        self.actor_logstd = nn.Parameter(torch.zeros(1, 2))
        self.choice = nn.Linear(3, 4)

    def get_action_and_value(self, x, action, choice):
        action_mean = self.actor_mean(x)
        probs = Normal(action_mean, self.actor_logstd.expand_as(action_mean).exp())
        discrete = Categorical(logits=self.choice(x))
        logprob = probs.log_prob(action).sum(1) + discrete.log_prob(choice)
        entropy = probs.entropy().sum(1) + discrete.entropy()
        return logprob, entropy, self.critic(x)


def model():
    return ActorCritic()


def train(model):
    rng, gamma, lam, clip_coef = np.random.default_rng(0), 0.99, 0.95, 0.2
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-5)
    steps = 24
    obs = torch.from_numpy(rng.standard_normal((steps, 3)).astype("float32"))
    actions = torch.from_numpy(rng.standard_normal((steps, 2)).astype("float32"))
    choices = torch.from_numpy(rng.integers(0, 4, steps))
    rewards, dones = obs.sum(1), (torch.arange(steps) % 9 == 8).float()
    with torch.no_grad():
        old_logprobs, _, values = model.get_action_and_value(obs, actions, choices)
        values, advantages, lastgaelam = values.flatten(), torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            following = values[t + 1] if t + 1 < steps else torch.tensor(0.0)
            nonterminal = 1.0 - dones[t]
            delta = rewards[t] + gamma * following * nonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * lam * nonterminal * lastgaelam
        returns = advantages + values

    @torch.compile
    def update(obs, actions, choices, old_logprobs, advantages, returns, values):
        newlogprob, entropy, newvalue = model.get_action_and_value(obs, actions, choices)
        logratio = newlogprob - old_logprobs
        ratio = logratio.exp()
        approx_kl = ((ratio - 1) - logratio).mean().detach()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss = torch.max(-advantages * ratio, -advantages * torch.clamp(
            ratio, 1 - clip_coef, 1 + clip_coef)).mean()
        newvalue = newvalue.view(-1)
        v_clipped = values + torch.clamp(newvalue - values, -clip_coef, clip_coef)
        v_loss = 0.5 * torch.max((newvalue - returns) ** 2, (v_clipped - returns) ** 2).mean()
        loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss.detach(), approx_kl

    history = []
    for _ in range(2):
        for inds in np.array_split(rng.permutation(steps), 3):
            b = torch.from_numpy(inds)
            loss, kl = update(obs[b], actions[b], choices[b], old_logprobs[b], advantages[b],
                              returns[b], values[b])
            history.append((loss.item(), kl.item()))
    return {"history": history, "returns": returns}
