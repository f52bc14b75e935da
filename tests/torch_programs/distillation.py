"""A small network learns from a large one: soft targets at a temperature, features, labels."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Student(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.Hardswish())
        self.head = nn.Linear(width, 4)

    def forward(self, x, return_features=False):
        features = self.body(x)
        return (self.head(features), features) if return_features else self.head(features)


def model():
    return nn.ModuleList([Student(24), Student(6), nn.Linear(6, 24)])


def train(model):
    teacher, student, regressor = model
    teacher.eval()
    params = [*student.parameters(), *regressor.parameters()]
    optimizer = torch.optim.AdamW(params, lr=0.01)
    kl, T = nn.KLDivLoss(reduction="batchmean", log_target=False), 2.0

    @torch.compile
    def step(x, labels):
        optimizer.zero_grad()
        with torch.no_grad():
            teacher_logits, teacher_features = teacher(x, return_features=True)
        logits, features = student(x, return_features=True)
        soft_targets = F.softmax(teacher_logits / T, dim=-1)
        soft = kl(F.log_softmax(logits / T, dim=-1), soft_targets) * (T ** 2)
        cosine = F.cosine_embedding_loss(regressor(features), teacher_features,
                                         torch.ones(x.size(0)))
        hard = F.cross_entropy(logits, labels)
        loss = 0.5 * soft + 0.3 * hard + 0.2 * cosine
        loss.backward()
        optimizer.step()
        return torch.stack([loss, soft, hard, cosine]).detach()

    rng, history = np.random.default_rng(0), []
    for count in (16, 16, 9):
        x = torch.from_numpy(rng.standard_normal((count, 6)).astype("float32"))
        history.append(step(x, torch.from_numpy(rng.integers(0, 4, count))))
    assert all(p.grad is None for p in teacher.parameters())
    return {"history": history, "agree": (teacher(x).argmax(1) == student(x).argmax(1)).sum()}
