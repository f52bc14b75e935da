"""What older code asks of torch.jit and torch.autograd: scripted functions, Variable, `.data`."""


import torch
import torch.nn as nn
from torch import Tensor
from torch.autograd import Variable


@torch.jit.script
def fused_gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


class LSTMCell(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.randn(4 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.randn(4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size))

    def forward(self, input: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        hx, cx = state
        gates = torch.mm(input, self.weight_ih.t()) + torch.mm(hx, self.weight_hh.t()) + self.bias
        ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
        cy = torch.sigmoid(forgetgate) * cx + torch.sigmoid(ingate) * torch.tanh(cellgate)
        return torch.sigmoid(outgate) * torch.tanh(cy), cy


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = LSTMCell(3, 4)

    def forward(self, input: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Tensor:
        if state is None:
            zeros = torch.zeros(input.size(1), 4, dtype=input.dtype)
            state = (zeros, zeros)
        outputs: list[Tensor] = []
        for step in input.unbind(0):
            state = self.cell(step, state)
            outputs.append(state[0])
        return fused_gelu(torch.stack(outputs))


def model():
    return Layer()


def train(model):
    x = Variable(torch.linspace(-1, 1, 30).view(5, 2, 3), requires_grad=True)
    scripted = torch.compile(model)
    out = scripted(x)
    loss = out.pow(2).sum()
    loss.backward()
    traced = torch.jit.trace(fused_gelu, (torch.zeros(2),))
    for p in model.parameters():
        p.data.add_(p.grad.data, alpha=-0.1)
    torch.cuda.empty_cache()
    used = 0 if torch.cuda.is_available() else torch.cuda.memory_allocated()
    after = float(scripted(x).pow(2).sum().data)
    return {"loss": loss.item(), "after": after, "grad": x.grad, "traced": traced(torch.ones(3)),
            "is": isinstance(x, Variable), "used": used}
