"""A pointer to positions, and sequences found by a beam: sorting, gathering, tensors in lists."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Pointer(nn.Module):
    def __init__(self, vocab=7, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encoder = nn.LSTM(dim, dim, batch_first=True)
        self.cell = nn.LSTMCell(dim, dim)
        self.query = nn.Linear(dim, dim, bias=False)

    def forward(self, tokens, steps: int):
        memory, (h, c) = self.encoder(self.embed(tokens))
        h, c, x = h[0], c[0], memory.mean(dim=1)
        used, scores = torch.zeros(tokens.shape, dtype=torch.bool), []
        for _ in range(steps):
            h, c = self.cell(x, (h, c))
            logits = torch.einsum("bd,btd->bt", self.query(h), memory)
            logits = logits.masked_fill(used, -1e4)
            scores.append(F.log_softmax(logits, dim=-1))
            chosen = logits.argmax(dim=-1, keepdim=True)
            used = used.scatter(1, chosen, True)
            x = torch.take_along_dim(memory, chosen[:, :, None], dim=1).squeeze(1)
        return torch.stack(scores, dim=1)


def beam(scores, width):
    sequences, total = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1)
    for step in scores:
        candidates = (total[:, None] + step[None]).flatten()
        total, flat = candidates.topk(min(width, candidates.numel()))
        rows = torch.div(flat, len(step), rounding_mode="floor")
        sequences = torch.cat([sequences[rows], (flat % len(step))[:, None]], dim=1)
    return sequences, total


def model():
    return Pointer()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    compiled = torch.compile(model)
    losses = []
    for count in (6, 6, 3):
        tokens = torch.from_numpy(rng.permuted(np.tile(np.arange(7), (count, 1)), axis=1)[:, :4])
        scores = compiled(tokens, 4)
        loss = F.nll_loss(scores.flatten(0, 1), tokens.argsort(dim=1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    sequences, total = beam(scores[0].detach(), 3)
    return {"losses": losses, "sequences": sequences, "total": total}
