"""Programs on module state, hooks and modes that change between calls."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def training_flag(jit):
    module = tj.nn.Sequential(tj.nn.Linear(3, 3), tj.nn.Dropout(0.5))
    f = jit(lambda x: module(x))
    x = tj.ones(2, 3)
    tj.manual_seed(3)
    with tj.no_grad():
        out = [f(x)]
        module.eval()
        out.append(f(x))
        module.train()
        out.append(f(x))
        module[1].p = 0.0
        out.append(f(x))
    return out


def layer_replaced(jit):
    module = tj.nn.Sequential(tj.nn.Linear(2, 2), tj.nn.ReLU())
    with tj.no_grad():
        module[0].weight.fill_(0.5)
        module[0].bias.fill_(-1.0)
    f = jit(lambda x: module(x).detach())
    x = tj.ones(1, 2) * -3
    out = [f(x)]
    module[1] = tj.nn.Tanh()
    out.append(f(x))
    module[0].weight = tj.nn.Parameter(tj.ones(2, 2))
    out.append(f(x))
    module[0].weight.data = tj.zeros(2, 2)
    out.append(f(x))
    module.append(tj.nn.Tanh())
    out.append(f(x))
    return out


def hook_added(jit):
    module = tj.nn.Linear(2, 2, bias=False)
    with tj.no_grad():
        module.weight.fill_(1.0)
    f = jit(lambda x: module(x).detach())
    x = tj.ones(1, 2)
    out = [f(x)]
    handle = module.register_forward_hook(lambda m, i, o: o * 10)
    out.append(f(x))
    handle.remove()
    out.append(f(x))
    return out


def state_dict_loaded(jit):
    module = tj.nn.Linear(2, 1)
    f = jit(lambda x: module(x).detach())
    x = tj.ones(1, 2)
    f(x)
    module.load_state_dict({"weight": tj.ones(1, 2), "bias": tj.zeros(1)})
    return [f(x)]


def requires_grad_switched(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: x * w)
    out = [f(tj.ones(2)).requires_grad]
    w.requires_grad_(False)
    out.append(f(tj.ones(2)).requires_grad)
    w.requires_grad_(True)
    out.append(f(tj.ones(2)).requires_grad)
    return out


def grad_mode_switched(jit):
    w = tj.ones(2, requires_grad=True)
    f = jit(lambda x: x * w)
    out = [f(tj.ones(2)).requires_grad]
    with tj.no_grad():
        out.append(f(tj.ones(2)).requires_grad)
    out.append(f(tj.ones(2)).requires_grad)
    return out


def default_dtype_switched(jit):
    f = jit(lambda n: tj.zeros(2) + 0.5)
    out = [f(1)]
    tj.set_default_dtype(tj.float64)
    try:
        out.append(f(1))
    finally:
        tj.set_default_dtype(tj.float32)
    return [*out, f(1)]


def forward_replaced(jit):
    module = tj.nn.ReLU()
    f = jit(lambda x: module(x))
    out = [f(tj.ones(1))]
    module.forward = lambda x: x * 100
    out.append(f(tj.ones(1)))
    del module.forward
    return [*out, f(tj.ones(1))]


def grad_mode_left_changed(jit):
    w = tj.ones(1, requires_grad=True)

    @jit
    def f(x, flag):
        tj.set_grad_enabled(flag)
        return x * w

    out = []
    for flag in (False, True, False, True):
        out.append(f(tj.ones(1), flag).requires_grad)
        out.append(tj.is_grad_enabled())
    tj.set_grad_enabled(True)
    return out


def hook_added_to_a_parameter_of_a_step(jit):
    w = tj.ones(2, requires_grad=True)

    @jit
    def step(x):
        (x * w).sum().backward()

    out = []
    for k in range(4):
        w.grad = None
        handle = w.register_hook(lambda g: g * 10) if k == 2 else None
        step(tj.ones(2))
        out.append(w.grad.clone())
        if handle is not None:
            handle.remove()
    return out


def attributes_before_what_tables_hold(jit):
    """`vars(module)[name] = fast`, as code for meta-learning writes."""
    linear = tj.nn.Linear(2, 2)
    model = tj.nn.Sequential(linear, tj.nn.BatchNorm1d(2).eval())
    model.last = tj.nn.Tanh()
    for p in model.parameters():
        tj.nn.init.ones_(p)
    f, out = jit(lambda x: (model(x), model.last(x), linear.weight * 2)), []
    new = {"weight": tj.zeros(2, 2), "bias": tj.ones(2) * 3}
    for module, name, value in ((linear, "weight", new["weight"]), (linear, "bias", new["bias"]),
                                (model[1], "running_mean", tj.ones(2)),
                                (model, "last", tj.nn.ReLU())):
        out.append(f(tj.arange(4.0).view(2, 2)))
        vars(module)[name] = value
        out.append(f(tj.arange(4.0).view(2, 2)))
    del vars(linear)["weight"]
    return [*out, f(tj.arange(4.0).view(2, 2))]


PROGRAMS = programs_in(globals())
