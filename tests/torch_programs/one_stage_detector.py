"""A one-stage detector: anchors, targets assigned to cells, CIoU, grids made when needed."""

import math

import torch
import torch.nn as nn


def data(*shape, k=0):
    return torch.sin(torch.arange(math.prod(shape)) * 2.3 + k).reshape(shape)


def bbox_iou(box1, box2, xywh=True, CIoU=True, eps=1e-7):
    if xywh:
        (x1, y1, w1, h1), (x2, y2, w2, h2) = box1.chunk(4, -1), box2.chunk(4, -1)
        w1_, h1_, w2_, h2_ = w1 / 2, h1 / 2, w2 / 2, h2 / 2
        b1_x1, b1_x2, b1_y1, b1_y2 = x1 - w1_, x1 + w1_, y1 - h1_, y1 + h1_
        b2_x1, b2_x2, b2_y1, b2_y2 = x2 - w2_, x2 + w2_, y2 - h2_, y2 + h2_
    inter = (b1_x2.minimum(b2_x2) - b1_x1.maximum(b2_x1)).clamp(0) * (
        b1_y2.minimum(b2_y2) - b1_y1.maximum(b2_y1)
    ).clamp(0)
    union = w1 * h1 + w2 * h2 - inter + eps
    iou = inter / union
    cw = b1_x2.maximum(b2_x2) - b1_x1.minimum(b2_x1)
    ch = b1_y2.maximum(b2_y2) - b1_y1.minimum(b2_y1)
    c2 = cw**2 + ch**2 + eps
    rho2 = ((b2_x1 + b2_x2 - b1_x1 - b1_x2) ** 2 + (b2_y1 + b2_y2 - b1_y1 - b1_y2) ** 2) / 4
    v = (4 / math.pi**2) * (torch.atan(w2 / h2) - torch.atan(w1 / h1)).pow(2)
    with torch.no_grad():
        alpha = v / (v - iou + (1 + eps))
    return iou - (rho2 / c2 + v * alpha)


class Detect(nn.Module):
    stride = None
    dynamic = False

    def __init__(self, nc=2, anchors=((1, 1.5, 2, 1), (2, 3, 3, 2)), ch=(4, 6)):
        super().__init__()
        self.nc, self.no, self.nl, self.na = nc, nc + 5, len(anchors), len(anchors[0]) // 2
        self.grid = [torch.empty(0) for _ in range(self.nl)]
        self.register_buffer("anchors", torch.tensor(anchors).float().view(self.nl, -1, 2))
        self.m = nn.ModuleList(nn.Conv2d(x, self.no * self.na, 1) for x in ch)
        self.stride = torch.tensor([8.0, 16.0])

    def forward(self, x):
        z = []
        for i in range(self.nl):
            x[i] = self.m[i](x[i])
            bs, _, ny, nx = x[i].shape
            x[i] = x[i].view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
            if not self.training:
                if self.dynamic or self.grid[i].shape[2:4] != x[i].shape[2:4]:
                    self.grid[i] = self._make_grid(nx, ny, i)
                xy, wh, conf = x[i].sigmoid().split((2, 2, self.nc + 1), 4)
                xy = (xy * 2 + self.grid[i]) * self.stride[i]
                wh = (wh * 2) ** 2 * self.anchors[i].view(1, -1, 1, 1, 2)
                z.append(torch.cat((xy, wh, conf), 4).view(bs, self.na * nx * ny, self.no))
        return x if self.training else (torch.cat(z, 1), x)

    def _make_grid(self, nx=20, ny=20, i=0):
        d, t = self.anchors[i].device, self.anchors[i].dtype
        y, x = torch.arange(ny, device=d, dtype=t), torch.arange(nx, device=d, dtype=t)
        yv, xv = torch.meshgrid(y, x, indexing="ij")
        return torch.stack((xv, yv), 2).expand(1, self.na, ny, nx, 2) - 0.5


class Loss:
    def __init__(self, det):
        self.det = det
        self.bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0]))
        self.balance = {3: [4.0, 1.0, 0.4]}.get(det.nl, [4.0, 1.0])

    def __call__(self, p, targets):
        lcls, lbox, lobj = torch.zeros(1), torch.zeros(1), torch.zeros(1)
        tcls, tbox, indices, anch = self.build(p, targets)
        for i, pi in enumerate(p):
            b, a, gj, gi = indices[i]
            tobj = torch.zeros(pi.shape[:4], dtype=pi.dtype)
            if n := b.shape[0]:
                pxy, pwh, _, pcls = pi[b, a, gj, gi].split((2, 2, 1, self.det.nc), 1)
                pxy = pxy.sigmoid() * 2 - 0.5
                pwh = (pwh.sigmoid() * 2) ** 2 * anch[i]
                iou = bbox_iou(torch.cat((pxy, pwh), 1), tbox[i]).squeeze()
                lbox += (1.0 - iou).mean()
                iou = iou.detach().clamp(0).type(tobj.dtype)
                tobj[b, a, gj, gi] = iou
                t = torch.full_like(pcls, 0.05)
                t[range(n), tcls[i]] = 0.95
                lcls += self.bce(pcls, t)
            lobj += self.bce(pi[..., 4], tobj) * self.balance[i]
        lbox *= 0.05
        lcls *= 0.5
        return (lbox + lobj + lcls) * tobj.shape[0], torch.cat((lbox, lobj, lcls)).detach()

    def build(self, p, targets):
        na, nt = self.det.na, targets.shape[0]
        tcls, tbox, indices, anch = [], [], [], []
        gain = torch.ones(7)
        ai = torch.arange(na).float().view(na, 1).repeat(1, nt)
        targets = torch.cat((targets.repeat(na, 1, 1), ai[..., None]), 2)
        g = 0.5
        off = torch.tensor([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]).float() * g
        for i in range(self.det.nl):
            anchors, shape = self.det.anchors[i], p[i].shape
            gain[2:6] = torch.tensor(shape)[[3, 2, 3, 2]]
            t = targets * gain
            if nt:
                r = t[..., 4:6] / anchors[:, None]
                j = torch.max(r, 1 / r).max(2)[0] < 4.0
                t = t[j]
                gxy = t[:, 2:4]
                gxi = gain[[2, 3]] - gxy
                j, k = ((gxy % 1 < g) & (gxy > 1)).T
                n, m = ((gxi % 1 < g) & (gxi > 1)).T
                j = torch.stack((torch.ones_like(j), j, k, n, m))
                t = t.repeat((5, 1, 1))[j]
                offsets = (torch.zeros_like(gxy)[None] + off[:, None])[j]
            else:
                t = targets[0]
                offsets = 0
            bc, gxy, gwh, a = t.chunk(4, 1)
            a, (b, c) = a.long().view(-1), bc.long().T
            gij = (gxy - offsets).long()
            gi, gj = gij.T
            indices.append((b, a, gj.clamp_(0, shape[2] - 1), gi.clamp_(0, shape[3] - 1)))
            tbox.append(torch.cat((gxy - gij, gwh), 1))
            anch.append(anchors[a])
            tcls.append(c)
        return tcls, tbox, indices, anch


def model():
    return Detect()


def train(model):
    det = model
    L = Loss(det)
    t = torch.tensor([[0, 1, 0.4, 0.6, 0.3, 0.5], [1, 0, 0.7, 0.2, 0.6, 0.4]])
    opt = torch.optim.SGD(det.parameters(), 0.1, 0.937, nesterov=True)

    @torch.compile
    def step(a, b):
        p = det([a, b])
        loss, items = L(p, t)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss, items

    rows = []
    for i in range(3):
        loss, items = step(data(2, 4, 6, 6), data(2, 6, 3, 3))
        rows.append([*items.tolist(), loss.item()])
    e, _ = L(det([data(2, 4, 6, 6), data(2, 6, 3, 3)]), torch.zeros(0, 6))
    det.eval()
    z, x = det([data(2, 4, 6, 6), data(2, 6, 3, 3)])
    grid = det.grid[0]
    xc = z[..., 4] > 0.4
    out = [z[i][xc[i]] for i in range(2)]
    conf, j = out[0][:, 5:].max(1, keepdim=True)
    y = torch.cat((out[0][:, :4], conf, j.float()), 1)[conf.view(-1) > 0.4]
    best = y[y[:, 4].argsort(descending=True)[:30]]
    return {"rows": rows, "z": z, "x": x, "empty": e, "grid": grid, "best": best}
