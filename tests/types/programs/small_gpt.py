"""A small GPT-like model: attention by hand and by the library, sampling, a compiled step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tracejit
import tracejit.nn as nn
import tracejit.nn.functional as F
from tracejit import Tensor


@dataclass
class Config:
    vocabulary: int = 65
    context: int = 32
    layers: int = 2
    heads: int = 4
    width: int = 64
    dropout: float = 0.0


class Attention(nn.Module):
    mask: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        mask = tracejit.tril(tracejit.ones(config.context, config.context, dtype=tracejit.bool))
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor, fused: bool = False) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        if fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
            y = self.dropout(F.softmax(scores, dim=-1)) @ v
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width), nn.GELU(approximate="tanh"),
            nn.Linear(4 * config.width, config.width), nn.Dropout(config.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Parameter(0.02 * tracejit.randn(config.context, config.width))
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._init_weights)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.tokens(ids) + self.positions[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    @tracejit.no_grad()
    def generate(self, ids: Tensor, count: int, temperature: float = 1.0, top: int = 5) -> Tensor:
        for _ in range(count):
            logits, _ = self(ids[:, -self.config.context :])
            logits = logits[:, -1, :] / temperature
            best, _ = tracejit.topk(logits, min(top, logits.size(-1)))
            logits[logits < best[:, [-1]]] = -float("inf")
            chosen = tracejit.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            ids = tracejit.cat((ids, chosen), dim=1)
        return ids

    def optimizer(self, lr: float) -> tracejit.optim.AdamW:
        decay = [p for p in self.parameters() if p.dim() >= 2]
        rest = [p for p in self.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        return tracejit.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


def main() -> None:
    config = Config()
    device = "cuda" if tracejit.cuda.is_available() else "cpu"
    model = tracejit.script(GPT(config).to(device))
    optimizer = model.optimizer(3e-4)
    data = tracejit.randint(config.vocabulary, (1000,))
    for number in range(3):
        starts = tracejit.randint(len(data) - config.context - 1, (4,)).tolist()
        x = tracejit.stack([data[i : i + config.context] for i in starts])
        y = tracejit.stack([data[i + 1 : i + 1 + config.context] for i in starts])
        _, loss = model(x.to(device), y.to(device))
        assert loss is not None
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        print(f"{number}: loss {loss.item():.3f}, norm {norm:.3f}")
    text = model.generate(tracejit.zeros((1, 1), dtype=tracejit.long), 4)[0].tolist()
    print(text, f"{sum(p.numel() for p in model.parameters()) / 1e3:.1f} k")


if __name__ == "__main__":
    main()
