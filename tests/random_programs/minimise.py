"""A failing program made small: steps, calls, arguments and sizes are dropped while it keeps
failing.

In: a program and a test that says whether it still fails. Out: the smallest one found. Called by
`__main__.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_programs.program import Memory, Program

Fails = Callable[[Program], bool]


def minimise(program: Program, fails: Fails, seconds: float = 20) -> Program:
    """Greedily apply the first simplification under which it still fails, until none does."""
    deadline = time.monotonic() + seconds
    found = True
    while found:
        found = False
        for smaller in _simpler(program):
            if time.monotonic() > deadline:
                return program
            if _still(smaller, fails):
                program, found = smaller, True
                break
    return program


def _still(program: Program, fails: Fails) -> bool:
    try:
        return fails(program)
    except (NameError, SyntaxError, KeyError):  # not a program any more
        return False


def _simpler(program: Program) -> Iterator[Program]:
    for k in reversed(range(len(program.steps))):
        gone = set(program.steps[k].defines)
        kept, outputs = [], tuple(n for n in program.outputs if n not in gone)
        for number, step in enumerate(program.steps):
            if number == k or step.uses & gone:
                gone |= set(step.defines)
            else:
                kept.append(step)
        yield replace(
            program, steps=tuple(kept), outputs=tuple(n for n in outputs if n not in gone)
        )
    for k in range(len(program.calls)):
        if len(program.calls) > 1:
            yield replace(program, calls=program.calls[:k] + program.calls[k + 1 :])
    for k in range(len(program.outputs)):
        yield replace(
            program, outputs=program.outputs[:k] + program.outputs[k + 1 :], container="tuple"
        )
    if program.backward:
        yield replace(program, backward="")
    used = {name for step in program.steps for name in step.uses} | set(program.outputs)
    for a in program.arguments:
        if a.name not in used and len(program.arguments) > 1:
            yield replace(program, arguments=tuple(b for b in program.arguments if b is not a))
    yield from _plainer(program)


def _plainer(program: Program) -> Iterator[Program]:
    """Arguments that are whole tensors, memory without history or special values."""
    needed = {a.memory for a in program.arguments}
    if any(m.name not in needed for m in program.memories):
        yield replace(program, memories=tuple(m for m in program.memories if m.name in needed))
    for k, m in enumerate(program.memories):
        if m.history:
            yield _with_memory(program, k, replace(m, history=""))
        if m.values in ("special", "ties"):
            yield _with_memory(program, k, replace(m, values="plain"))
    for k, a in enumerate(program.arguments):
        plain = (a.memory,) * len(a.given)
        if a.memory and a.given != plain:
            yield replace(
                program,
                arguments=(
                    *program.arguments[:k],
                    replace(a, given=plain),
                    *program.arguments[k + 1 :],
                ),
            )


def _with_memory(program: Program, k: int, memory: Memory) -> Program:
    return replace(program, memories=(*program.memories[:k], memory, *program.memories[k + 1 :]))
