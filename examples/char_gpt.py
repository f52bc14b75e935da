"""A character-level GPT on Python's own sources, which are real text on every machine.

Two transformer blocks with causal attention, AdamW with a warm-up, gradients clipped; the whole
step is one program. At the end it writes a few lines of its own.

    python examples/char_gpt.py
"""

import math
import os
import sys
from pathlib import Path

import numpy as np
import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn

BATCH, BLOCK, WIDTH, HEADS, LAYERS = 12, 48, 64, 4, 2
RATE, WARM_UP = 5e-3, 20
WANTED_BITS = 2.9


def text():
    """The sources of the standard library, module after module."""
    files = sorted(Path(os.__file__).parent.glob("*.py"))
    return "".join(path.read_text(errors="ignore") for path in files)[:1_500_000]


class Block(nn.Module):
    """Attention to what came before, then an MLP, each added to its input."""

    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_hidden = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        count, length, _ = x.shape
        q, k, v = (part.reshape(count, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.query_key_value(self.norm_attention(x)).split(WIDTH, dim=-1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(count, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm_hidden(x))))


class GPT(nn.Module):
    """Characters and places embedded, blocks, and the characters' embedding once more."""

    def __init__(self, letters):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for weight in (self.letter.weight, self.place.weight):
            nn.init.normal_(weight, std=0.05)

    def forward(self, tokens):
        x = self.letter(tokens) + self.place(tracejit.arange(tokens.shape[1]))
        return self.norm(self.blocks(x)) @ self.letter.weight.t()


class Task:
    """The model, its optimizer, and the text as numbers of characters."""

    def __init__(self, tokens, letters):
        self.tokens = tokens
        self.model = GPT(letters)
        self.optimizer = tracejit.optim.AdamW(self.model.parameters(), lr=RATE)
        self.schedule = tracejit.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / WARM_UP))

    def batches(self):
        rng = np.random.default_rng(0)
        while True:
            starts = rng.integers(0, len(self.tokens) * 9 // 10 - BLOCK - 1, BATCH)
            rows = self.tokens[starts[:, None] + np.arange(BLOCK + 1)]
            yield tracejit.from_numpy(rows[:, :-1].copy()), tracejit.from_numpy(rows[:, 1:].copy())
            self.schedule.step()

    def step(self, tokens, following):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(tokens).flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()


@tracejit.no_grad()
def held_out_bits(task):
    """Bits per character on the last tenth of the text, which no batch is from."""
    rest = task.tokens[len(task.tokens) * 9 // 10:]
    rows = tracejit.from_numpy(rest[: 40 * (BLOCK + 1)].reshape(40, BLOCK + 1))
    loss = F.cross_entropy(task.model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    return loss.item() / math.log(2)


@tracejit.no_grad()
def written(model, alphabet, length):
    """Text that the model writes, one character drawn after the other; the model is compiled."""
    forward = tracejit.script(model)
    tokens = tracejit.tensor([[alphabet.index(letter) for letter in "\ndef "]])
    while tokens.shape[1] < length:
        scores = forward(tokens[:, -BLOCK:])[:, -1]
        drawn = tracejit.multinomial(F.softmax(scores / 0.8, dim=-1), 1)
        tokens = tracejit.cat([tokens, drawn], dim=1)
    return "".join(alphabet[number] for number in tokens[0].tolist())


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=1200, quick=25), argv)
    source = text()
    alphabet = sorted({letter for letter in source if letter.isascii()})
    numbers = np.zeros(128, np.int64)
    numbers[[ord(letter) for letter in alphabet]] = range(len(alphabet))
    letters = np.frombuffer(source.encode("ascii", errors="ignore"), np.uint8)
    tokens = numbers[letters]
    print(f"{len(tokens)} characters of Python, {len(alphabet)} different ones")
    found = runs.train(lambda: Task(tokens, len(alphabet)), options)
    wrong = runs.target(options, "held-out bits per character", held_out_bits(found[-1].task),
                        high=WANTED_BITS)
    print(f"\nwritten by the model:{written(found[-1].task.model, alphabet, 160)}")
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
