"""A dataset read by worker processes, with rows of different lengths padded into batches."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Rows(Dataset):
    """Row i has i % 4 + 1 numbers."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = np.random.default_rng(index).standard_normal(index % 4 + 1)
        return {"row": torch.tensor(row, dtype=torch.float32), "target": float(row.sum())}


class Stream(IterableDataset):
    """Numbers, dealt out among the workers."""

    def __iter__(self):
        worker = get_worker_info()
        return iter(range(worker.id, 10, worker.num_workers))


def padded(samples):
    rows = nn.utils.rnn.pad_sequence([s["row"] for s in samples], batch_first=True)
    return nn.functional.pad(rows, (0, 4 - rows.size(1))), torch.tensor(
        [s["target"] for s in samples])


def model():
    return nn.Linear(4, 1)


def train(model):
    loader = DataLoader(Rows(22), batch_size=5, num_workers=2, collate_fn=padded, drop_last=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(x, y).item() for x, y in loader]
    numbers = [batch.tolist() for batch in DataLoader(Stream(), batch_size=3, num_workers=2)]
    return {"losses": losses, "length": len(loader), "numbers": numbers}
