"""Functions that random programs define and call: closures, lambdas, default arguments.

In: a Builder, and what fills a block and what a function may return. Out: whether it was added.
Called by `flow.py`.
"""

from __future__ import annotations

import re
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
    h, a, way = b.fresh("h"), b.fresh("a"), b.choices.below(10)
    if way < 4:
        return _outside(b, h, a, x, body, returned, method=way < 2)
    if way == 4:
        return _recursive(b, h, a, x)
    if way < 7:
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
        b.numbers = ["scale"] if b.tame else [*b.numbers, "scale"]
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


def _outside(
    b: Builder, h: str, a: str, x: str, body: Body, returned: Returned, method: bool
) -> bool:
    """A method of the object's class, or a function of the module."""
    with b.inside("function") as made:
        for space, value in zip(b.spaces, b.values(x)):
            space[a], space["scale"] = value, 2
        b.live = [a, *(n for n in b.live if n == "o.t")]
        b.numbers = ["scale", *(n for n in b.numbers if n in ("o.k", "o.f"))]
        b.lists = ["o.l"]
        body(b)
        made.append(Step((f"return {returned(b)}",), (), frozenset()))
    b.failed = False
    block = Block((Clause(f"def {h}(o, {a}, scale=2):", tuple(made)),))
    text = "\n".join(printed((block,)))
    if re.search(r"\bx\d", text):  # an argument made for an op, which is no variable there
        return False
    b.run(compile(text + (f"\nState.{h} = {h}" if method else ""), "<function>", "exec"))
    (b.methods if method else b.functions).append(block)
    b.marks.append(("method" if method else "global function", b.place, "-"))
    v = b.fresh("v")
    text = f"o.{h}({x})" if method else f"{h}(o, {x})"
    return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="call")


def _recursive(b: Builder, h: str, a: str, x: str) -> bool:
    """A function that calls itself, as often as a number says."""
    end = b.choices.pick(("n <= 0", f"n <= 0 or {a}.sum() > 3"))
    change = b.choices.pick((f"{a} = {a} * 0.5", f"{a}.add_(1)", f"{a} = {a} + 1", "pass"))
    again = b.choices.pick((f"{h}({a}, n - 1)", f"{h}({a}, n - 1) + 1"))
    lines = (f"if {end}: return {a}", change, f"return {again}")
    steps = tuple(Step((line,), (), frozenset()) for line in lines)
    block = Block((Clause(f"def {h}({a}, n):", steps),), (("recursion", b.place, "-"),))
    if not b.run(compile("\n".join(printed((block,))), "<function>", "exec")):
        return False
    b.steps.append(block)
    v, times = b.fresh("v"), b.choices.pick(("2", "0", "3", f"{x}.ndim"))
    return b.statement(f"{v} = {h}({x}, {times})", defines=(v,), uses=(x,), mark="call")


def _assigned(line: str) -> str:
    """The name that a line binds."""
    name, _, rest = line.strip().partition(" ")
    return name if rest.startswith(("= ", "+= ", "-= ", "*= ")) else ""


def call(b: Builder, name: str, x: str) -> bool:
    v = b.fresh("v")
    text = b.choices.pick((f"{name}({x})", f"{name}({x})", f"{name}({statements.like(b, x)})"))
    return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="call")
