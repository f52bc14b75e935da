"""A conditional random field over an LSTM: the forward algorithm as a loop, Viterbi decoding."""

import numpy as np
import torch
import torch.nn as nn

START, STOP, TAGS = 3, 4, 5


class BiLSTM_CRF(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeds = nn.Embedding(15, 5)
        self.lstm = nn.LSTM(5, 4, num_layers=1, bidirectional=True)
        self.hidden2tag = nn.Linear(8, TAGS)
        self.transitions = nn.Parameter(torch.randn(TAGS, TAGS))
        self.transitions.data[START, :] = -10000
        self.transitions.data[:, STOP] = -10000

    def _forward_alg(self, feats):
        alphas = torch.full((TAGS,), -10000.0)
        alphas[START] = 0.0
        for feat in feats:
            alphas = torch.logsumexp(alphas.unsqueeze(0) + self.transitions + feat.unsqueeze(1), 1)
        return torch.logsumexp(alphas + self.transitions[STOP], dim=0)

    def _get_lstm_features(self, sentence):
        hidden = (torch.zeros(2, 1, 4), torch.zeros(2, 1, 4))
        embeds = self.word_embeds(sentence).view(len(sentence), 1, -1)
        lstm_out, _ = self.lstm(embeds, hidden)
        return self.hidden2tag(lstm_out.view(len(sentence), 8))

    def _score_sentence(self, feats, tags):
        tags = torch.cat([torch.tensor([START], dtype=torch.long), tags])
        score = self.transitions[tags[1:], tags[:-1]].sum()
        score = score + feats.gather(1, tags[1:, None]).sum()
        return score + self.transitions[STOP, tags[-1]]

    def neg_log_likelihood(self, sentence, tags):
        feats = self._get_lstm_features(sentence)
        return self._forward_alg(feats) - self._score_sentence(feats, tags)

    @torch.no_grad()
    def viterbi(self, sentence):
        feats, backpointers = self._get_lstm_features(sentence), []
        forward_var = torch.full((1, TAGS), -10000.0)
        forward_var[0][START] = 0
        for feat in feats:
            best, ids = torch.max(forward_var + self.transitions, dim=1)
            forward_var = (best + feat).view(1, -1)
            backpointers.append(ids.tolist())
        terminal = forward_var + self.transitions[STOP]
        tag = terminal.argmax().item()
        path = [tag]
        for ids in reversed(backpointers):
            tag = ids[tag]
            path.append(tag)
        start = path.pop()
        assert start == START
        return terminal.max().item(), path[::-1]


def model():
    return BiLSTM_CRF()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-4)
    loss_of = torch.compile(model.neg_log_likelihood)
    sentences = [torch.from_numpy(rng.integers(0, 15, n)) for n in (7, 4, 7, 5)]
    before = model.viterbi(sentences[0])
    losses = []
    for sentence in sentences * 2:
        model.zero_grad()
        loss = loss_of(sentence, sentence % 3)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "before": before, "after": model.viterbi(sentences[0])}
