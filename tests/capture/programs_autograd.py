"""Programs on gradients through, inside and around captured calls."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import filled
from tests.capture.program_list import programs_in

F = tj.nn.functional


def data(n=6, d=4):
    x = tj.arange(float(n * d)).view(n, d) / (n * d)
    return x, tj.arange(n) % 3


def model():
    return filled(tj.nn.Sequential(tj.nn.Linear(4, 5), tj.nn.ReLU(), tj.nn.Linear(5, 3)))


def backward_through_call(jit):
    w = tj.ones(4, requires_grad=True)
    f = jit(lambda x: (x * w).tanh().sum())
    out = []
    for k in range(3):
        loss = f(tj.arange(4.0) * k)
        loss.backward()
        out += [loss.detach(), w.grad.clone()]
    return out


def forward_compiled_model(jit):
    net = model()
    f = jit(lambda x: net(x))
    x, y = data()
    out = []
    for _ in range(3):
        net.zero_grad()
        F.cross_entropy(f(x), y).backward()
        out += [p.grad.clone() for p in net.parameters()]
    return out


def whole_step(jit, optimizer, **options):
    net = model()
    opt = optimizer(net.parameters(), **options)

    @jit
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    out = []
    for n in (6, 6, 3, 6, 1):
        x, y = data(n)
        out.append(step(x, y).detach())
    return [*out, *(p.detach() for p in net.parameters()), *(p.grad for p in net.parameters())]


def step_sgd(jit):
    return whole_step(jit, tj.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01)


def step_adam(jit):
    return whole_step(jit, tj.optim.Adam, lr=0.01)


def step_adamw(jit):
    return whole_step(jit, tj.optim.AdamW, lr=0.01, weight_decay=0.1)


def learning_rate_changes(jit):
    net = model()
    opt = tj.optim.SGD(net.parameters(), lr=0.1)
    x, y = data()

    @jit
    def step():
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    out = []
    for lr in (0.1, 0.05, 0.0, 1.0):
        opt.param_groups[0]["lr"] = lr
        out.append(step())
    return [*out, *(p.detach() for p in net.parameters())]


def gradient_accumulation(jit):
    net = model()
    x, y = data()

    @jit
    def micro(x, y):
        (F.cross_entropy(net(x), y) / 2).backward()

    out = []
    for k in range(4):
        micro(x, y)
        if k % 2:
            out += [p.grad.clone() for p in net.parameters()]
            net.zero_grad()
    return out


def clipping(jit):
    net = model()
    opt = tj.optim.SGD(net.parameters(), lr=0.5)
    x, y = data()

    @jit
    def step():
        opt.zero_grad()
        F.cross_entropy(net(x * 10), y).backward()
        norm = tj.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        opt.step()
        return norm

    return [step(), step(), *(p.detach() for p in net.parameters())]


def gradients_inside(jit):
    @jit
    def f(x):
        x = x.detach().requires_grad_()
        y = (x**3).sum()
        (g,) = tj.autograd.grad(y, x, create_graph=True)
        (h,) = tj.autograd.grad(g.sum(), x)
        return g.detach(), h

    return [f(tj.arange(3.0)), f(tj.arange(4.0) - 2)]


def second_order_through_call(jit):
    f = jit(lambda x: (x.sin() * x).sum())
    x = tj.arange(4.0).requires_grad_()
    out = []
    for _ in range(2):
        (g,) = tj.autograd.grad(f(x), x, create_graph=True)
        (h,) = tj.autograd.grad(g.sum(), x)
        out += [g.detach(), h]
    return out


def gradient_penalty(jit):
    w = tj.ones(3, requires_grad=True)

    @jit
    def loss(x):
        x = x.detach().requires_grad_()
        y = (x * w).tanh().sum()
        (g,) = tj.autograd.grad(y, x, create_graph=True)
        return y + (g * g).sum()

    out = []
    for k in range(2):
        w.grad = None
        loss(tj.arange(3.0) + k).backward()
        out.append(w.grad.clone())
    return out


def partial_outputs(jit):
    w = tj.ones(3, requires_grad=True)
    f = jit(lambda x: (x * w, (x + w).sum(), x.argmax()))
    out = []
    for _ in range(2):
        w.grad = None
        a, b, i = f(tj.arange(3.0))
        b.backward()
        out += [w.grad.clone(), a.requires_grad, i, i.requires_grad]
    return out


def retain_graph(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: (x * w * w).sum())
    out = []
    for _ in range(2):
        w.grad = None
        y = f(tj.ones(2))
        y.backward(retain_graph=True)
        y.backward()
        out.append(w.grad.clone())
        try:
            y.backward()
        except RuntimeError as error:
            out.append("second time" in str(error))
    return out


def saved_input_modified(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: (x * w).sum())
    out = []
    for _ in range(2):
        x = tj.ones(2)
        y = f(x)
        x.add_(1)
        try:
            y.backward()
            out.append(w.grad)
        except RuntimeError as error:
            out.append("modified by an inplace operation" in str(error))
    return out


def hook_on_input(jit):
    w = tj.ones(2, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.clone()) or g * 10)
    f = jit(lambda x: (x * w).sum())
    for _ in range(3):
        f(tj.arange(2.0) + 1).backward()
    return [w.grad, seen]


def loss_returned_after_backward(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x):
        loss = (x * w * w).sum()
        loss.backward()
        return loss

    out = []
    for _ in range(2):
        w.grad = None
        loss = f(tj.ones(2))
        out += [loss.detach(), loss.requires_grad, w.grad.clone()]
        try:
            loss.backward()
        except RuntimeError as error:
            out.append("second time" in str(error))
    return out


def custom_function(jit):
    class Cube(tj.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 7 * x

    f = jit(lambda x: Cube.apply(x).sum())
    x = tj.arange(3.0).requires_grad_()
    out = []
    for _ in range(2):
        x.grad = None
        f(x).backward()
        out.append(x.grad.clone())
    return out


def detached_branch(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: (x * w * (w * 2).detach()).sum())
    out = []
    for _ in range(2):
        w.grad = None
        f(tj.ones(2)).backward()
        out.append(w.grad.clone())
    return out


def no_grad_inside(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x):
        with tj.no_grad():
            k = (x * w).sum()
        return (x * w).sum() * k

    out = []
    for _ in range(2):
        w.grad = None
        f(tj.ones(2)).backward()
        out.append(w.grad.clone())
    return out


def non_leaf_input(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda h: (h * h).sum())
    out = []
    for _ in range(2):
        w.grad = None
        f(w * 3).backward()
        out.append(w.grad.clone())
    return out


def frozen_layer(jit):
    net = model()
    f = jit(lambda x: net(x).sum())
    x, _ = data()
    f(x).backward()
    net[0].requires_grad_(False)
    net.zero_grad()
    f(x).backward()
    return [p.grad for p in net.parameters()]


def dropout_step(jit):
    tj.manual_seed(4)
    net = tj.nn.Sequential(tj.nn.Linear(4, 8), tj.nn.Dropout(0.5), tj.nn.Linear(8, 3))
    opt = tj.optim.SGD(net.parameters(), lr=0.1)
    x, y = data()

    @jit
    def step():
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return [step() for _ in range(4)] + [p.detach() for p in net.parameters()]


def layer_norm_embedding(jit):
    emb, norm = filled(tj.nn.Embedding(7, 4)), filled(tj.nn.LayerNorm(4))
    f = jit(lambda i: F.gelu(norm(emb(i))).sum())
    out = []
    for i in (tj.tensor([[1, 2], [2, 6]]), tj.tensor([[0, 0, 3]])):
        emb.zero_grad()
        norm.zero_grad()
        f(i).backward()
        out += [emb.weight.grad.clone(), norm.weight.grad.clone(), norm.bias.grad.clone()]
    return out


def backward_in_a_later_segment(jit):
    @jit
    def f(x):
        v = tj.sin(x).narrow(1, 0, 1)
        v = v + 1 if bool(tj.any(v > 2)) else v * 2
        (v.mean() + x.mean()).backward()

    out = []
    for n in (3, 5):
        x = tj.arange(float(n)).view(n, 1).requires_grad_()
        f(x)
        out.append(x.grad)
    return out


def backward_outside_of_broken_recording(jit):
    @jit
    def f(x, factor):
        y = x[1:].clone()
        y.view(-1)[:1] *= factor
        return y.div(factor).clamp(max=2) * y.sum().item()

    out = []
    for n in (3, 4):
        x = tj.arange(float(n)).view(n, 1).requires_grad_()
        f(x, 3.25).sum().backward()
        out.append(x.grad)
    return out


def backward_of_what_another_call_made(jit):
    @jit
    def f(x):
        y = tj.reciprocal(x)
        x.detach().view(-1).tanh_()
        ((y * y).sum()).backward()

    x = tj.arange(4.0) + 1
    x.requires_grad_()
    f(x)
    return [x, x.grad]


def saved_result_is_written_in_place(jit):
    @jit
    def f(x, times):
        y = tj.atan(tj.square(x))
        z = y.mean() - y
        for _ in range(times):
            y.exp_()
        return z + y

    @jit
    def g(x):
        y = tj.clamp(x, min=-1)
        y.exp_()
        return y.shape[0] / y

    out = []
    for function in (lambda x: f(x, 0), lambda x: f(x, 1), lambda x: f(x, 2), g):
        x = tj.arange(3.0).requires_grad_()
        try:
            function(x).sum().backward()
            out.append(x.grad)
        except RuntimeError as error:
            out.append(error)
    return out


def result_is_written_between_call_and_backward(jit):
    f = jit(lambda x: x.exp() * 2)
    g = jit(lambda x: (x * 2).exp_())
    out = []
    for function in (f, g, f):
        x = tj.arange(3.0).requires_grad_()
        y = function(x)
        (y * y).sum().backward()
        out.append(x.grad)
    return out


def backward_inside_through_outer_history(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(h):
        (h * h).sum().backward()

    out = []
    for k in (3.0, 5.0, -1.0):
        w.grad = None
        f(w * k if k > 0 else w.exp())
        out.append(w.grad.clone())
    return out


def detached_result_beside_its_source(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def f(x):
        y = x * w
        return y.detach(), y, y

    out = []
    for _ in range(3):
        a, b, c = f(tj.arange(2.0))
        out += [a.requires_grad, b.requires_grad, a is b, b is c]
        a.add_(1)
        out.append(b.detach().clone())
    return out


def views_whose_base_gets_a_history_later(jit):
    def repeated(x):
        y = (x * 2).detach()
        rows = y[None].expand(2, -1)
        y[...] = F.mse_loss(x, x * 0.5)
        return rows

    def row(x):
        y = x * 2
        first = y[0]
        y.mul_(x)
        return first, y

    def parts(x):
        y = tj.zeros(3)
        views = [y[:2], y[1:]]
        y += x.sin()
        return views

    out = []
    for body in (repeated, row, parts):
        f = jit(body)
        for shift in (0.0, 1.0, 2.0):
            x = (tj.arange(3.0) + shift).requires_grad_()
            found = f(x)
            rows = found if isinstance(found, (list, tuple)) else [found]
            sum((t * t).sum() for t in rows).backward()
            out += [found, x.grad]
    return out


PROGRAMS = programs_in(globals())
