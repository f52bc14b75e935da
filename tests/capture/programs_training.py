"""Programs as PyTorch's tutorials have them: training loops whose steps are captured."""

from __future__ import annotations

import copy
import math

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit import nn, optim
from tracejit.nn import functional as F


def data(n, w, seed=0):
    return ((tj.arange(float(n * w)) * 12.9898 + seed).sin() * 1.3).view(n, w)


def filled(module):
    with tj.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_((tj.arange(float(p.numel())) * 12.9 + k).sin().view(p.shape) * 0.4)
    return module


class Net(nn.Module):
    def __init__(self, width=8, classes=3):
        super().__init__()
        self.fc1 = nn.Linear(4, width)
        self.fc2 = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def mnist_style_training(jit):
    model = filled(Net())
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)

    @jit
    def train_step(data, target):
        model.train()
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        return loss

    @jit
    def test_step(data, target):
        model.eval()
        with tj.no_grad():
            output = model(data)
            test_loss = F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct = pred.eq(target.view_as(pred)).sum().item()
        return test_loss, correct

    out = []
    for epoch in range(3):
        for batch in range(5):
            n = 6 if batch < 4 else 2
            x = data(n, 4, batch + epoch)
            y = (x.sum(1) > 0).long() + (x[:, 0] > 0.5).long()
            out.append(train_step(x, y).item())
        test_loss, correct = 0.0, 0
        for batch in range(2):
            x = data(6, 4, batch * 7)
            y = (x.sum(1) > 0).long()
            a, b = test_step(x, y)
            test_loss += a
            correct += b
        out += [test_loss / 12, correct]
    return out


def polynomial_by_hand(jit):
    x = tj.linspace(-math.pi, math.pi, 50)
    y = tj.sin(x)
    a, b, c, d = (tj.full((), v) for v in (0.1, 0.2, -0.1, 0.05))
    learning_rate = 1e-4

    @jit
    def step(a, b, c, d):
        y_pred = a + b * x + c * x**2 + d * x**3
        loss = (y_pred - y).pow(2).sum()
        grad_y_pred = 2.0 * (y_pred - y)
        grad_a = grad_y_pred.sum()
        grad_b = (grad_y_pred * x).sum()
        grad_c = (grad_y_pred * x**2).sum()
        grad_d = (grad_y_pred * x**3).sum()
        a -= learning_rate * grad_a
        b -= learning_rate * grad_b
        c -= learning_rate * grad_c
        d -= learning_rate * grad_d
        return loss.item()

    return [step(a, b, c, d) for _ in range(20)] + [a, b, c, d]


def polynomial_autograd(jit):
    x = tj.linspace(-math.pi, math.pi, 50)
    y = tj.sin(x)
    ps = [tj.full((), v, requires_grad=True) for v in (0.1, 0.2, -0.1, 0.05)]

    @jit
    def step(t):
        a, b, c, d = ps
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        loss.backward()
        with tj.no_grad():
            for p in ps:
                p -= 1e-4 * p.grad
                p.grad = None
        return loss

    return [step(t) for t in range(10)] + ps


def custom_function_of_a_tutorial(jit):
    class LegendrePolynomial3(tj.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return 0.5 * (5 * input**3 - 3 * input)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * input**2 - 1)

    x = tj.linspace(-math.pi, math.pi, 40)
    y = tj.sin(x)
    a = tj.full((), 0.0, requires_grad=True)
    b = tj.full((), -1.0, requires_grad=True)
    c = tj.full((), 0.0, requires_grad=True)
    d = tj.full((), 0.3, requires_grad=True)

    @jit
    def step():
        P3 = LegendrePolynomial3.apply
        y_pred = a + b * P3(c + d * x)
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with tj.no_grad():
            for p in (a, b, c, d):
                p -= 5e-4 * p.grad
                p.grad = None
        return loss.item()

    return [step() for _ in range(12)] + [a, b, c, d]


class DynamicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(tj.full((), 0.3))
        self.b = nn.Parameter(tj.full((), 0.5))

    def forward(self, x, order):
        y = self.a + self.b * x
        for exp in range(4, order):
            y = y + self.a * x**exp
        return y

    def string(self):
        return f"y = {self.a.item():.4f} + {self.b.item():.4f} x"


def dynamic_net(jit):
    model = DynamicNet()
    opt = optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    criterion = nn.MSELoss(reduction="sum")
    x = tj.linspace(-2, 2, 30)
    y = tj.sin(x)

    @jit
    def step(order):
        loss = criterion(model(x, order), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    return [step(o) for o in (4, 5, 6, 4, 6, 5, 4)] + [model.string()]


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.i2o = nn.Linear(input_size + hidden_size, output_size)

    def forward(self, input, hidden):
        combined = tj.cat((input, hidden), 1)
        return F.log_softmax(self.i2o(combined), dim=1), tj.tanh(self.i2h(combined))

    def init_hidden(self):
        return tj.zeros(1, self.hidden_size)


def char_rnn(jit):
    rnn = filled(RNN(5, 6, 3))
    criterion = nn.NLLLoss()

    @jit
    def train(category, line):
        hidden = rnn.init_hidden()
        rnn.zero_grad()
        for i in range(line.size(0)):
            output, hidden = rnn(line[i], hidden)
        loss = criterion(output, category)
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-0.05)
        return output, loss.item()

    out = []
    for k, n in enumerate((3, 7, 3, 20, 5, 7)):
        line = data(n, 5, k).view(n, 1, 5)
        out += train(tj.tensor([k % 3]), line)
    return out


def schedules_clipping_and_ema(jit):
    model = filled(Net())
    ema = copy.deepcopy(model)
    for p in ema.parameters():
        p.requires_grad_(False)
    opt = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)

    @jit
    def step(x, y):
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        with tj.no_grad():
            for p, q in zip(model.parameters(), ema.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
        return loss, norm

    out = []
    for k in range(12):
        x = data(5, 4, k)
        out += [*step(x, (x.sum(1) > 0).long()), opt.param_groups[0]["lr"]]
        sched.step()
    return [*out, ema.fc1.weight]


def accumulation_and_checkpoint(jit):
    model = filled(Net())
    opt = optim.Adam(model.parameters(), lr=1e-2)
    accum = 3

    @jit
    def micro(x, y, i):
        loss = F.nll_loss(model(x), y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
        return loss.detach()

    out, saved = [], None
    for i in range(14):
        x = data(4, 4, i)
        out.append(micro(x, (x[:, 0] > 0).long(), i))
        if i == 5:
            saved = copy.deepcopy({"m": model.state_dict(), "o": opt.state_dict()})
        if i == 9:
            model.load_state_dict(saved["m"])
            opt.load_state_dict(saved["o"])
    return [*out, *model.state_dict().values()]


def early_stopping_and_plateau(jit):
    model = filled(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    opt = optim.SGD(model.parameters(), lr=0.3)
    sched = optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
    loss_fn = nn.MSELoss()

    @jit
    def train(x, y):
        pred = model(x)
        loss = loss_fn(pred, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    @jit
    def evaluate(x, y):
        with tj.no_grad():
            pred = model(x)
            return loss_fn(pred, y).item(), ((pred > 0) == (y > 0)).type(tj.float32).mean().item()

    best, bad, out = float("inf"), 0, []
    for k in range(15):
        x = data(6, 4, k % 4)
        y = x.sum(1, keepdim=True)
        out.append(train(x, y))
        val, acc = evaluate(data(5, 4, 50), data(5, 4, 50).sum(1, keepdim=True))
        sched.step(val)
        out += [val, acc, opt.param_groups[0]["lr"]]
        if val < best - 1e-3:
            best, bad = val, 0
            state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            bad += 1
        if bad > 3:
            break
    model.load_state_dict(state)
    return [*out, evaluate(data(5, 4, 50), data(5, 4, 50).sum(1, keepdim=True))]


def hooks_that_are_methods(jit):
    class Clip:
        def __init__(self):
            self.limit, self.calls = 1.0, 0

        def __call__(self, grad):
            return grad.clamp(-self.limit, self.limit)

        def scale(self, grad):
            self.calls += 1
            return grad * self.limit

        def after(self, p):
            p.grad = p.grad * self.limit

    clip = Clip()
    w, v, u = (tj.tensor([1.0, 2.0], requires_grad=True) for _ in range(3))
    w.register_hook(clip.scale)
    v.register_hook(clip)
    u.register_post_accumulate_grad_hook(clip.after)

    @jit
    def f(x):
        ((w * x * 5).sum() + (v * x * 7).sum() + (u * x).sum()).backward()
        return x * 1

    out = []
    for k in range(7):
        w.grad = v.grad = u.grad = None
        if k == 3:
            clip.limit = 3.0
        if k == 5:
            clip.limit = tj.tensor([0.5, 2.0])
        out += [f(tj.tensor([1.0, -2.0])), w.grad, v.grad, u.grad, clip.calls]
    return out


def defaults_of_a_hook(jit):
    def hook(grad, scale=2.0):
        return grad * scale

    w = tj.tensor([1.0, 2.0], requires_grad=True)
    w.register_hook(hook)

    @jit
    def f(x):
        (w * x).sum().backward()
        return x * 1

    out = []
    for k in range(6):
        w.grad = None
        if k == 3:
            hook.__defaults__ = (9.0,)
        out += [f(tj.tensor([1.0, -2.0])), w.grad]
    return out


def parameters_replaced_under_an_optimizer(jit):
    out = []
    for make in (lambda p: tj.optim.SGD(p, 0.1, momentum=0.9), tj.optim.Adam):
        layers = [nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)]
        for layer in layers:
            nn.init.ones_(layer.weight)
        optimizer = make([layer.weight for layer in layers])

        @jit
        def step(x, layers=layers, optimizer=optimizer):
            optimizer.zero_grad()
            (layers[0](x) + layers[1](layers[0](x))).sum().backward()
            optimizer.step()

        first = layers[0].weight
        replaced = [first, first, nn.Parameter(tj.ones(1, 1)), layers[1].weight, first]
        for weight in replaced:
            layers[0].weight = weight
            for _ in range(2):
                step(tj.ones(1, 1))
            state = optimizer.state_dict()["state"]
            out += [len(optimizer.state), sorted(state), first, weight,
                    [sorted(of_one) for of_one in state.values()]]
    return out


PROGRAMS = programs_in(globals())
