"""A backbone is frozen and its last layer replaced; later its last block is trained as well."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Backbone(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
            nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(8, num_classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.features(x), 1))


def model():
    net = Backbone()
    for param in net.parameters():
        param.requires_grad = False
    net.fc = nn.Linear(net.fc.in_features, 2)
    return net


def train(model):
    rng = np.random.default_rng(0)
    x = torch.as_tensor(rng.standard_normal((12, 1, 8, 8)), dtype=torch.float32)
    y = (x.mean(dim=(1, 2, 3)) > 0).long()
    criterion = nn.CrossEntropyLoss()
    frozen = model.features[0].weight.clone()
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = optim.SGD(trainable, lr=0.1, momentum=0.9)

    def train_step(inputs, labels):
        optimizer.zero_grad()
        with torch.set_grad_enabled(True):
            outputs = model(inputs)
            _, preds = torch.max(outputs, 1)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
        return loss.detach() * inputs.size(0), torch.sum(preds == labels.data)

    step = torch.compile(train_step)
    history = []
    model.eval()  # statistics of the backbone stay
    for _ in range(3):
        loss, correct = step(x, y)
        history.append((loss.item(), correct.item()))
    assert torch.equal(frozen, model.features[0].weight)

    for param in model.features[4].parameters():
        param.requires_grad_(True)
    optimizer.add_param_group({"params": model.features[4].parameters(), "lr": 0.01})
    model.train()
    for _ in range(3):
        loss, correct = step(x, y)
        history.append((loss.item(), correct.item()))
    grads = {name: p.grad is not None for name, p in model.named_parameters()}
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return {"history": history, "grads": grads, "trainable": count}
