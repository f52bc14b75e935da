"""A word-level LSTM language model on the pages that Python's `help` shows.

Truncated backpropagation through time: the state goes on from batch to batch, cut off from its
history. The loop over time is part of the one program.

    python examples/lstm_text.py
"""

import collections
import math
import re
import sys
from pydoc_data.topics import topics

import numpy as np
import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn

WORDS, WIDTH, BATCH, LENGTH = 1000, 64, 16, 20
WANTED_PERPLEXITY = 80.0


def corpus():
    """The pages as numbers of words, and the words: the commonest ones, and one for all others."""
    text = " ".join(topics[name] for name in sorted(topics)).lower()
    tokens = re.findall(r"[a-z_]+|\d+|[^\w\s]", text)
    words = ["<other>", *(w for w, _ in collections.Counter(tokens).most_common(WORDS - 1))]
    numbers = {word: number for number, word in enumerate(words)}
    return np.array([numbers.get(token, 0) for token in tokens]), words


class Model(nn.Module):
    """Words embedded, an LSTM, and a score for each word that may follow."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, 2 * WIDTH, batch_first=True)
        self.head = nn.Linear(2 * WIDTH, WORDS)

    def forward(self, tokens, state):
        output, state = self.lstm(self.embed(tokens), state)
        return self.head(output), state


class Task:
    """The model, and the text in as many strands as a batch has rows."""

    def __init__(self, tokens):
        strands = len(tokens) // BATCH
        self.strands = tracejit.from_numpy(tokens[: strands * BATCH].reshape(BATCH, strands))
        self.model = Model()
        self.optimizer = tracejit.optim.Adam(self.model.parameters(), lr=5e-3)

    def batches(self):
        while True:
            self.state = tuple(tracejit.zeros(1, BATCH, 2 * WIDTH) for _ in range(2))
            for start in range(0, self.strands.shape[1] - LENGTH - 1, LENGTH):
                part = self.strands[:, start : start + LENGTH + 1]
                yield part[:, :-1], part[:, 1:]

    def step(self, tokens, following):
        scores, state = self.model(tokens, self.state)
        self.state = tuple(part.detach() for part in state)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(scores.reshape(-1, WORDS), following.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()


@tracejit.no_grad()
def perplexity(model, tokens):
    """Of text that no batch is from."""
    rows = tracejit.from_numpy(tokens[: 20 * 101].reshape(20, 101))
    scores, _ = model(rows[:, :-1], None)
    return math.exp(F.cross_entropy(scores.reshape(-1, WORDS), rows[:, 1:].reshape(-1)).item())


@tracejit.no_grad()
def written(model, words, count):
    """Words drawn one after the other; the state stands for all before."""
    model, state = tracejit.script(model), tuple(tracejit.zeros(1, 1, 2 * WIDTH) for _ in range(2))
    token, found = tracejit.tensor([[words.index("the")]]), ["the"]
    for _ in range(count):
        scores, state = model(token, state)
        token = tracejit.multinomial(F.softmax(scores[:, -1], dim=-1), 1)
        found.append(words[token.item()])
    return " ".join(found)


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=500, quick=25), argv)
    tokens, words = corpus()
    print(f"{len(tokens)} words, the {WORDS - 1} commonest kept")
    cut = len(tokens) * 19 // 20
    found = runs.train(lambda: Task(tokens[:cut]), options)
    model = found[-1].task.model
    wrong = runs.target(options, "held-out perplexity", perplexity(model, tokens[cut:]),
                        high=WANTED_PERPLEXITY)
    print(f"\nwritten by the model: {written(model, words, 30)}")
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
