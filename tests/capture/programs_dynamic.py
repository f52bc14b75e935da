"""Programs whose sizes depend on values: run plainly and captured, each must show the same."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def inputs():
    """Vectors of which other elements are positive each time, none and all of them too."""
    values = ([1.0, -2.0, 3.0], [-1.0, -2.0, -3.0], [4.0, 5.0, 6.0], [-1.0, 2.0, 0.0, 7.0], [])
    return [tj.tensor(v) for v in values]


def positions_of_elements(jit):
    @jit
    def f(x):
        y = x * 2
        return y.nonzero(), tj.argwhere(y > 0), *(y > 1).nonzero(as_tuple=True)

    return [y for x in inputs() for y in f(x)]


def masked_reads(jit):
    @jit
    def f(x):
        kept = x[x > 0] * 2
        return kept, kept.sum(), x.masked_select(x < 3), kept.shape[0]

    return [y for x in inputs() for y in f(x)]


def gradients_through_masks(jit):
    @jit
    def f(x):
        return (x[x > 0] ** 2).sum() + x.masked_select(x < 2).sum() * 3

    out = []
    for x in inputs():
        x = x.requires_grad_()
        f(x).backward()
        out.append(x.grad)
    return out


def masked_writes(jit):
    @jit
    def f(x, one):
        x[x > 3] = 0
        x[x < -1] = one
        x[x == 0] += 5
        x[x > 4] *= 2
        x[x > 1] -= 0.5
        x[x < 9] /= 4
        return x * 1

    return [y for x in inputs() for y in (f(x, tj.tensor([9.0])), x)]


def masked_writes_of_rows(jit):
    @jit
    def f(x, mask, row):
        y = x * 1
        y[mask] = row
        y[:, 0] -= 1
        return y

    x, out = tj.arange(6.0).view(3, 2), []
    for mask in ([True, False, True], [False, False, False], [True, True, True]):
        out.append(f(x, tj.tensor(mask), tj.tensor([7.0, 8.0])))
    return out


def masked_writes_of_what_was_selected(jit):
    @jit
    def f(x):
        y = x.clone()
        y[y > 0] = y[y > 0] / 2
        return y

    return [f(x) for x in inputs()]


def gradients_through_masked_updates(jit):
    @jit
    def f(x):
        y = x * 2
        y[y > 2] *= 3
        y[y < 0] = 1
        return (y * y).sum()

    out = []
    for x in inputs():
        x = x.requires_grad_()
        f(x).backward()
        out.append(x.grad)
    return out


def distinct_elements(jit):
    @jit
    def f(x):
        values, inverse, counts = tj.unique(x, return_inverse=True, return_counts=True)
        return values * 2, inverse, counts, x.unique_consecutive()

    vectors = ([3, 1, 3], [2, 2, 2, 2], [1, 2, 3], [])
    return [y for v in vectors for y in f(tj.tensor(v, dtype=tj.int64))]


def counts_of_integers(jit):
    @jit
    def f(x, w):
        return tj.bincount(x) + 1, tj.bincount(x, w, minlength=4), w.histc(3, 0, 3)

    out = []
    for v in ([0, 2, 2], [5, 0], [1]):
        out += f(tj.tensor(v), tj.arange(float(len(v))))
    return out


def repeats_by_a_vector(jit):
    @jit
    def f(x, n):
        return x.repeat_interleave(n, dim=0) * 2, tj.repeat_interleave(n)

    x = tj.arange(6.0).view(3, 2)
    return [y for n in ([1, 2, 3], [0, 0, 0], [2, 0, 1]) for y in f(x, tj.tensor(n))]


PROGRAMS = programs_in(globals())
