"""Translation: a GRU reads a sentence, another writes one, looking back with additive attention."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SOS, EOS, HIDDEN = 0, 1, 12


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, input):
        return self.gru(self.embedding(input))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, max_length=4):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        token = torch.empty(batch_size, 1, dtype=torch.long).fill_(SOS)
        hidden, outputs, attentions = encoder_hidden, [], []
        for i in range(self.max_length):
            embedded = self.embedding(token)
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
            output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            if target_tensor is not None:
                token = target_tensor[:, i].unsqueeze(1)  # teacher forcing
            else:
                _, topi = output.topk(1)
                token = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden, torch.cat(attentions, 1)


def model():
    return nn.ModuleDict({"encoder": EncoderRNN(10, HIDDEN), "decoder": AttnDecoderRNN(HIDDEN, 9)})


def train(model):
    encoder, decoder = model["encoder"], model["decoder"]
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    criterion = nn.NLLLoss()

    @torch.compile
    def step(source, target):
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(source)
        decoder_outputs, _, _ = decoder(encoder_outputs, encoder_hidden, target)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        return loss.detach()

    rng = np.random.default_rng(0)
    losses = []
    for batch in (6, 6, 3):
        source = torch.from_numpy(rng.integers(2, 10, (batch, 5)))
        target = torch.cat([source[:, :3] - 1, torch.full((batch, 1), EOS)], dim=1)
        losses.append(step(source, target).item())
    with torch.no_grad():
        outputs, hidden, attentions = decoder(*encoder(source))
        words = outputs.topk(1)[1].squeeze(-1)
    return {"losses": losses, "words": words, "attentions": attentions}
