"""A tagger with two heads: words' tags, padding ignored, and the sentence's class, weighted."""

import numpy as np
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 6, bidirectional=True, batch_first=True)
        self.tags, self.label = nn.Linear(12, 4), nn.Linear(12, 3)

    def forward(self, tokens):
        states, _ = self.rnn(self.embedding(tokens))
        mask = tokens.ne(0).unsqueeze(-1)
        pooled = states.masked_fill(~mask, -1e9).max(dim=1).values
        return {"tags": self.tags(states), "label": self.label(pooled)}


def model():
    return Tagger()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    tag_loss = nn.CrossEntropyLoss(ignore_index=-100)
    label_loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1)

    @torch.compile
    def step(tokens, tags, label):
        optimizer.zero_grad()
        out = model(tokens)
        parts = {"tags": tag_loss(out["tags"].permute(0, 2, 1), tags),
                 "label": label_loss(out["label"], label)}
        sum(parts.values()).backward()
        optimizer.step()
        right = (out["tags"].argmax(-1) == tags) & (tags != -100)
        return {k: v.detach() for k, v in parts.items()}, right.sum()

    history = []
    for length in (6, 6, 4):
        tokens = torch.from_numpy(rng.integers(1, 20, (5, length)))
        tokens[:2, length - 2:] = 0
        tags = torch.where(tokens == 0, torch.tensor(-100), tokens % 4)
        parts, right = step(tokens, tags, tokens.sum(1) % 3)
        history.append(({k: v.item() for k, v in parts.items()}, right.item()))
    nothing = tag_loss(torch.zeros(1, 4, 2), torch.full((1, 2), -100))
    return {"history": history, "nothing": nothing}
