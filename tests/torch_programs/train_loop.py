"""A classifier in the plainest way: batches, momentum, a schedule, accuracy on held-out data."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 32)
        self.fc2 = nn.Linear(32, 5)
        self.dropout = nn.Dropout(p=0.0)

    def forward(self, x):
        x = self.dropout(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def model():
    return Net()


def data(seed, count):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 20)).astype(np.float32)
    y = np.argmax(x[:, :5] + 0.5 * x[:, 5:10], axis=1)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def train(model):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device)
    train_loader = DataLoader(data(0, 150), batch_size=32, shuffle=False)
    test_loader = DataLoader(data(1, 60), batch_size=25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses, accuracies, rates = [], [], []
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            losses.append(step(x, y).item())
        model.eval()
        test_loss, correct = 0, 0
        with torch.no_grad():
            for x, y in test_loader:
                output = model(x.to(device))
                test_loss += F.nll_loss(output, y, reduction="sum").item()
                pred = output.argmax(dim=1, keepdim=True)
                correct += pred.eq(y.view_as(pred)).sum().item()
        accuracies.append((test_loss / len(test_loader.dataset), correct))
        rates.append(scheduler.get_last_lr())
        scheduler.step()
    return {"losses": losses, "accuracies": accuracies, "rates": rates}
