"""Splits, subsets and samplers: what is drawn differs, what is covered and how often does not."""

import torch
from torch import nn
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)


def model():
    return nn.Linear(3, 2)


def train(model):
    x = torch.arange(60.0).reshape(20, 3) / 60
    full = TensorDataset(x, torch.arange(20) % 2)
    parts = random_split(full, [12, 8], generator=torch.Generator().manual_seed(42))
    again = random_split(full, [12, 8], generator=torch.Generator().manual_seed(42))
    assert [p.indices for p in parts] == [p.indices for p in again]
    both = ConcatDataset(parts)
    shuffled = DataLoader(both, batch_size=20, shuffle=True,
                          generator=torch.Generator().manual_seed(0))

    @torch.compile
    def evaluate(x, y):
        # Independent of the order of rows, but for rounding.
        return nn.functional.cross_entropy(model(x), y)

    losses = [evaluate(*batch) for batch in shuffled]
    sampler = WeightedRandomSampler([0.0] * 10 + [1.0] * 10, num_samples=30)
    drawn = [int(label) for _, label in DataLoader(Subset(full, range(20)), sampler=sampler)]
    drop = DataLoader(full, batch_size=6, drop_last=True)
    try:
        random_split(full, [5, 5])
        message = ""
    except ValueError as error:
        message = str(error)
    return {"sizes": [len(p) for p in parts], "losses": losses,
            "covered": sorted(parts[0].indices + parts[1].indices),
            "drawn": len(drawn), "batches": (len(drop), len(shuffled)),
            "message": message, "fractions": [len(p) for p in random_split(full, [0.33, 0.67])]}
