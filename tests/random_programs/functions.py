"""Functions that random programs define and call: closures, lambdas, default arguments.

In: a Builder, and what fills a block and what a function may return. Out: whether it was added.
Called by `flow.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.random_programs import statements
from tests.random_programs.builder import Builder
from tests.random_programs.program import Block, Clause, Step, printed

Body = Callable[[Builder], None]
Returned = Callable[[Builder], str]


def function(b: Builder, body: Body, returned: Returned) -> bool:
    """A function defined here, over the variables around it, and a call of it."""
    x = b.tensor()
    if x is None or "function" in b.places:
        return False
    h, a = b.fresh("h"), b.fresh("a")
    if b.choices.chance(20):
        body_text = b.choices.pick((f"{a} * 2", f"{a} + {x}", f"{a} if {x}.sum() > 0 else -{a}"))
        if not b.statement(f"{h} = lambda {a}: {body_text}", uses=(x,), mark="lambda"):
            return False
    else:
        head = f"def {h}({a}, scale={b.choices.pick(('2', '0.5', statements.number(b)))}):"
        _defined(b, head, a, x, body, returned)
    return call(b, h, x)


def _defined(
    b: Builder, head: str, a: str, x: str, body: Body, returned: Returned
) -> None:
    outer = {n for n in (*b.live, *b.numbers) if n.isidentifier()}
    with b.inside("function") as made:
        for space, value in zip(b.spaces, b.values(x)):
            space[a], space["scale"] = value, 2
        b.live = [a] if b.tame else [*b.live, a]  # what changes variables around is co-executed
        b.numbers.append("scale")
        body(b)
        made.append(Step((f"return {returned(b)}",), (), frozenset()))
    b.failed = False
    outer |= {argument.name for argument in b.arguments}
    lines = printed(tuple(made))
    changed = sorted({w for w in map(_assigned, lines) if w in outer and w != "scale"})
    outside = [
        Step((f"{'global' if n == 'G0' else 'nonlocal'} {n}",), (), frozenset()) for n in changed
    ]
    block = Block((Clause(head, (*outside, *made)),), (("def", b.place, "-"),))
    b.steps.append(block)
    text = "\n".join(printed((block,))).replace("    nonlocal ", "    global ")
    b.run(compile(text, "<function>", "exec"))


def _assigned(line: str) -> str:
    """The name that a line binds."""
    name, _, rest = line.strip().partition(" ")
    return name if rest.startswith(("= ", "+= ", "-= ", "*= ")) else ""


def call(b: Builder, name: str, x: str) -> bool:
    v = b.fresh("v")
    text = b.choices.pick((f"{name}({x})", f"{name}({x})", f"{name}({statements.like(b, x)})"))
    return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="call")
