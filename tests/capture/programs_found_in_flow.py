"""Programs with control flow in which random testing found a captured call to be wrong."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def written_tensor_overlaps_what_a_branch_chooses(jit):
    @jit
    def f(x):
        out = x * 1
        for a, b in zip(x, x):
            x.relu_()
            out = b if x.amax() != 0 else a
        return out

    out = []
    for sign in (1.0, -1.0, 1.0):
        x = tj.arange(6.0).view(3, 2) * sign
        out += [f(x), x]
    return out


def one_result_of_which_a_backward_inside_frees_the_history(jit):
    @jit
    def f(x):
        y = x * x
        z = x[:]
        (y.sum() + (z * z).sum()).backward()
        return y, z, x + 1

    out = []
    for k in (1.0, 2.0, 3.0):
        x = tj.full((2,), k, requires_grad=True)
        y, z, more = f(x)
        for t in (z, z, more, y):
            out.append(tried(lambda t: t.sum().backward(), t))
        out.append(x.grad)
    return out


PROGRAMS = programs_in(globals())
