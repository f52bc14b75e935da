"""A network that turns its input to where it reads it best."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(64, 8), nn.ReLU(True), nn.Linear(8, 6))
        self.fc_loc[2].weight.data.normal_(0, 0.05)
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
        self.conv, self.conv_drop = nn.Conv2d(1, 3, 5), nn.Dropout2d(p=0.0)
        self.fc = nn.Linear(27, 3)

    def stn(self, x):
        xs = self.localization(x).view(-1, 64)
        theta = self.fc_loc(xs).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv_drop(self.conv(x)), 2))
        return F.log_softmax(self.fc(x.view(-1, 27)), dim=1)


def model():
    return Net()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    forward = torch.compile(model)
    losses = []
    for count in (6, 6, 4):
        x = torch.from_numpy(rng.standard_normal((count, 1, 10, 10)).astype("float32"))
        optimizer.zero_grad()
        loss = F.nll_loss(forward(x), torch.from_numpy(rng.integers(0, 3, count)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        turned = model.stn(x)
    return {"losses": losses, "turned": turned}
