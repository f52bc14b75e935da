"""nn.Transformer from sentences to sentences: masks, padding, label smoothing, greedy decoding."""

import math

import numpy as np
import torch
import torch.nn as nn

PAD, BOS, EOS = 0, 1, 2


class Seq2SeqTransformer(nn.Module):
    def __init__(self, vocab=11, emb_size=12, nhead=3):
        super().__init__()
        self.transformer = nn.Transformer(d_model=emb_size, nhead=nhead, num_encoder_layers=1,
                                          num_decoder_layers=1, dim_feedforward=16, dropout=0.0,
                                          batch_first=True, norm_first=True, activation="gelu")
        self.tok_emb = nn.Embedding(vocab, emb_size, padding_idx=PAD)
        self.place = nn.Parameter(torch.zeros(1, 10, emb_size))
        self.generator = nn.Linear(emb_size, vocab)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def embed(self, tokens):
        return self.tok_emb(tokens) * math.sqrt(12) + self.place[:, :tokens.size(1)]

    def forward(self, src, tgt):
        tgt_mask = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), diagonal=1)
        padding = src == PAD
        outs = self.transformer(self.embed(src), self.embed(tgt), tgt_mask=tgt_mask,
                                src_key_padding_mask=padding, tgt_key_padding_mask=tgt == PAD,
                                memory_key_padding_mask=padding)
        return self.generator(outs)

    @torch.no_grad()
    def greedy(self, src, max_len):
        ys = torch.full((src.size(0), 1), BOS)
        for _ in range(max_len):
            ys = torch.cat([ys, self(src, ys)[:, -1].argmax(-1, keepdim=True)], dim=1)
        return ys


def model():
    return Seq2SeqTransformer()


def train(model):
    rng = np.random.default_rng(0)
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @torch.compile
    def step(src, tgt):
        logits = model(src, tgt[:, :-1])
        optimizer.zero_grad()
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    for count, length in ((5, 5), (5, 5), (3, 4)):
        src = torch.from_numpy(rng.integers(3, 11, (count, length)))
        src[0, -2:] = PAD
        ends = torch.full((count, 1), EOS)
        losses.append(step(src, torch.cat([ends - 1, src.flip(1), ends], dim=1)).item())
    model.eval()
    logits = model(src, src)
    return {"losses": losses, "logits": logits, "greedy": model.greedy(src, 3).shape}
