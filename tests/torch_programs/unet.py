"""Segmentation by a small U-Net: down, up, skip connections, cross-entropy and the Dice loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
            nn.GroupNorm(2, out_channels), nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, 3, padding="same", padding_mode="reflect"),
            nn.LeakyReLU(0.1, inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels + out_channels, out_channels)
        else:
            self.up = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
            self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY, diffX = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(1, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 6))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(6, 8))
        self.up1, self.up2 = Up(8, 6, bilinear=True), Up(6, 4, bilinear=False)
        self.outc = nn.Conv2d(4, 2, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x = self.up1(self.down2(x2), x2)
        return self.outc(self.up2(x, x1))


def dice_loss(logits, masks, epsilon=1e-6):
    probs = F.softmax(logits, dim=1)
    target = F.one_hot(masks, 2).permute(0, 3, 1, 2).float()
    inter = 2 * (probs * target).sum(dim=(-1, -2))
    sets_sum = probs.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return 1 - ((inter + epsilon) / (sets_sum + epsilon)).mean()


def model():
    return UNet()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, eps=1e-3, momentum=0.9)

    @torch.compile
    def step(images, masks):
        logits = model(images)
        loss = F.cross_entropy(logits, masks) + dice_loss(logits, masks)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    losses = []
    for count, size in ((3, 9), (3, 9), (2, 12)):
        images = torch.from_numpy(rng.standard_normal((count, 1, size, size)).astype("float32"))
        losses.append(step(images, (images.squeeze(1) > 0).long()).item())
    with torch.no_grad():
        mask = model(images).argmax(dim=1) == (images > 0).squeeze(1)
    return {"losses": losses, "right": mask.float().mean().item()}
