"""Optimizers of users, in the idiom of PyTorch's own: the same steps in both libraries, eagerly
and in a captured training step."""

import importlib
import math
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


def classes(lib):
    """The optimizers, written with one of the two libraries."""
    Optimizer = lib.optim.Optimizer
    recorded = importlib.import_module(
        f"{lib.__name__}.optim.optimizer")._use_grad_for_differentiable

    class Lion(Optimizer):
        def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1):
            super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

        @lib.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with lib.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p.data.mul_(1 - group["lr"] * group["weight_decay"])
                    state = self.state[p]
                    if len(state) == 0:
                        state["exp_avg"] = lib.zeros_like(p)
                    exp_avg, (b1, b2) = state["exp_avg"], group["betas"]
                    update = exp_avg * b1 + p.grad * (1 - b1)
                    p.add_(update.sign_(), alpha=-group["lr"])
                    exp_avg.mul_(b2).add_(p.grad, alpha=1 - b2)
            return loss

    class Lamb(Optimizer):
        def __init__(self, params, lr=1e-2, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
            defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
            super().__init__(params, defaults)

        def step(self, closure=None):
            loss = None
            if closure is not None:
                loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    grad, state = p.grad.data, self.state[p]
                    if grad.is_sparse:
                        raise RuntimeError("Lamb does not support sparse gradients")
                    if len(state) == 0:
                        state["step"] = 0
                        state["exp_avg"] = lib.zeros_like(
                            p.data, memory_format=lib.preserve_format)
                        state["exp_avg_sq"] = lib.zeros_like(p.data)
                    m, v, (b1, b2) = state["exp_avg"], state["exp_avg_sq"], group["betas"]
                    state["step"] += 1
                    m.mul_(b1).add_(grad, alpha=1 - b1)
                    v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
                    weight_norm = p.data.pow(2).sum().sqrt().clamp(0, 10)
                    step = m / v.sqrt().add(group["eps"])
                    if group["weight_decay"] != 0:
                        step.add_(p.data, alpha=group["weight_decay"])
                    norm = step.pow(2).sum().sqrt()
                    if weight_norm == 0 or norm == 0:
                        trust = 1
                    else:
                        trust = weight_norm / norm
                    p.data.add_(step * trust, alpha=-group["lr"])
            return loss

    class SAM(Optimizer):
        def __init__(self, params, base, rho=0.05, **options):
            super().__init__(params, {"rho": rho, **options})
            self.base_optimizer = base(self.param_groups, **options)
            self.param_groups = self.base_optimizer.param_groups
            self.defaults.update(self.base_optimizer.defaults)

        @lib.no_grad()
        def first_step(self):
            for group in self.param_groups:
                scale = group["rho"] / (self._grad_norm() + 1e-12)
                for p in group["params"]:
                    if p.grad is not None:
                        self.state[p]["old_p"] = p.data.clone()
                        p.add_(p.grad * scale.to(p))
            self.zero_grad()

        @lib.no_grad()
        def second_step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.data = self.state[p]["old_p"]
            self.base_optimizer.step()

        @lib.no_grad()
        def step(self, closure=None):
            closure = lib.enable_grad()(closure)
            self.first_step()
            closure()
            self.second_step()

        def _grad_norm(self):
            norms = [p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]
            return lib.norm(lib.stack(norms), p=2)

    class Lookahead(Optimizer):
        def __init__(self, base, alpha=0.5, k=3):
            self.base, self.param_groups, self.defaults = base, base.param_groups, base.defaults
            self.state = defaultdict(dict)
            self._optimizer_step_pre_hooks = OrderedDict()
            self._optimizer_step_post_hooks = OrderedDict()
            for group in base.param_groups:
                group |= {"alpha": alpha, "k": k, "count": 0}

        @lib.no_grad()
        def step(self, closure=None):
            loss = self.base.step(closure)
            for group in self.param_groups:
                group["count"] += 1
                if group["count"] % group["k"] == 0:
                    for p in group["params"]:
                        state = self.base.state[p]
                        if "slow" not in state:
                            state["slow"] = lib.empty_like(p)
                            state["slow"].copy_(p)
                        slow = state["slow"]
                        slow.add_(p - slow, alpha=group["alpha"])
                        p.copy_(slow)
            return loss

    class Adan(Optimizer):
        def __init__(self, params, lr=1e-2, betas=(0.98, 0.92, 0.99), eps=1e-8, weight_decay=0.02):
            super().__init__(
                params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

        @lib.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                b1, b2, b3 = group["betas"]
                group["step"] = group.get("step", 0) + 1
                c1, c2, c3 = (1 - b ** group["step"] for b in group["betas"])
                ps = [p for p in group["params"] if p.grad is not None]
                gs = [p.grad for p in ps]
                for p in ps:
                    state = self.state[p]
                    if len(state) == 0:
                        for name in ("m", "v", "n"):
                            state[name] = lib.zeros_like(p)
                    if "before" not in state or group["step"] == 1:
                        state["before"] = p.grad.clone().mul_(-1.0)
                ms, vs, ns, neg = (
                    [self.state[p][k] for p in ps] for k in ("m", "v", "n", "before"))
                lib._foreach_add_(neg, gs)
                lib._foreach_mul_(ms, b1)
                lib._foreach_add_(ms, gs, alpha=1 - b1)
                lib._foreach_mul_(vs, b2)
                lib._foreach_add_(vs, neg, alpha=1 - b2)
                lib._foreach_mul_(neg, b2)
                lib._foreach_add_(neg, gs)
                lib._foreach_mul_(ns, b3)
                lib._foreach_addcmul_(ns, neg, neg, value=1 - b3)
                bottom = lib._foreach_sqrt(ns)
                lib._foreach_div_(bottom, math.sqrt(c3))
                lib._foreach_add_(bottom, group["eps"])
                lib._foreach_mul_(ps, 1 - group["lr"] * group["weight_decay"])
                lib._foreach_addcdiv_(ps, ms, bottom, value=-group["lr"] / c1)
                lib._foreach_addcdiv_(ps, vs, bottom, value=-group["lr"] * b2 / c2)
                lib._foreach_zero_(neg)
                lib._foreach_add_(neg, gs, alpha=-1.0)

    class Momentum(Optimizer):
        def __init__(self, params, lr=1e-2, momentum=0.9):
            defaults = {"lr": lr, "momentum": momentum, "differentiable": False}
            super().__init__(params, defaults)

        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("momentum", 0.9)

        def _init_group(self, group, params, grads, buffers):
            for p in group["params"]:
                if p.grad is not None:
                    params.append(p)
                    grads.append(p.grad)
                    buffers.append(self.state[p].get("momentum_buffer"))

        @recorded
        def step(self, closure=None):
            for group in self.param_groups:
                params, grads, buffers = [], [], []
                self._init_group(group, params, grads, buffers)
                for i, p in enumerate(params):
                    if buffers[i] is None:
                        buffers[i] = grads[i].clone().detach()
                    else:
                        buffers[i].mul_(group["momentum"]).add_(grads[i])
                    p.add_(buffers[i], alpha=-group["lr"])
                for p, buffer in zip(params, buffers):
                    self.state[p]["momentum_buffer"] = buffer

    return {
        "Lion": Lion, "Lamb": Lamb, "Adan": Adan, "Momentum": Momentum,
        "SAM": lambda p: SAM(p, lib.optim.SGD, lr=0.1, momentum=0.9),
        "Lookahead": lambda p: Lookahead(lib.optim.SGD(p, lr=0.1)),
    }


NAMES = ["Lion", "Lamb", "Adan", "Momentum", "SAM", "Lookahead"]


def trained(lib, name, captured=False, state=None):
    """Losses and parameters of a few steps; how often hooks were called; the state dict."""
    weights = [lib.nn.Parameter(lib.arange(6.0).reshape(2, 3) * 0.1 - 0.2),
               lib.nn.Parameter(lib.tensor([0.3, -0.4, 0.7]))]
    x, calls = lib.linspace(-1, 1, 8).reshape(4, 2), []
    optimizer = classes(lib)[name](weights)
    if state is not None:
        optimizer.load_state_dict(state)
    if name != "Lookahead":  # which does not call Optimizer.__init__
        optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("before"))
        optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("after"))

    def loss_of():
        return ((x @ weights[0] + weights[1]).tanh() ** 2).mean()

    def step():
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step((lambda: loss_of().backward()) if name == "SAM" else None)
        return loss.detach()

    run = lib.script(step) if captured else step
    losses = [run().item() for _ in range(8)]
    # SAM replaces `data`, Lamb's ratio is a tensor only in one of two cases
    if captured and name not in ("SAM", "Lamb"):
        assert run.report().cache_hits >= 3
    kept = None if name == "Lookahead" else optimizer.state_dict()
    return losses, [w.detach().numpy() for w in weights], calls, kept


def alike(mine, theirs):
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5)
    for one, other in zip(mine[1], theirs[1]):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert mine[2] == theirs[2]
    if theirs[3] is not None:
        states = [{k: sorted(s) for k, s in kept["state"].items()} for kept in (mine[3], theirs[3])]
        assert states[0] == states[1]
        groups = [[sorted(g) for g in kept["param_groups"]] for kept in (mine[3], theirs[3])]
        assert groups[0] == groups[1]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_steps(name, captured):
    alike(trained(tracejit, name, captured), trained(torch, name))


@pytest.mark.parametrize("name", ["Lion", "Lamb", "Adan", "Momentum"])
def test_continued_from_a_state_dict(name):
    results = []
    for lib in (tracejit, torch):
        state = trained(lib, name)[3]
        results.append(trained(lib, name, state=state))
    alike(*results)


def test_names_of_pytorchs_file():
    """What optimizers copied from PyTorch import."""
    from tracejit.optim import optimizer as mine

    wanted = """Optimizer ParamsT required _use_grad_for_differentiable _get_value _view_as_real
    _stack_if_compiling _default_to_fused_or_foreach _differentiable_doc _foreach_doc _fused_doc
    _maximize_doc _capturable_doc _params_doc _get_scalar_dtype _to_scalar
    _disable_dynamo_if_unsupported _get_capturable_supported_devices""".split()
    theirs = importlib.import_module("torch.optim.optimizer")
    assert [n for n in wanted if not (hasattr(mine, n) and hasattr(theirs, n))] == []
    assert repr(mine.required) == repr(theirs.required)
    assert mine._get_value(tracejit.tensor(2.0)) == mine._get_value(2.0) == 2.0
    assert mine._to_scalar(tracejit.ones(1)).shape == () and mine._to_scalar(3) == 3
    assert mine._get_scalar_dtype() is tracejit.float32
    pairs, grads = [tracejit.ones(2, dtype=tracejit.complex64)], [tracejit.ones(
        2, dtype=tracejit.complex64)]
    mine._view_as_real(pairs, grads)
    assert pairs[0].shape == grads[0].shape == (2, 2)
