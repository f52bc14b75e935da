"""Deep Q-learning: a replay memory, a target network that follows slowly, Huber's loss."""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size, rng):
        return rng.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self):
        super(DQN, self).__init__()
        self.layer1, self.layer2 = nn.Linear(2, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


def model():
    return nn.ModuleDict({"policy": DQN(), "target": DQN()})


def train(model):
    policy_net, target_net = model["policy"], model["target"]
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, rng, GAMMA, TAU = ReplayMemory(100), random.Random(0), 0.9, 0.05

    @torch.compile
    def optimize_model(state, action, reward, next_states, non_final_mask):
        state_action_values = policy_net(state).gather(1, action)
        next_state_values = torch.zeros(state.size(0))
        with torch.no_grad():
            values = target_net(next_states).max(1).values
            next_state_values = torch.where(non_final_mask, values, next_state_values)
        expected = (next_state_values * GAMMA) + reward
        loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        return loss.detach()

    losses, actions = [], []
    state = torch.tensor([[0.5, -0.5]])
    for t in range(40):
        if rng.random() > 0.5:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[rng.randrange(3)]], dtype=torch.long)
        done = t % 7 == 6
        moved = (state + (action.item() - 1) * 0.1).clamp(-1, 1)
        reward = torch.tensor([1.0 - moved.abs().sum().item()])
        memory.push(state, action, None if done else moved, reward)
        state = torch.tensor([[0.5, -0.5]]) if done else moved
        actions.append(action.item())
        if len(memory) < 16:
            continue
        batch = Transition(*zip(*memory.sample(16, rng)))
        non_final = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
        following = torch.cat([torch.zeros(1, 2) if s is None else s for s in batch.next_state])
        losses.append(optimize_model(torch.cat(batch.state), torch.cat(batch.action),
                                     torch.cat(batch.reward), following, non_final).item())
        target_dict, policy_dict = target_net.state_dict(), policy_net.state_dict()
        for key in policy_dict:
            target_dict[key] = policy_dict[key] * TAU + target_dict[key] * (1 - TAU)
        target_net.load_state_dict(target_dict)
    return {"losses": losses, "actions": actions}
