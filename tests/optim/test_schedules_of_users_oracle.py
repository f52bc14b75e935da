"""Schedules of users, in the idiom of PyTorch's own, over optimizers of users: rates, warnings and
states as there."""

import copy
import importlib
import math
import warnings

import pytest

import tracejit

torch = pytest.importorskip("torch")

from tests.optim.test_schedule_protocol_oracle import both  # noqa: E402

pytestmark = pytest.mark.oracle


def classes(lib):
    """The schedules, written with one of the two libraries."""
    schedules = importlib.import_module(f"{lib.__name__}.optim.lr_scheduler")
    _LRScheduler, Plateau = schedules._LRScheduler, schedules.ReduceLROnPlateau

    class GradualWarmup(_LRScheduler):
        def __init__(self, optimizer, multiplier, total_epoch, after_scheduler=None):
            self.multiplier, self.total_epoch = multiplier, total_epoch
            self.after_scheduler, self.finished = after_scheduler, False
            super().__init__(optimizer)

        def get_lr(self):
            if self.last_epoch > self.total_epoch:
                if self.after_scheduler:
                    if not self.finished:
                        bases = [base * self.multiplier for base in self.base_lrs]
                        self.after_scheduler.base_lrs, self.finished = bases, True
                    return self.after_scheduler.get_last_lr()
                return [base * self.multiplier for base in self.base_lrs]
            part = float(self.last_epoch) / self.total_epoch
            return [base * ((self.multiplier - 1.0) * part + 1.0) for base in self.base_lrs]

        def step(self, epoch=None, metrics=None):
            if not isinstance(self.after_scheduler, Plateau):
                if self.finished and self.after_scheduler:
                    if epoch is None:
                        self.after_scheduler.step(None)
                    else:
                        self.after_scheduler.step(epoch - self.total_epoch)
                    self._last_lr = self.after_scheduler.get_last_lr()
                else:
                    return super().step(epoch)

    class WarmupRestarts(_LRScheduler):
        def __init__(self, optimizer, first, mult=1.0, max_lr=0.1, min_lr=0.001, warmup=0,
                     gamma=1.0, last_epoch=-1):
            self.first_cycle_steps = self.cur_cycle_steps = first
            self.cycle_mult, self.warmup_steps, self.gamma = mult, warmup, gamma
            self.base_max_lr = self.max_lr = max_lr
            self.min_lr, self.cycle, self.step_in_cycle = min_lr, 0, last_epoch
            super().__init__(optimizer, last_epoch)
            self.init_lr()

        def init_lr(self):
            self.base_lrs = []
            for group in self.optimizer.param_groups:
                group["lr"] = self.min_lr
                self.base_lrs.append(self.min_lr)

        def get_lr(self):
            if self.step_in_cycle == -1:
                return self.base_lrs
            if self.step_in_cycle < self.warmup_steps:
                part = self.step_in_cycle / self.warmup_steps
                return [(self.max_lr - base) * part + base for base in self.base_lrs]
            part = (self.step_in_cycle - self.warmup_steps) / (
                self.cur_cycle_steps - self.warmup_steps)
            return [base + (self.max_lr - base) * (1 + math.cos(math.pi * part)) / 2
                    for base in self.base_lrs]

        def step(self, epoch=None):
            epoch = self.last_epoch + 1
            self.step_in_cycle += 1
            if self.step_in_cycle >= self.cur_cycle_steps:
                self.cycle += 1
                self.step_in_cycle -= self.cur_cycle_steps
                rest = self.cur_cycle_steps - self.warmup_steps
                self.cur_cycle_steps = int(rest * self.cycle_mult) + self.warmup_steps
            self.max_lr = self.base_max_lr * (self.gamma**self.cycle)
            self.last_epoch = math.floor(epoch)
            for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
                group["lr"] = rate

    class Noam(_LRScheduler):
        def __init__(self, optimizer, warmup_steps):
            self.warmup_steps = warmup_steps
            super().__init__(optimizer)

        def get_lr(self):
            last = max(1, self.last_epoch)
            scale = self.warmup_steps**0.5 * min(last**-0.5, last * self.warmup_steps**-1.5)
            return [base * scale for base in self.base_lrs]

    class Poly(schedules.LRScheduler):
        def __init__(self, optimizer, max_iters, power=0.9, last_epoch=-1, verbose=False):
            self.max_iters, self.power = max_iters, power
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            if not self._get_lr_called_within_step:
                warnings.warn("please use `get_last_lr()`.", stacklevel=2)
            if self._is_initial:
                return [group["lr"] for group in self.optimizer.param_groups]
            return [base * (1 - min(self.last_epoch, self.max_iters) / self.max_iters) ** self.power
                    for base in self.base_lrs]

        def _get_closed_form_lr(self):
            return [base * 0.5 for base in self.base_lrs]

    return {
        "warmup": lambda o: GradualWarmup(o, 4.0, 3),
        "warmup, then cosine": lambda o: GradualWarmup(
            o, 4.0, 3, schedules.CosineAnnealingLR(o, 5)),
        "restarts": lambda o: WarmupRestarts(o, 6, 1.5, warmup=2, gamma=0.5),
        "noam": lambda o: Noam(o, 3),
        "poly": lambda o: Poly(o, 8),
    }


def optimizer_of(lib):
    class Plain(lib.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @lib.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])

    return Plain([{"params": [lib.nn.Parameter(lib.ones(2))]},
                  {"params": [lib.nn.Parameter(lib.ones(3))], "lr": 0.5}], lr=0.1)


def plain_state(schedule):
    """The state dict, without schedules that it has."""
    return {k: v for k, v in schedule.state_dict().items() if not hasattr(v, "optimizer")}


NAMES = ["warmup", "warmup, then cosine", "restarts", "noam", "poly"]


@pytest.mark.parametrize("name", NAMES)
def test_rates(name):
    def run(lib, epoch=None):
        optimizer = optimizer_of(lib)
        schedule = classes(lib)[name](optimizer)
        seen = []
        for _ in range(12):
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = lib.ones_like(p)
            optimizer.step()
            schedule.step()
            seen += [group["lr"] for group in optimizer.param_groups]
        values = [p.tolist() for g in optimizer.param_groups for p in g["params"]]
        return seen, plain_state(schedule), values

    (mine, noted), (theirs, expected) = both(run)
    assert noted == expected
    assert mine[0] == pytest.approx(theirs[0], rel=1e-12)
    assert list(mine[1]) == list(theirs[1])
    for one, other in zip(mine[2], theirs[2]):
        assert one == pytest.approx(other, rel=1e-5)


@pytest.mark.parametrize("name", ["restarts", "noam", "poly"])
def test_continued_from_a_state_dict(name):
    def run(lib):
        first = classes(lib)[name](optimizer_of(lib))
        for _ in range(4):
            first.optimizer.step = lambda: None
            first.step()
        other = classes(lib)[name](optimizer_of(lib))
        other.load_state_dict(copy.deepcopy(first.state_dict()))
        other.step()
        return [group["lr"] for group in other.optimizer.param_groups], other.last_epoch

    (mine, noted), (theirs, expected) = both(run)
    assert mine[0] == pytest.approx(theirs[0], rel=1e-12) and mine[1] == theirs[1]
    assert noted == expected


def test_set_to_an_epoch_and_asked():
    def run(lib):
        schedule = classes(lib)["poly"](optimizer_of(lib))
        schedule.optimizer._opt_called = True
        schedule.step(3)
        return schedule.get_lr(), schedule.get_last_lr(), schedule._step_count

    mine, theirs = both(run)
    assert mine[1] == theirs[1] and mine[0] == theirs[0] and len(mine[1]) == 2


@pytest.mark.parametrize("stepped", [False, True])
def test_whether_an_optimizer_of_a_user_stepped(stepped):
    def run(lib):
        optimizer = optimizer_of(lib)
        schedule = importlib.import_module(f"{lib.__name__}.optim.lr_scheduler").StepLR(
            optimizer, 2)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = lib.zeros_like(p)
        if stepped:
            optimizer.step()
        schedule.step()
        return schedule.get_last_lr()

    mine, theirs = both(run)
    assert mine == theirs
    assert len(mine[1]) == (not stepped)


def test_a_captured_step_with_a_schedule_is_replayed():
    optimizer = optimizer_of(tracejit)
    plain = optimizer_of(tracejit)
    schedules = [classes(tracejit)["noam"](o) for o in (optimizer, plain)]

    def train(o):
        for group in o.param_groups:
            for p in group["params"]:
                p.grad = p.detach() * 2
        o.step()

    compiled = tracejit.script(train)
    for _ in range(6):
        compiled(optimizer)
        train(plain)
        for schedule in schedules:
            schedule.step()
    for mine, other in zip(optimizer.param_groups, plain.param_groups):
        tracejit.testing.assert_close(mine["params"][0], other["params"][0])
    assert compiled.report().cache_hits >= 4
