"""What programs of training steps are made of, for `worlds.py`: a module, its optimizer and
schedule, gradients, hooks, graphs kept from call to call.

In: nothing. Out: `TRAINING`, the tables that a program is drawn from.
"""

from __future__ import annotations

from tests.random_programs.world import World

SOURCE = '''
import tracejit as tj
from tracejit import nn, optim
from tracejit.nn import functional as F

RATE = 0.5

class Double(tj.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        ctx.save_for_backward(y)
        return y * 2

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3)
        self.scale = nn.Parameter(tj.ones(3))
        self.register_buffer("seen", tj.zeros(()))
        for k, p in enumerate(self.parameters()):
            p.data.copy_((tj.arange(float(p.numel())) * 0.7 + k).sin().view(p.shape))

    def forward(self, x):
        if self.training:
            self.seen += 1
        return self.l1(x).tanh() * self.scale

def gradient_of(y, p):
    return tj.autograd.grad(y.sum(), [p], allow_unused=True, retain_graph=True)[0]

def norm_of(net):
    squares = (p.grad.pow(2).sum() for p in net.parameters() if p.grad is not None)
    return sum(squares, tj.zeros(()))

def go_back(values):
    for x in values[-1:]:
        if isinstance(x, tj.Tensor) and x.requires_grad:
            x.sum().backward()

def start():
    net = Net()
    opt = optim.SGD([*net.l1.parameters(), *net.bn.parameters()], lr=0.1, momentum=0.9)
    adam = optim.Adam([net.scale], lr=0.1)
    world = dict(net=net, opt=opt, adam=adam, sched=optim.lr_scheduler.StepLR(opt, 2), memo={},
                 losses=[], saved={k: v.clone() for k, v in net.state_dict().items()})
    return world, {"flag": True}, [tj.arange(6.0).view(2, 3) * 0.3 - 0.5]

def also():
    return dict(RATE=RATE)

def build():
    cell = []
    def program(x, net, opt, adam, sched, memo, losses, saved, flag=True):
        y = net(x)
        loss, n, turns = y.pow(2).mean(), 1, 0
%s
        return %s
    return program, cell.append, cell
'''

STATEMENTS = (
    "y = net(x)", "y = net.l1(x)", "y = net.bn(y)", "y = y.relu()", "y = y.detach()",
    "y = y * net.scale", "y = Double.apply(y)", "y = y * RATE", "y = y.clone(); y.mul_(2)",
    "y = y * 1; y[0] = 0", "y.add_(1)", "y = y + memo.get('kept', 0)", "y = y[:1]", "n = n + 1",
    "loss = y.sum()", "loss = (y * y).mean()", "loss = loss + y.sum()", "loss = loss * n",
    "loss.backward()", "loss.backward()", "loss.backward(retain_graph=True)",
    "loss.sum().backward()", "opt.step()", "adam.step()", "opt.zero_grad()",
    "opt.zero_grad(set_to_none=False)", "sched.step()", "losses.append(loss.item())",
    "losses.append(loss)", "losses.append(loss.detach())", "memo['kept'] = y",
    "memo['kept'] = y.detach()", "memo['g'] = net.scale.grad", "memo['s'] = net.scale",
    "memo.clear()", "y.requires_grad and y.retain_grad(); memo['y'] = y",
    "y.requires_grad and y.register_hook(lambda g: g * 2)", "y = y.double().float()",
    "with tj.no_grad(): net.scale.add_(0.1)", "with tj.no_grad(): y = y * 2",
    "with tj.no_grad(): net.scale.mul_(0.5); memo['m'] = net.scale * 2",
    "with tj.enable_grad(): y = y * net.scale", "with tj.set_grad_enabled(flag): y = y * net.scale",
    "net.scale.data.mul_(0.5)", "net.scale.data = net.scale.data * 2", "net.scale.grad = None",
    "net.scale.grad = tj.ones(3)", "net.scale.requires_grad_(not net.scale.requires_grad)",
    "nn.utils.clip_grad_norm_(net.parameters(), 0.5)",
    "nn.utils.clip_grad_value_(net.parameters(), 0.1)", "net.train(not net.training)", "net.eval()",
    "net.load_state_dict(saved)", "saved.update(net.state_dict())",
    "opt.param_groups[0]['lr'] *= 0.5", "opt.state.clear()",
    "memo['g'] = gradient_of(y, net.scale)",
    "(g,) = tj.autograd.grad(loss, [net.l1.weight], create_graph=True); loss = loss + g.sum()",
    "memo['e'] = memo.get('e', 0) * 0.5 + loss.detach()", "x.add_(1)", "x = x * 2",
    "net.l1.weight.grad is not None and net.l1.weight.grad.mul_(2)", "flag = not flag",
    "net.scale.register_hook(lambda g: g + 1)", "net.zero_grad()",
    "y = F.dropout(y, 0.0, net.training)",
    "y = tj.utils.checkpoint.checkpoint(net.l1, y, use_reentrant=False)", "cell.append(n)",
    "y = tj.where(y > 0, y, y * net.scale)", "net.seen.zero_()", "net.l1.bias.data.zero_()",
    "loss = loss + norm_of(net).detach()",
)  # fmt: skip
TESTS = (
    "loss > 1", "loss.item() > 1", "net.training", "net.scale.grad is None", "y.requires_grad",
    "y.grad_fn is None", "len(losses) > 2", "opt.param_groups[0]['lr'] < 0.05", "n > 1", "flag",
    "tj.isfinite(loss)", "'kept' in memo", "net.scale.requires_grad", "y.sum() > 0",
    "x.shape[0] > 1", "net.scale.is_leaf", "loss.requires_grad", "y.is_leaf", "net.seen > 2",
    "losses and losses[-1] > 1",
)  # fmt: skip
LOOPS = (
    "for p in net.parameters():", "for _ in range(3):", "for _ in range(6):", "for row in x:",
    "while loss > 0.5 and turns < 4:", "for group in opt.param_groups:",
)  # fmt: skip
RETURNS = (
    "y", "loss", "y, loss", "loss.detach()", "(y, memo)", "net.scale", "net.scale.grad", "losses",
)  # fmt: skip
CHANGES = (
    "w['net'].eval()", "w['net'].train()", "w['opt'].zero_grad()", "w['memo'].clear()",
    "w['net'].scale.grad = tj.ones(3)", "w['net'].scale.requires_grad_(False)",
    "w['net'].scale.requires_grad_()", "x.append(x[-1][:1])", "x.append(tj.ones(5, 3))",
    "x.append(x[-1].clone().requires_grad_())", "x.append(x[-1] * w['net'].scale)",
    "w['opt'].param_groups[0]['lr'] = 0.3",
    "w['net'].l1 = tj.nn.Linear(3, 3).requires_grad_(False)",
    "w['net'].scale = tj.nn.Parameter(tj.ones(3))", "w['losses'].clear()", "s.update(RATE=2.0)",
    "w['net'].register_forward_hook(lambda m, i, o: o * 2)", "w['memo'].update(kept=tj.ones(3))",
    "w['net'].register_full_backward_hook(lambda m, i, o: None)", "a.update(flag=False)",
    "w['net'].l1.weight.register_hook(lambda g: g * 2)", "w['net'].scale.data.fill_(2)",
    "w['memo'].update(kept=w['net'].scale * 3)",
    "w['opt'].add_param_group({'params': [tj.ones(2, requires_grad=True)]})",
    "w['opt'].state.clear()", "w['opt'].param_groups[0]['weight_decay'] = 0.1", "w['sched'].step()",
    "[p.grad.zero_() for p in w['net'].parameters() if p.grad is not None]", "w['net'].bn.eval()",
    "s['go_back'](w['losses'])",
    "s['go_back']([*w['memo'].values()])",
)  # fmt: skip
RAISING = ("y = y + memo['q']", "assert flag", "y = y + losses[3]")
TRAINING = World(SOURCE, STATEMENTS, TESTS, LOOPS, RETURNS, CHANGES, RAISING)
