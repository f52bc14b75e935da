"""Programs that mix control flow, writes, views, optimizers, hooks, module state, sizes and errors.

Each shows what its caller's containers, attributes and tensors hold after every call.
"""

from __future__ import annotations

import collections
import dataclasses

import tracejit as tj
from tests.capture.program_inputs import data, filled
from tests.capture.program_list import programs_in
from tracejit import nn

SIZES = (4, 1, 0, 7, 4)


def looped_writes_through_a_view(jit):
    @jit
    def f(x, limit):
        rows, total = x.t(), tj.zeros(())
        for t in range(x.shape[0]):
            x[t] = x[t] * 0.5 + t
            if rows[0, t] > limit:
                rows[1, t] = -1.0
            total = total + rows[1, t]
        return total, rows

    out = []
    for n in (3, 1, 4):
        x = data(n)
        out += [f(x, 1.0), x, x._version > 0]
    return out


def branch_rebinds_to_a_view_then_writes(jit):
    @jit
    def f(x):
        y = x[1:]
        if x.sum() > 0:
            y = x[:-1]
        y.add_(10)
        return y, x * 1

    out = []
    for sign in (1.0, -1.0, 1.0):
        x = (tj.arange(4.0) + 1) * sign
        y, copy = f(x)
        y.mul_(2)
        out += [x, y, copy]
    return out


def while_may_give_the_argument_back(jit):
    @jit
    def f(x):
        while x.norm() > 1:
            x = x / 2
        return x

    out = []
    for values in ([3.0, 4.0], [0.3, 0.4], [0.0, 1.0]):
        x = tj.tensor(values)
        y = f(x)
        y.add_(1)
        out += [x, y, y is x]
    return out


def loop_may_give_the_argument_back(jit):
    @jit
    def f(x, h):
        for t in range(x.shape[0]):
            h = h + x[t]
        return h

    out = []
    for n in SIZES:
        h = tj.ones(3)
        y = f(data(n), h)
        y.mul_(2)
        out += [h, y, y is h]
    return out


def module_counts_and_averages_in_a_branch(jit):
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", tj.zeros(3))
            self.register_buffer("count", tj.zeros((), dtype=tj.int64))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            if self.training and x.abs().max() > 1:
                self.mean.mul_(0.5).add_(x.mean(0) * 0.5)
                self.count += 1
            return x - self.mean

    gate = Gate()
    f = jit(lambda x: gate(x))
    out = []
    for k, scale in enumerate((1.0, 0.1, 3.0, 2.0)):
        gate.train(k != 3)
        out += [f(data(4) * scale), gate.mean.clone(), gate.count.clone(), gate.calls]
    return out


def skipped_steps_of_an_optimizer(jit):
    model = filled(nn.Linear(3, 1))
    optimizer = tj.optim.Adam(model.parameters(), lr=0.1)
    skipped = tj.zeros((), dtype=tj.int64)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        finite = tj.isfinite(sum(p.grad.abs().sum() for p in model.parameters()))
        if finite:
            optimizer.step()
        else:
            skipped.add_(1)
        return loss.detach()

    out = []
    for scale in (1.0, float("inf"), 2.0, float("nan"), 1.0):
        out += [step(data(4) * scale), skipped.clone(), model.weight.detach().clone()]
    return [*out, [s["step"] for s in optimizer.state.values()]]


def loss_scale_grows_and_shrinks(jit):
    w, scale, good = tj.ones(2, requires_grad=True), tj.tensor(8.0), tj.tensor(0)

    @jit
    def step(x):
        w.grad = None
        ((w * x).sum() * scale).backward()
        with tj.no_grad():
            if tj.isinf(w.grad).any():
                scale.mul_(0.5)
                good.zero_()
            else:
                w.sub_(w.grad / scale * 0.1)
                good.add_(1)
                if good >= 2:
                    scale.mul_(2)
                    good.zero_()

    out = []
    for k in range(7):
        step(tj.tensor([1.0, float("inf") if k == 3 else 2.0]))
        out += [w.detach().clone(), scale.clone(), good.clone(), w.grad]
    return out


def early_stopping_keeps_the_best(jit):
    w = tj.tensor([3.0, -2.0], requires_grad=True)
    best, kept = tj.tensor(float("inf")), tj.zeros(2)
    history = []

    @jit
    def step(lr):
        loss = (w * w).sum()
        (grad,) = tj.autograd.grad(loss, w)
        with tj.no_grad():
            if loss < best:
                best.copy_(loss)
                kept.copy_(w)
            w.sub_(lr * grad)
        history.append(loss.item())
        return loss.detach()

    return [*[step(lr) for lr in (0.1, 0.9, 1.5, 0.2, 0.45)], best, kept, w, history]


def hook_that_clips_in_a_loop(jit):
    w = tj.ones(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.norm().item()) or g.clamp(-1, 1))

    @jit
    def f(x):
        h = tj.zeros(3)
        for t in range(x.shape[0]):
            h = tj.tanh(h * w + x[t])
        return h.sum()

    out = []
    for n in (4, 1, 9):
        f(data(n) * 5).backward()
        out.append(w.grad.clone())
        w.grad = None
    return [*out, len(seen), all(norm >= 0 for norm in seen)]


def forward_hook_that_branches(jit):
    layer = filled(nn.Linear(3, 3))
    layer.register_forward_hook(lambda m, i, o: o * 2 if o.sum() > 0 else None)
    f = jit(lambda x: layer(x).relu())
    out = []
    for k in (1.0, -1.0, 2.0):
        layer.zero_grad()
        y = f(data(4) * k)
        y.sum().backward()
        out += [y, layer.weight.grad.clone()]
    return out


def error_in_a_loop_after_writes(jit):
    @jit
    def f(x, seen):
        for t in range(x.shape[0]):
            x[t] += 1
            seen.append(t)
            if x[t].max() > 3:
                raise ValueError(f"row {t}")
        return x.sum()

    out = []
    for scale in (1.0, 3.0, 1.5):
        x, seen = data(6) * scale, []
        try:
            out.append(f(x, seen))
        except ValueError as error:
            out.append(error)
        out += [x, seen]
    return out


def finally_and_else_with_tensors(jit):
    log = []

    @jit
    def f(x, k):
        try:
            if x.sum() > 0:
                y = x[k] * 2
            else:
                y = x[0] - 1
        except IndexError as error:
            log.append(type(error).__name__)
            y = x * 0
        else:
            y = y + 1
        finally:
            log.append(k)
            x.add_(1)
        return y

    x = tj.arange(3.0) - 1.5
    return [*[f(x, k) for k in (0, 2, 5, 1)], x, log]


def assertion_between_two_writes(jit):
    @jit
    def f(x, box):
        x.add_(1)
        box["before"] = x.clone()
        assert (x < 5).all(), "too large"
        x.mul_(2)
        box["after"] = x.clone()
        return x * 1

    x, out = tj.zeros(2), []
    for _ in range(4):
        box = {}
        try:
            out.append(f(x, box))
        except AssertionError as error:
            out.append(error)
        out += [x.clone(), box]
    return out


def dataclass_state_through_a_loop(jit):
    @dataclasses.dataclass
    class State:
        hidden: tj.Tensor
        steps: int = 0

    @jit
    def f(state, x):
        for t in range(x.shape[0]):
            state.hidden = state.hidden * 0.5 + x[t]
            state.steps += 1
        return State(state.hidden * 2, state.steps)

    state, out = State(tj.zeros(3)), []
    for n in SIZES:
        made = f(state, data(n))
        out += [made.hidden, made.steps, state.hidden, state.steps]
    return out


def queue_of_recent_tensors(jit):
    recent = collections.deque(maxlen=3)

    @jit
    def f(x):
        recent.append(x * 2)
        total = recent[0]
        for k in range(1, len(recent)):
            total = total + recent[k] if x.sum() > 0 else total - recent[k]
        return total

    return [*[f(tj.ones(2) * k) for k in (1.0, -2.0, 3.0, 4.0, -5.0)], list(recent)]


def cache_of_keys_and_values(jit):
    cache = {"k": tj.zeros(0, 3), "v": tj.zeros(0, 3)}

    @jit
    def f(x):
        cache["k"] = tj.cat([cache["k"], x])
        cache["v"] = tj.cat([cache["v"], x * 2])
        weights = (x @ cache["k"].t()).softmax(-1)
        return weights @ cache["v"]

    return [*[f(data(n)) for n in (3, 1, 1, 2)], cache]


def fixed_buffer_filled_by_position(jit):
    buffer, position = tj.zeros(6, 3), tj.tensor(0)

    @jit
    def f(x):
        for t in range(x.shape[0]):
            buffer[position % 6] = x[t]
            position.add_(1)
        if position > 6:
            return buffer.mean(0)
        return buffer[:1].sum(0)

    return [*[f(data(n)) for n in (2, 3, 4, 0, 1)], buffer, position]


def beam_of_masks(jit):
    @jit
    def f(scores, alive):
        best, steps = tj.zeros(()), 0
        for t in range(scores.shape[0]):
            row = tj.where(alive, scores[t], tj.tensor(-1e9))
            top = row.argmax()
            best = best + row[top]
            alive[top] = False
            steps += 1
            if not alive.any():
                break
        return best, steps

    out = []
    for n in (2, 5, 3):
        alive = tj.ones(3).bool()
        out += [f(data(n), alive), alive]
    return out


def gradients_of_rows_written_under_a_condition(jit):
    @jit
    def f(x, w):
        out = tj.zeros(x.shape)
        for t in range(x.shape[0]):
            row = x[t] * w
            if row.sum() > 0:
                out[t] = row * row
        return (out * x).sum()

    w, out = tj.ones(3, requires_grad=True), []
    for n in (4, 1, 9):
        x = data(n).requires_grad_()
        y = f(x, w)
        if y.requires_grad:
            y.backward()
        out += [y, x.grad, w.grad]
        w.grad = None
    return out


def captured_called_in_a_captured_loop(jit):
    @jit
    def cell(x, h):
        return tj.tanh(x + h) if h.sum() > 0 else x - h

    @jit
    def f(x):
        h = tj.ones(3)
        for t in range(x.shape[0]):
            h = cell(x[t], h)
        return h

    return [*[f(data(n)) for n in SIZES], cell(tj.ones(3), tj.ones(3))]


def recursion_over_nested_containers(jit):
    def total(tree):
        if isinstance(tree, dict):
            return sum(total(v) for v in tree.values())
        if isinstance(tree, (list, tuple)):
            return sum(total(v) for v in tree)
        return tree.sum() if tree.sum() > 0 else -tree.sum()

    f = jit(lambda tree: total(tree))
    a, b = data(3), -data(4)
    return [f({"a": a, "b": [b, (a, b)]}), f([a]), f({"a": b, "b": [a, (b, b)]}), f((a, [b]))]


def sizes_of_none_in_a_training_loop(jit):
    model = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
    optimizer = tj.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = {"sizes": [], "skipped": 0}

    @jit
    def step(x):
        seen["sizes"].append(x.shape[0])
        if x.shape[0] == 0:
            seen["skipped"] += 1
            return None
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        if loss > 0.01:
            loss = loss * 2
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [*[step(data(n)) for n in (4, 0, 1, 7, 0, 4)], seen, *model.parameters()]


def power_iteration_until_it_settles(jit):
    @jit
    def f(a, limit):
        v = tj.ones(a.shape[0]) / a.shape[0] ** 0.5
        change, steps = tj.tensor(1.0), tj.tensor(0)
        while change > limit and steps < 50:
            u = a @ v
            u = u / u.norm()
            change = (u - v).abs().max()
            v = u
            steps = steps + 1
        return v @ a @ v, steps

    out = []
    for n in (2, 3, 5):
        a = data(n, n)
        a = (a @ a.t() + tj.eye(n) * n).requires_grad_()
        value, steps = f(a, 1e-3)
        value.backward()
        out += [value, steps, a.grad]
    return out


def closures_that_share_a_counter(jit):
    count, log = 0, []

    def bump(by):
        nonlocal count
        count += by
        return count

    @jit
    def f(x):
        before = bump(1)
        if x.sum() > 0:
            x = x * before
        log.append((before, bump(2)))
        return x + count

    return [*[f(tj.ones(2) * k) for k in (1.0, -1.0, 2.0)], count, log]


PROGRAMS = programs_in(globals())
