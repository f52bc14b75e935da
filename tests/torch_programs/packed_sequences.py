"""Sequences of different lengths: padded, packed, through an LSTM, their last states classified."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(16, 3)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True,
                                      enforce_sorted=False)
        output, (hidden, cell) = self.lstm(packed)
        padded, sizes = pad_packed_sequence(output, batch_first=True)
        last = torch.cat([hidden[-2], hidden[-1]], dim=1)
        return self.fc(last), padded, sizes


def model():
    return Classifier()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    classify = torch.compile(model)
    losses, shapes = [], []
    for step in range(4):
        rows = [torch.from_numpy(rng.integers(1, 12, length)) for length in (3, 6, 1, 4)]
        lengths = torch.tensor([len(row) for row in rows])
        labels = torch.stack([row.sum() % 3 for row in rows])
        logits, padded, sizes = classify(pad_sequence(rows, batch_first=True), lengths)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        shapes.append((list(padded.shape), sizes.tolist()))
    return {"losses": losses, "shapes": shapes, "padding": model.embed.weight.grad[0]}
