"""A vision transformer: decayed groups, chained schedules, positions of another size."""


import math
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def data(*shape, k=0):
    return torch.sin(torch.arange(math.prod(shape)) * 2.3 + k).reshape(shape)


@dataclass
class ViTConfig:
    img: int = 8
    patch: int = 4
    dim: int = 12
    heads: int = 3
    depth: int = 2
    mlp_ratio: float = 2.0
    drop_path: float = 0.1


def drop_path(x, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True):
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = x.new_empty(shape).bernoulli_(keep_prob)
    if keep_prob > 0.0 and scale_by_keep:
        random_tensor.div_(keep_prob)
    return x * random_tensor


class LayerScale(nn.Module):
    def __init__(self, dim, init_values=1e-5, inplace=False):
        super().__init__()
        self.inplace = inplace
        self.gamma = nn.Parameter(init_values * torch.ones(dim))

    def forward(self, x):
        return x.mul_(self.gamma) if self.inplace else x * self.gamma


class Attention(nn.Module):
    fused_attn: torch.jit.Final[bool]

    def __init__(self, dim, num_heads):
        super().__init__()
        assert dim % num_heads == 0
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.fused_attn = hasattr(F, "scaled_dot_product_attention")
        self.qkv = nn.Linear(dim, dim * 3)
        self.q_norm = nn.Identity()
        self.k_norm = nn.LayerNorm(self.head_dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.fused_attn and not self.training:
            x = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        else:
            attn = (q * self.scale) @ k.transpose(-2, -1)
            x = attn.softmax(dim=-1) @ v
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg.dim
        self.norm1, self.attn, self.ls1 = (
            nn.LayerNorm(d, eps=1e-6),
            Attention(d, cfg.heads),
            LayerScale(d, 0.1),
        )
        self.norm2 = nn.LayerNorm(d, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(d, int(d * cfg.mlp_ratio)),
            nn.GELU(approximate="tanh"),
            nn.Linear(int(d * cfg.mlp_ratio), d),
        )

    def forward(self, x):
        x = x + drop_path(self.ls1(self.attn(self.norm1(x))), 0.0, self.training)
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, cfg: ViTConfig):
        super().__init__()
        self.cfg = cfg
        n = (cfg.img // cfg.patch) ** 2
        self.patch_embed = nn.Conv2d(3, cfg.dim, kernel_size=cfg.patch, stride=cfg.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, cfg.dim))
        self.pos_embed = nn.Parameter(torch.randn(1, n + 1, cfg.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, 5)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.constant_(m.bias, 0)
        elif isinstance(m, nn.LayerNorm):
            nn.init.constant_(m.bias, 0)
            nn.init.constant_(m.weight, 1.0)

    @torch.jit.ignore
    def no_weight_decay(self):
        return {"pos_embed", "cls_token"}

    def resize_pos(self, new):
        cls, grid = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        g = int(math.sqrt(grid.shape[1]))
        grid = F.interpolate(
            grid.reshape(1, g, g, -1).permute(0, 3, 1, 2),
            size=(new, new),
            mode="bicubic",
            align_corners=False,
            antialias=True,
        )
        return torch.cat([cls, grid.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def model():
    return ViT(ViTConfig())


def train(model):
    m = model
    decay, no_decay = [], []
    for n, p in m.named_parameters():
        (
            no_decay if p.ndim <= 1 or n in m.no_weight_decay() or n.endswith(".bias") else decay
        ).append(p)
    opt = torch.optim.AdamW(
        [{"params": no_decay, "weight_decay": 0.0}, {"params": decay}],
        lr=1e-3,
        weight_decay=0.05,
        betas=(0.9, 0.95),
        fused=False,
    )
    sizes = [len(decay), len(no_decay), sum(p.numel() for p in m.parameters())]
    x, y = data(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    sched = torch.optim.lr_scheduler.SequentialLR(
        opt,
        [
            torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2),
            torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4),
        ],
        milestones=[2],
    )

    @torch.compile
    def step(x, y):
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(m(x), y, label_smoothing=0.1)
        loss.backward()
        gn = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        return loss, gn

    history = []
    for i in range(4):
        loss, gn = step(x, y)
        sched.step()
        history.append((loss.item(), gn.item(), sched.get_last_lr()[0]))
    m.eval()
    with torch.inference_mode():
        out = m(x)
        prob, idx = out.softmax(-1).topk(2, dim=-1)
    return {
        "sizes": sizes,
        "history": history,
        "out": out,
        "prob": prob,
        "idx": idx,
        "config": str(asdict(m.cfg)),
        "resized": m.resize_pos(3),
    }
