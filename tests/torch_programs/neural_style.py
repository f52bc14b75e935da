"""The picture is what is trained: content and Gram matrices of a fixed network's layers."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def model():
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(inplace=False),
                         nn.Conv2d(6, 8, 3, padding=1), nn.AvgPool2d(2)).eval()


def train(model):
    rng = np.random.default_rng(0)
    content, style, picture = (torch.from_numpy(rng.random((1, 3, 8, 8), dtype="float32"))
                               for _ in range(3))
    model.requires_grad_(False)
    net, losses = nn.Sequential(), []
    mean = torch.tensor([0.48, 0.46, 0.41]).view(-1, 1, 1)
    for i, layer in enumerate(model.children()):
        net.add_module(f"layer_{i}", layer)
        if isinstance(layer, nn.Conv2d):
            kind, given = (StyleLoss, style) if i == 0 else (ContentLoss, content)
            losses.append(kind(net(given - mean)))
            net.add_module(f"loss_{i}", losses[-1])
    for i in range(len(net) - 1, -1, -1):
        if isinstance(net[i], (ContentLoss, StyleLoss)):
            break
    net = net[:i + 1]
    picture.requires_grad_(True)
    optimizer = optim.Adam([picture], lr=0.05)

    @torch.compile
    def step():
        with torch.no_grad():
            picture.clamp_(0, 1)
        optimizer.zero_grad()
        net(picture - mean)
        score = 1e3 * losses[0].loss + losses[1].loss
        score.backward()
        optimizer.step()
        return score.detach()

    scores = [step().item() for _ in range(5)]
    return {"scores": scores, "picture": picture, "text": repr(net)}
