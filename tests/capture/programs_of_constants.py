"""What Python needs of tensors that no input decides: known while recording, never stale."""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def positions_that_decide_a_mask(jit):
    """Models of packed sequences ask this of positions that nobody packed."""

    @jit
    def f(x, positions=None):
        if positions is None:
            positions = tj.arange(x.shape[1]).unsqueeze(0)
        steps = tj.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
        packed = (steps != 1).cumsum(-1)
        mask = None if (packed[:, -1] == 0).all() else packed
        return (x * 2, None) if mask is None else (x * mask, mask)

    one, two = tj.tensor([[0, 1, 2]]), tj.tensor([[0, 1, 0]])
    calls = [(tj.ones(2, n),) for n in (3, 5, 1, 3)] + [(tj.ones(1, 3), p) for p in (one, two, one)]
    return [f(*given) for given in calls] + [tried(f, tj.ones(2, 0))]


def numbers_read_from_constants(jit):
    @jit
    def f(x):
        n = int(tj.tensor([1, 2]).sum())
        most = tj.arange(4).max().item()
        half = tj.full((2,), 0.5)[0].item()
        flag = tj.ones(1, dtype=tj.bool).item()
        return x[:n] * most + half, [n, most, half, flag], tj.eye(2).tolist(), range(most)[-1]

    return [f(tj.ones(n)) for n in (4, 5, 2)]


def lists_made_of_constants_are_the_callers(jit):
    @jit
    def f(x):
        found = tj.arange(3).tolist()
        found.append(x.shape[0])
        return found, x + len(found)

    made = [f(tj.ones(n))[0] for n in (2, 2, 3)]
    made[0].append(9)
    return made, made[0] is made[1], f(tj.ones(2))


def constants_written_by_inputs_decide_anew(jit):
    @jit
    def f(x):
        held = tj.zeros(3)
        held[0] = 1
        first = "one" if held.sum() > 0 else None
        held[1] = x[0]
        second = ("more",) if held.sum() > 1 else None
        return first, second, held

    return [f(tj.tensor([v])) for v in (0.0, 1.0, 0.0, -3.0)]


def constants_of_lists_that_change(jit):
    values, shift = [1, 2], 0

    @jit
    def f(x):
        of_list = [1] if tj.tensor(values).sum() > 3 else (2,)
        of_number = [1] if tj.full((2,), shift).sum() > 3 else (2,)
        return of_list, of_number, tj.tensor(values).sum().item(), x + 1

    shown = [f(tj.ones(2))]
    values.append(3)
    shown.append(f(tj.ones(2)))
    shift = 7
    shown.append(f(tj.ones(2)))
    shift = 0
    values.clear()
    return [*shown, f(tj.ones(2))]


def constants_of_arrays_that_change(jit):
    array = np.array([1.0, 2.0])

    @jit
    def f(x):
        decided = [1] if tj.tensor(array).sum() > 3 else (2,)
        return decided, tj.tensor(array).sum().item(), x + 1

    shown = [f(tj.ones(2))]
    array[0] = 5
    return [*shown, f(tj.ones(2))]


def buffers_are_no_constants(jit):
    class Masked(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", tj.ones(2))

        def forward(self, x):
            return x * 2 if bool(self.mask.all()) else None

    model, held = Masked(), tj.ones(2)
    f, g = jit(model), jit(lambda x: (x,) if held.sum() > 1 else x)
    shown = [(f(tj.ones(2)), g(tj.ones(2)))]
    model.mask[0] = 0
    held.zero_()
    shown.append((f(tj.ones(2)), g(tj.ones(2))))
    model.mask = tj.ones(2)
    held.fill_(3)
    return [*shown, (f(tj.ones(2)), g(tj.ones(2)))]


def random_numbers_are_no_constants(jit):
    tj.manual_seed(3)

    @jit
    def f(x):
        coin, kept = tj.rand(()), tj.arange(3)[tj.randint(0, 3, ())].item()
        return (x, kept) if coin > 0.5 else [kept]

    return [f(tj.ones(1)) for _ in range(8)]


def constants_decide_within_branches_and_loops(jit):
    seen = []

    @jit
    def f(x):
        steps = tj.tensor(0)
        while steps < 3:
            seen.append(len(seen))
            steps = steps + 1
        if x.sum() > 0:
            x = x + (1 if tj.arange(3).sum() == 3 else None)
        else:
            x = x - (tj.arange(3).sum().item() if tj.ones(2).all() else None)
        for row in x:
            if not tj.eye(2).any():
                return None
            x = x + row.sum()
        return x

    return [f(tj.full((2, 2), v)) for v in (1.0, -1.0, 2.0)], seen


def constants_of_sizes_decide(jit):
    @jit
    def f(x):
        places = tj.arange(x.shape[0])
        kind = [1] if places.sum() > 3 else (2,)
        return kind, places.tolist(), tj.full((2,), x.shape[0]).sum().item(), x + 1

    return [f(tj.ones(n)) for n in (2, 3, 4, 5, 3)]


def sizes_in_constants_leave_a_branch_to_the_graph(jit):
    @jit
    def f(x):
        return x * 2 if tj.ones(x.shape[0]).sum() > 3 else x * 3

    return [f(tj.ones(n)) for n in (2, 3, 4, 5, 3)]


def shapes_that_constants_decide(jit):
    values = [True, False, True]

    @jit
    def f(x):
        rows, columns = tj.where(tj.ones(3, 3).triu(1) == 1)
        pairs = (x[:, None] * x[None])[tj.ones(3, 3).triu(1).bool()]
        kept = x[tj.tensor(values)]
        kept[0] = 7
        several = tj.unique(tj.tensor([3, 1, 3]), return_counts=True)
        many = tj.repeat_interleave(tj.arange(2), tj.tensor([1, 3]))
        places = tj.nonzero(tj.tensor(values))
        places += 1
        return x[rows] * x[columns], pairs, kept, several, many, places, x

    shown = [f(tj.tensor([1.0, 2.0, v])) for v in (3.0, 4.0)]
    values[0] = False
    return [*shown, f(tj.ones(3))]


def shapes_that_sizes_and_inputs_decide(jit):
    @jit
    def f(x, y):
        of_size = tj.nonzero(tj.arange(x.shape[0]) > 1)
        written = tj.zeros(3)
        written[1] = y[0]
        return x[of_size[:, 0]], tj.nonzero(written), tj.bincount(tj.tensor([1]), minlength=3)

    return [f(tj.arange(n), tj.tensor([v])) for n, v in ((3, 0), (4, 1), (2, 0), (5, 2))]


def shapes_that_constants_decide_in_blocks(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            x = x[tj.nonzero(tj.tensor([0, 1, 1]))[:, 0]]
        else:
            x = x[:2]
        for k in range(2):
            x = x + x[tj.tensor([True, False])] * k
        return x

    return [f(tj.full((3,), v)) for v in (1.0, -1.0, 2.0)]


def constants_of_the_default_dtype(jit):
    @jit
    def f(x):
        tenth = tj.tensor([0.1])
        return tenth.item(), tenth.tolist(), "wide" if tenth.sum() == 0.1 else None, x + tenth

    shown = [f(tj.ones(1)), f(tj.ones(1))]
    before = tj.get_default_dtype()
    tj.set_default_dtype(tj.float64)
    try:
        shown += [f(tj.ones(1)), f(tj.ones(1))]
    finally:
        tj.set_default_dtype(before)
    return [*shown, f(tj.ones(1))]


def constants_that_raise(jit):
    @jit
    def f(x):
        if tj.arange(x.shape[0]) > 0:
            return x + 1
        return (tj.zeros(x.shape[0])[:1] / 0).item()

    return [tried(f, tj.ones(n)) for n in (2, 1, 0, 1)]


def constants_that_ask_for_gradients(jit):
    @jit
    def f(x):
        scale = tj.full((2,), 3.0, requires_grad=True)
        if scale.sum() > 5:
            loss = (x * scale).sum()
        else:
            return None
        loss.backward()
        return scale.grad, scale.sum().item(), loss

    return [f(tj.tensor([1.0, v])) for v in (2.0, 3.0)]


PROGRAMS = programs_in(globals())
