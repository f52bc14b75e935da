"""Programs in which Python decides by contents of small tensors that are no arguments: a replay
serves calls in which these hold the same."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def flag_that_changes_between_calls(jit):
    flag, log = tj.tensor(True), []

    @jit
    def f(x):
        if flag:
            return x * 2
        log.append(x.shape[0])
        return x + 1

    x, out = tj.ones(2), []
    for value in (True, True, True, False, True, False, False, True):
        flag.fill_(value)
        out.append(f(x))
    return [*out, log]


def flag_of_a_module_behind_its_array(jit):
    class Net(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("ready", tj.tensor([False]))
            self.log = []

        def forward(self, x):
            if not self.ready:
                self.log.append("first")
                return x + 1
            return x * 3

    net, x = Net(), tj.ones(2)
    f, array = jit(lambda x: net(x)), net.ready.numpy()
    out = [f(x) for _ in range(3)]
    array[0] = True
    return [*out, *(f(x) for _ in range(3)), net.log]


def counter_that_the_call_advances(jit):
    step, log = tj.zeros(()), []

    @jit
    def f(x):
        step.add_(1)
        if step > 3:
            log.append(float(x[0]))
            x = x * 2
        return x

    return [*(f(tj.full((2,), float(k))) for k in range(8)), step, log]


def counter_that_is_read_before_the_call_advances_it(jit):
    step = tj.zeros(1)

    @jit
    def f(x):
        for _ in range(int(step.item()) % 3):
            x = x * 2
        step[0] += 1
        return x

    return [*(f(tj.ones(2)) for _ in range(8)), step]


def mask_of_a_closure(jit):
    mask = tj.tensor([True, False, True])

    @jit
    def f(x):
        return x[:, mask], mask.nonzero()

    out = [f(tj.arange(6.0).view(2, 3)), f(tj.ones(4, 3)), f(tj.ones(2, 3))]
    mask[1] = True
    return [*out, f(tj.ones(2, 3)), f(tj.ones(2, 3))]


def times_that_steps_are_made_of(jit):
    class Solver:
        def __init__(self, times):
            self.times, self.order = times, 2

    solver = Solver(tj.linspace(0, 1, 4))

    @jit
    def f(x):
        times = solver.times
        assert (times[1:] > times[:-1]).all()
        seen = [x]
        for k in range(1, len(times)):
            x = x + (times[k] - times[k - 1]) * x
            if times[k] * solver.order > 1:
                seen.append(x)
        return seen

    out = [f(tj.ones(2)) for _ in range(3)]
    solver.order = 1
    out += [f(tj.ones(2)), f(tj.ones(2))]
    solver.times = tj.linspace(0, 2, 6)
    return [*out, f(tj.ones(3)), f(tj.ones(3))]


def view_of_what_the_call_writes(jit):
    memory = tj.zeros(4)
    first = memory[:1]
    log = []

    @jit
    def f(x):
        if first > 2:
            log.append("over")
            return x * 0
        memory.add_(x.sum())
        return x

    return [*(f(tj.ones(1)) for _ in range(6)), memory, log]


def not_a_number_among_contents(jit):
    limits, log = tj.tensor([float("nan"), -0.0]), []

    @jit
    def f(x):
        if limits[0] != limits[0]:
            log.append("nan")
            return x / limits[1]
        return x

    out = [f(tj.ones(2)) for _ in range(3)]
    limits[1] = 0.0
    return [*out, f(tj.ones(2)), f(tj.ones(2)), log]


PROGRAMS = programs_in(globals())
