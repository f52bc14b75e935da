"""Attention with bucketed relative positions, RMS norm, tied embeddings, ignored labels."""

import math
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parameter import Parameter


def data(*shape, k=0):
    return torch.sin(torch.arange(math.prod(shape)) * 2.3 + k).reshape(shape)


class T5Attention(nn.Module):
    def __init__(self, d=8, h=2, buckets=8, maxd=16, bidir=True):
        super().__init__()
        self.h, self.dk, self.buckets, self.maxd, self.bidir = h, d // h, buckets, maxd, bidir
        for n in "qkvo":
            setattr(self, n, nn.Linear(d, d, bias=False))
        self.rel = nn.Embedding(buckets, h)

    @staticmethod
    def _relative_position_bucket(
        relative_position, bidirectional=True, num_buckets=32, max_distance=128
    ):
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        else:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        large = max_exact + (
            torch.log(relative_position.float() / max_exact)
            / math.log(max_distance / max_exact)
            * (num_buckets - max_exact)
        ).to(torch.long)
        large = torch.min(large, torch.full_like(large, num_buckets - 1))
        relative_buckets += torch.where(is_small, relative_position, large)
        return relative_buckets

    def compute_bias(self, q, k):
        ctx = torch.arange(q, dtype=torch.long, device=self.rel.weight.device)[:, None]
        mem = torch.arange(k, dtype=torch.long)[None, :]
        b = self._relative_position_bucket(mem - ctx, self.bidir, self.buckets, self.maxd)
        return self.rel(b).permute([2, 0, 1]).unsqueeze(0)

    def forward(self, x, mask=None):
        bs, n = x.shape[:2]

        def shape(s):
            return s.view(bs, -1, self.h, self.dk).transpose(1, 2)

        q, k, v = shape(self.q(x)), shape(self.k(x)), shape(self.v(x))
        scores = torch.matmul(q, k.transpose(3, 2))
        bias = self.compute_bias(n, n)
        if mask is not None:
            bias = bias + mask
        scores += bias
        w = F.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o(
            torch.matmul(w, v).transpose(1, 2).contiguous().view(bs, -1, self.h * self.dk)
        )


class RMS(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = Parameter(torch.ones(d))
        self.variance_epsilon = eps

    def forward(self, h):
        var = h.to(torch.float32).pow(2).mean(-1, keepdim=True)
        h = h * torch.rsqrt(var + self.variance_epsilon)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            h = h.to(self.weight.dtype)
        return self.weight * h


def model():
    return tied(
        nn.Sequential(
            OrderedDict(
                [
                    ("emb", nn.Embedding(11, 8, padding_idx=0)),
                    ("norm", RMS(8)),
                    ("attn", T5Attention()),
                    ("out", nn.Linear(8, 11, bias=False)),
                ]
            )
        )
    )


def tied(net):
    net.out.weight = net.emb.weight
    return net


def train(model):
    net = model
    ids = torch.tensor([[1, 4, 2, 0], [3, 9, 10, 5]])
    am = ids.ne(0)
    ext = (1.0 - am[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
    opt = torch.optim.Adagrad(net.parameters(), lr=0.1)

    @torch.compile
    def step(ids, ext):
        h = net.norm(net.emb(ids))
        h = h + net.attn(h, ext)
        logits = net.out(h) * 8**-0.5
        labels = ids.masked_fill(ids == 0, -100)
        loss = F.cross_entropy(
            logits[..., :-1, :].contiguous().view(-1, logits.size(-1)),
            labels[..., 1:].contiguous().view(-1),
        )
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss, logits

    losses, texts = [], []
    for epoch in range(3):
        loss, logits = step(ids, ext)
        losses.append(loss.item())
    texts.append(f"{net.out.weight is net.emb.weight} {len(list(net.parameters()))} {net.emb}")
    return {"losses": losses, "logits": logits, "texts": texts, "grad": net.emb.weight.grad}
