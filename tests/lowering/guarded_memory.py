"""Random programs over arrays that lie at the ends of mapped memory: a kernel that reads beyond one
ends the process. `python -m tests.lowering.guarded_memory FIRST STOP` runs those of some seeds.

In: seeds. Out: each seed, before its program runs; exit status 1 with a message where a compiled
program's results differ from eager ones. Programs move rows and columns, reduce them and put them
together again; about half also take a gradient.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys

import numpy as np

import tracejit as tj
import tracejit.nn.functional as F

PAGE = mmap.PAGESIZE
SHAPES = ((4, 5), (9, 32), (6, 8), (12, 3), (5, 64))
FAR = 100_000  # rows


class Guarded:
    """Arrays between pages that cannot be read."""

    def __init__(self):
        self.protect = ctypes.CDLL(None, use_errno=True).mprotect
        self.maps = []

    def tensor(self, array, at_end):
        """A tensor of the array's values, whose memory begins or ends where a page does."""
        pages = -(-array.nbytes // PAGE)
        mapped = mmap.mmap(-1, (pages + 2) * PAGE)
        self.maps.append(mapped)
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        for page in (0, pages + 1):
            if self.protect(ctypes.c_void_p(start + page * PAGE), PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        offset = PAGE + (pages * PAGE - array.nbytes if at_end else 0)
        view = np.frombuffer(mapped, array.dtype, array.size, offset).reshape(array.shape)
        view[...] = array
        return tj.from_numpy(view)


STEPS = {  # of two operands, one of which is full, a small number and a coin
    "rows padded above": lambda v, w, k, c: F.pad(v, (0, 0, k, -k)),
    "rows padded below": lambda v, w, k, c: F.pad(v, (0, 0, -k, k)),
    "columns padded": lambda v, w, k, c: F.pad(v, (k, -k) if c else (-k, k)),
    "rolled": lambda v, w, k, c: tj.roll(v, k, int(c)),
    "flipped": lambda v, w, k, c: v.flip(int(c)),
    "rows joined": lambda v, w, k, c: tj.cat([v[k:], w.expand_as(v)[:k]]),
    "columns joined": lambda v, w, k, c: tj.cat([v[:, k:], v[:, :k]], 1),
    "below far rows": lambda v, w, k, c: tj.cat([tj.zeros(1, 1).expand(FAR, v.shape[1]), v])[
        : len(v)
    ],
    "the lower of two": lambda v, w, k, c: tj.cat([w.expand_as(v), v])[len(v) :],
    "squares summed": lambda v, w, k, c: (v * v).sum(-1, keepdim=True),
    "of all rows": lambda v, w, k, c: v * v.sum(0, keepdim=True),
    "mean": lambda v, w, k, c: v.mean(-1, keepdim=True),
    "largest": lambda v, w, k, c: v.amax(-1, keepdim=True),
    "softmax": lambda v, w, k, c: v.softmax(int(c)),
    "normal": lambda v, w, k, c: F.layer_norm(v, v.shape[1:]),
    "cumulative": lambda v, w, k, c: v.cumsum(int(c)) * 0.1,
    "triangle": lambda v, w, k, c: v.triu(k - 2),
    "differences": lambda v, w, k, c: F.pad(v.diff(dim=0), (0, 0, 1, 0)),
    "windows": lambda v, w, k, c: F.pad(v, (1, 1)).unfold(1, 3, 1).sum(-1),
    "across": lambda v, w, k, c: v.T.reshape(v.shape),
    "product": lambda v, w, k, c: v * w,
    "sum": lambda v, w, k, c: v + w,
    "exponential": lambda v, w, k, c: (v * 0.1).exp(),
}


def program(choose):
    """A function of (x, table, positions, mask) and which gradients it takes."""
    steps = [
        (choose.choice([*STEPS, "found", "gathered", "chosen"]), choose.random(), choose.random(),
         choose.randint(1, 3), choose.random() < 0.5, choose.random() < 0.4)
        for _ in range(choose.randint(2, 8))
    ]  # fmt: skip
    differentiates = choose.random() < 0.5

    def run(x, table, positions, mask):
        values, results = [x, table[positions] + x * 0.1], []
        for name, first, second, k, coin, kept in steps:
            v, w = (values[int(part * len(values))] for part in (first, second))
            v = v.expand_as(x)
            if name == "found":
                y = v[positions]
            elif name == "gathered":
                y = v.gather(0, positions[:, None].expand_as(v))
            elif name == "chosen":
                y = tj.where(mask, v, w)
            else:
                y = STEPS[name](v, w, k, coin)
            values.append(y)
            if kept:
                results.append(y)
        results.append(values[-1] + x)
        if differentiates:
            loss = sum((y * y).mean() for y in results)
            results += tj.autograd.grad(loss, [x, table], allow_unused=True)
        return [y.detach() for y in results if y is not None]

    return run, differentiates


def check(seed):
    """Whether one seed's program gives the same compiled, wherever its arrays end."""
    choose, numbers, memory = random.Random(seed), np.random.RandomState(seed), Guarded()
    rows, columns = choose.choice(SHAPES)
    run, differentiates = program(choose)
    arrays = (
        numbers.randn(rows, columns).astype(np.float32),
        numbers.randn(7, columns).astype(np.float32),
        numbers.randint(0, min(rows, 7), rows),
        numbers.rand(rows, columns) > 0.5,
    )
    for at_end in (False, True):
        inputs = [memory.tensor(a, at_end) for a in arrays]
        for x in inputs[:2]:
            x.requires_grad_(differentiates)
        wanted, compiled = run(*inputs), tj.script(run, mode="compiled")
        for _ in range(2):
            for a, b in zip(compiled(*inputs), wanted, strict=True):
                scale = max(1.0, b.abs().max().item())
                if not tj.allclose(a, b, rtol=2e-3, atol=2e-4 * scale, equal_nan=True):
                    print(f"seed {seed}: compiled {a}, eager {b}", file=sys.stderr)
                    return False
    return True


if __name__ == "__main__":
    first, stop = map(int, sys.argv[1:])
    for number in range(first, stop):
        print(number, flush=True)
        if not check(number):
            sys.exit(1)
