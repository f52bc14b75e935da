"""Trains a small network: data loader, Adam, scheduler, a compiled step, saving."""

import math
from collections.abc import Iterator
from pathlib import Path

import tracejit
from tracejit import Tensor, nn
from tracejit.nn import functional as F
from tracejit.optim import Adam
from tracejit.optim.lr_scheduler import CosineAnnealingLR
from tracejit.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Net(nn.Module):
    mean: Tensor

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Dropout(0.1))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes, bias=False)
        self.register_buffer("mean", tracejit.zeros(20))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.body(x - self.mean))
        return self.head(F.gelu(hidden))


class Noise(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, count: int) -> None:
        self.x = tracejit.randn(count, 20)
        self.y = tracejit.randint(0, 10, (count,))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


def batches(loader: DataLoader[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    for x, y in loader:
        yield x.float(), y.long()


@tracejit.script
def step(model: nn.Module, optimizer: tracejit.optim.Optimizer, x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def accuracy(model: Net, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    right, total = 0, 0
    with tracejit.no_grad():
        for x, y in loader:
            guess = model(x).argmax(dim=1)
            right += int((guess == y).sum().item())
            total += y.shape[0]
    model.train()
    return right / total


def main() -> None:
    tracejit.manual_seed(0)
    data = Noise(512)
    train, test = random_split(data, [448, 64], generator=tracejit.Generator().manual_seed(1))
    loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
    others = DataLoader(test, batch_size=64)
    pairs = TensorDataset(data.x, data.y)
    print(len(pairs), pairs[0][0].shape)
    model = Net().to("cpu")
    optimizer = Adam(model.parameters(), lr=1e-3, weight_decay=1e-4, betas=(0.9, 0.99))
    schedule = CosineAnnealingLR(optimizer, T_max=10)
    losses: list[float] = []
    for epoch in range(2):
        for x, y in batches(loader):
            losses.append(step(model, optimizer, x, y).item())
        schedule.step()
        rate = optimizer.param_groups[0]["lr"]
        print(f"{epoch} {sum(losses) / len(losses):.3f} {accuracy(model, others):.2f} {rate:.2e}")
    size = sum(p.numel() for p in model.parameters() if p.requires_grad)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not math.isfinite(parameter.grad.norm().item()):
            print(name, tuple(parameter.shape), parameter.dtype)
    print(size, model.head.weight.shape[0], step.report().compiles)
    tracejit.save(model.state_dict(), Path("/dev/null"))
    copy = Net()
    copy.load_state_dict(model.state_dict())
    weights = [p.detach().clone() for p in copy.parameters()]
    print(tracejit.stack([w.abs().mean() for w in weights]).tolist())


if __name__ == "__main__":
    main()
