"""Names and the languages they are from: a recurrent network by hand, letter by letter."""

import string

import torch
import torch.nn as nn

LETTERS = string.ascii_lowercase + "'"
NAMES = {"one": ["sato", "kimura", "ito", "yamada"], "two": ["o'neal", "murphy", "kelly"],
         "three": ["rossi", "bianchi", "greco", "conti"]}


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for li, letter in enumerate(line):
        tensor[li][0][LETTERS.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


def model():
    return RNN(len(LETTERS), 16, len(NAMES))


def train(model):
    criterion, learning_rate = nn.NLLLoss(), 0.1

    def train_one(category_tensor, line_tensor):
        hidden = model.initHidden()
        model.zero_grad()
        for i in range(line_tensor.size()[0]):
            output, hidden = model(line_tensor[i], hidden)
        loss = criterion(output, category_tensor)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-learning_rate)
        return output.detach(), loss.detach()

    train_one = torch.compile(train_one)
    losses, guesses = [], []
    for number, (category, names) in enumerate(NAMES.items()):
        for name in names:
            output, loss = train_one(torch.tensor([number]), line_to_tensor(name))
            top_n, top_i = output.topk(1)
            guesses.append([*NAMES][top_i[0].item()])
            losses.append(loss.item())
    return {"losses": losses, "guesses": guesses}
