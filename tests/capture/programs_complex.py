"""Programs on complex numbers: rotary embeddings, writes through parts, places in a storage."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def numbers(n, seed=0):
    tj.manual_seed(seed)
    parts = tj.arange(2.0 * n).view(n, 2)
    return tj.complex(parts / 3 - 1, 0.7 - parts / 5)


def rotary_embedding(jit):
    def rotations(dim, length):
        steps = 1.0 / (10000.0 ** (tj.arange(0, dim, 2).float() / dim))
        angles = tj.outer(tj.arange(length).float(), steps)
        return tj.polar(tj.ones_like(angles), angles)

    @jit
    def f(x, rotation):
        pairs = tj.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return tj.view_as_real(pairs * rotation.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)

    out = []
    for batch, length in ((2, 5), (3, 5), (1, 4)):
        tj.manual_seed(batch)
        count = batch * length * 16
        x = tj.linspace(-1.2, 1.3, count).view(batch, length, 2, 8).clone().requires_grad_()
        y = f(x, rotations(8, length))
        (y * tj.arange(8.0)).sum().backward()
        out += [y, x.grad]
    return out


def writes_through_parts(jit):
    @jit
    def f(z):
        z.real.mul_(2)
        z.imag[0] = 7
        tj.view_as_real(z)[1, :, 0] += z.imag[0]
        return z.real, tj.view_as_real(z), z.conj() * 2

    out = []
    for n in (2, 3, 2):
        z = numbers(n, n)
        out += [*f(z), z]
    return out


def complex_numbers_written_into_pairs(jit):
    @jit
    def f(x, factor):
        z = tj.view_as_complex(x)
        z *= factor
        return z.abs().sum(), z

    out = []
    for n in (3, 4, 1):
        x = tj.arange(2.0 * n).view(n, 2)
        out += [*f(x, 1j + n), x]
    return out


def gradients_of_complex_parameters(jit):
    @jit
    def f(w, x):
        loss = (w @ x.to(w.dtype)).abs().square().mean()
        loss.backward()
        return loss.detach()

    out, w = [], numbers(3).requires_grad_()
    for n in (2, 5, 2):
        out += [f(w, tj.arange(2.0 * n).view(2, n)), w.grad.clone()]
    return out


def pairs_at_an_odd_place(jit):
    f = jit(lambda x: tj.view_as_complex(x) * 2)
    memory = tj.arange(12.0)
    out = []
    for first in (0, 2, 1, 4):
        try:
            out.append(f(memory[first : first + 6].view(3, 2)))
        except RuntimeError as error:
            out.append(str(error))
    return out


def place_in_the_storage(jit):
    f = jit(lambda x: x + x.storage_offset() + x[1:].storage_offset())
    memory = tj.arange(12.0)
    return [f(memory[first : first + 3]) for first in (1, 2, 2, 5)]


PROGRAMS = programs_in(globals())
