"""A failing program made small: steps, calls, arguments and sizes are dropped while it keeps
failing.

In: a program and a test that says whether it still fails. Out: the smallest one found. Called by
`__main__.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_programs.observe import Outgrown
from tests.random_programs.program import (
    Block,
    Body,
    Call,
    Memory,
    Program,
    Step,
    printed,
    walk,
)

Fails = Callable[[Program], bool]


def minimise(program: Program, fails: Fails, seconds: float = 40) -> Program:
    """Greedily apply the first simplification under which it still fails, until none does."""
    deadline = time.monotonic() + seconds
    tried = {hash(program)}
    found = True
    while found:
        found = False
        for smaller in _simpler(program):
            if time.monotonic() > deadline:
                return program
            if hash(smaller) in tried:
                continue
            tried.add(hash(smaller))
            if _still(smaller, fails):
                program, found = smaller, True
                break
    return program


def _still(program: Program, fails: Fails) -> bool:
    try:
        return fails(program)
    except (NameError, SyntaxError, KeyError, Outgrown):  # not a program any more
        return False


def _simpler(program: Program) -> Iterator[Program]:
    for k in range(len(program.calls)):
        if len(program.calls) > 1:
            yield replace(program, calls=program.calls[:k] + program.calls[k + 1 :])
    for body in smaller_bodies(program.steps):
        yield replace(program, steps=body)
    for name in _defined(program):
        yield _without(program, name)
    for body in smaller_bodies(program.preamble):
        yield replace(program, preamble=body)
    for k in range(len(program.outputs)):
        outputs = program.outputs[:k] + program.outputs[k + 1 :]
        yield replace(program, outputs=outputs, container="tuple")
    if program.backward:
        yield replace(program, backward="")
    for k, call in enumerate(program.calls):
        for smaller in _simpler_call(call):
            yield replace(program, calls=(*program.calls[:k], smaller, *program.calls[k + 1 :]))
    for name in ("cells", "each", "once"):
        lines = getattr(program, name)
        for k in range(len(lines)):
            yield replace(program, **{name: lines[:k] + lines[k + 1 :]})
    text = "\n".join(printed(program.steps) + [*program.outputs])
    used = set(re.findall(r"\w+", text))
    for a in program.arguments:
        if a.name not in used and len(program.arguments) > 1:
            yield replace(program, arguments=tuple(b for b in program.arguments if b is not a))
    yield from _plainer(program)


def smaller_bodies(body: Body) -> Iterator[Body]:
    """Without a statement, the last ones first; with what stands inside one instead of it; with a
    smaller one."""
    for k in reversed(range(len(body))):
        before, step, after = body[:k], body[k], body[k + 1 :]
        yield before + after
        if isinstance(step, Block):
            for clause in step.clauses:
                yield before + clause.body + after
            for smaller in _smaller_blocks(step):
                yield (*before, smaller, *after)


def _smaller_blocks(block: Block) -> Iterator[Block]:
    clauses = block.clauses
    for k, clause in enumerate(clauses):
        if k:
            yield replace(block, clauses=clauses[:k] + clauses[k + 1 :])
        for body in smaller_bodies(clause.body):
            smaller = replace(clause, body=body)
            yield replace(block, clauses=(*clauses[:k], smaller, *clauses[k + 1 :]))


def _defined(program: Program) -> list[str]:
    """Names of outputs that steps define: they go together with the steps."""
    return [name for step in walk(program.steps) if isinstance(step, Step)
            for name in step.defines]  # fmt: skip


def _without(program: Program, name: str) -> Program:
    """Without the steps that define or use a name, those that use what they define, and so on."""
    gone, kept = {name}, []
    for step in program.steps:
        inside = [s for s in walk((step,)) if isinstance(s, Step)]
        if any(s.uses & gone or name in s.defines for s in inside):
            gone |= {d for s in inside for d in s.defines}
        else:
            kept.append(step)
    outputs = tuple(n for n in program.outputs if n not in gone)
    return replace(program, steps=tuple(kept), outputs=outputs)


def _simpler_call(call: Call) -> Iterator[Call]:
    for k in range(len(call.changes)):
        yield replace(call, changes=call.changes[:k] + call.changes[k + 1 :])
    if call.no_grad:
        yield replace(call, no_grad=False)
    if call.again:
        yield replace(call, again=False)


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
