"""Boxes: overlaps, matching to anchors, focal and generalised-overlap losses, suppression."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    areas = [(x[:, 2:] - x[:, :2]).prod(dim=1) for x in (a, b)]
    union = areas[0][:, None] + areas[1] - inter
    return inter / union, union


def giou_loss(a, b):
    iou, union = box_iou(a, b)
    lt, rb = torch.min(a[:, None, :2], b[:, :2]), torch.max(a[:, None, 2:], b[:, 2:])
    area = (rb - lt).clamp(min=0).prod(dim=2)
    return 1 - torch.diag(iou - (area - union) / area)


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2.0):
    prob = inputs.sigmoid()
    ce_loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = prob * targets + (1 - prob) * (1 - targets)
    loss = ce_loss * ((1 - p_t) ** gamma)
    return ((alpha * targets + (1 - alpha) * (1 - targets)) * loss).mean(1).sum()


def nms(boxes, scores, threshold):
    order, keep = scores.argsort(descending=True), []
    while order.numel() > 0:
        i = order[0].item()
        keep.append(i)
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i].unsqueeze(0), boxes[order[1:]])[0].squeeze(0)
        order = order[1:][iou <= threshold]
    return torch.tensor(keep)


def model():
    return nn.Linear(6, 4 + 3)


def train(model):
    rng = np.random.default_rng(0)
    grid = torch.stack(torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij"), -1)
    anchors = torch.cat([grid.reshape(-1, 2), grid.reshape(-1, 2) + 1], dim=1).float()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @torch.compile
    def step(features, truth, labels):
        optimizer.zero_grad()
        out = model(features)
        boxes = anchors + 0.1 * torch.cat([out[:, :2], out[:, 2:4].exp()], dim=1)
        iou, _ = box_iou(anchors, truth)
        best, matched = iou.max(dim=1)
        positive = (best > 0.3).float()
        onehot = F.one_hot(labels[matched], 3) * positive[:, None]
        regression = (giou_loss(boxes, truth[matched]) * positive).sum()
        loss = sigmoid_focal_loss(out[:, 4:], onehot) + regression / positive.sum().clamp(min=1)
        loss.backward()
        optimizer.step()
        return loss.detach(), boxes.detach(), out[:, 4:].detach().amax(dim=1)

    losses, kept = [], []
    for objects in (3, 2, 4):
        corner = torch.from_numpy(rng.uniform(0, 2, (objects, 2)).astype("float32"))
        features = torch.from_numpy(rng.standard_normal((9, 6)).astype("float32"))
        loss, boxes, scores = step(features, torch.cat([corner, corner + 1], 1),
                                   torch.arange(objects) % 3)
        losses.append(loss.item())
        kept.append(nms(boxes, scores, 0.05))
    return {"losses": losses, "kept": kept, "boxes": boxes}
