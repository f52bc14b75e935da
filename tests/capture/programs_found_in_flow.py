"""Programs with control flow in which random testing found a captured call to be wrong."""

from __future__ import annotations

import tracejit as tj
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


PROGRAMS = programs_in(globals())
