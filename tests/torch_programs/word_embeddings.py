"""Skip-grams with negative samples: embeddings of words whose neighbours are alike lie close."""

from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = ("the cat sat on the mat the dog sat on the rug a cat and a dog ran to the mat "
        "the king and the queen sat on the throne a king ran to the queen").split()


class SkipGram(nn.Module):
    def __init__(self, vocab_size, emb_dimension):
        super().__init__()
        self.u_embeddings = nn.Embedding(vocab_size, emb_dimension, sparse=False)
        self.v_embeddings = nn.Embedding(vocab_size, emb_dimension)
        initrange = 1.0 / emb_dimension
        nn.init.uniform_(self.u_embeddings.weight.data, -initrange, initrange)
        nn.init.constant_(self.v_embeddings.weight.data, 0)

    def forward(self, pos_u, pos_v, neg_v):
        emb_u, emb_v = self.u_embeddings(pos_u), self.v_embeddings(pos_v)
        score = torch.sum(torch.mul(emb_u, emb_v), dim=1)
        score = -F.logsigmoid(torch.clamp(score, max=10, min=-10))
        neg_score = torch.bmm(self.v_embeddings(neg_v), emb_u.unsqueeze(2)).squeeze()
        neg_score = -torch.sum(F.logsigmoid(-torch.clamp(neg_score, max=10, min=-10)), dim=1)
        return torch.mean(score + neg_score)


def model():
    return SkipGram(len(set(TEXT)), 6)


def train(model):
    counts = Counter(TEXT)
    words = sorted(counts)
    idx = {w: i for i, w in enumerate(words)}
    weights = np.array([counts[w] for w in words]) ** 0.75
    pairs = [(idx[TEXT[i]], idx[TEXT[j]]) for i in range(len(TEXT))
             for j in range(max(0, i - 2), min(len(TEXT), i + 3)) if i != j]
    rng, losses = np.random.default_rng(0), []
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.5)
    forward = torch.compile(model)
    for start in range(0, len(pairs), 32):
        u, v = torch.LongTensor(pairs[start:start + 32]).t()
        neg = torch.LongTensor(rng.choice(len(words), (len(u), 3), p=weights / weights.sum()))
        optimizer.zero_grad()
        loss = forward(u, v, neg)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        emb = F.normalize(model.u_embeddings.weight, dim=1)
        values, nearest = (emb @ emb[idx["cat"]]).topk(4)
    return {"losses": losses, "nearest": [words[i] for i in nearest.tolist()], "values": values}
