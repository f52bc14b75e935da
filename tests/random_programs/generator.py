"""Random programs: a seed, or hypothesis' draws, become a `Program`.

In: Choices. Out: a Program whose steps ran eagerly at every size. Called by the runner's processes
and by the tests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.random_programs import flow, state
from tests.random_programs.builder import Builder
from tests.random_programs.choices import Choices
from tests.random_programs.program import Argument, Call, Program, Step, walk
from tests.random_programs.spaces import DTYPES

KINDS: dict[Any, tuple[str, ...]] = flow.KINDS
_DRAWN = flow.DRAWN
RARE = flow.RARE
OPS = sorted(
    {op for ops in KINDS.values() for op in ops} - {"masked", "setitem", "iadd", "imul"}
    | {"masked", "setitem", "iadd", "imul"}
)
_SHAPES = (
    ("n", "m"),
    ("n",),
    ("n", "m"),
    ("m",),
    ("n", 1),
    (1, "m"),
    (),
    ("n", "m", "k"),
    (3,),
    (2, "n", 4),
    (1, 1),
)


def program_of(seed: int) -> Program:
    """The program of a seed: odd seeds have control flow and state."""
    choices = Choices.seeded(seed)
    return generate_flow(choices) if seed % 2 else generate(choices)


def generate(choices: Choices) -> Program:
    """A program of up to eight ops; the same choices give the same program."""
    b = Builder(choices)
    for _ in range(choices.between(1, 3)):
        _arguments(b)
    wanted = choices.between(2, 8)
    for _ in range(3 * wanted):
        kind = choices.pick(_DRAWN)
        if kind in RARE and not choices.chance(40):
            continue
        draft = kind(b)
        if draft is not None:
            b.add(draft)
        if len(b.steps) == wanted or b.failed:
            break
    return _finished(b)


def generate_flow(choices: Choices) -> Program:
    """A program of up to seven statements, compound ones among them, over tensors and state."""
    b = Builder(choices)
    b.tame = choices.chance(80)
    for _ in range(choices.between(1, 2)):
        _arguments(b)
    b.number([choices.pick((2, 0, 1, 5)) for _ in range(b.count)])
    found = state.new_state(b)
    b.arguments.append(Argument("o", ("o",) * b.count))
    wanted = choices.between(2, 4 if b.tame else 6)
    for _ in range(3 * wanted):
        flow.statement(b)
        if len(b.steps) >= wanted or b.failed:
            break
    made = _finished(b)
    return replace(
        made,
        calls=state.with_changes(b, found, made.calls),
        preamble=found.preamble(),
        cells=found.cells,
        once=found.once,
        each=found.each,
        marks=tuple(b.marks),
    )


# -- memory --------------------------------------------------------------------------------------
def _arguments(b: Builder) -> None:
    """One piece of memory and the arguments that look at it."""
    choices = b.choices
    dtype, dims = choices.pick(DTYPES), choices.pick(_SHAPES)
    floating = "float" in dtype
    kind = choices.pick(("plain", "plain", "special", "ties")) if floating else "plain"
    histories = ("", "", "", "leaf") if b.tame else ("", "", "leaf", "computed")
    history = choices.pick(histories) if floating else ""
    way = choices.below(9 if b.tame else 12)
    whole = b.shape(*dims)

    def memory(shapes: Any) -> Any:
        return b.memory(dtype, shapes, kind, history=history)

    if way < 4 or not dims:
        found = memory(whole)
        b.argument(found)
        if way == 3:
            b.argument(found)  # the same tensor twice
        return
    name = f"m{len(b.memories)}"
    layouts = {
        4: (
            tuple(s[::-1] for s in whole),
            f"{name}.permute({', '.join(map(str, range(len(dims))[::-1]))})",
        ),
        5: (tuple((s[0] + 2, *s[1:]) for s in whole), f"{name}[1:-1]"),
        6: (tuple((*s[:-1], 2 * s[-1] + 1) for s in whole), f"{name}[..., 1::2]"),
        7: (tuple((*s, 3) for s in whole), f"{name}[..., 1]"),
        8: (tuple((1, *s[1:]) for s in whole), ""),
    }
    if way in layouts:
        shapes, view = layouts[way]
        found = memory(shapes)
        b.argument(
            found,
            [view or f"{name}.expand({', '.join(map(str, s))})" for s in whole]
            if not view
            else [view] * b.count,
        )
        return
    found = memory(tuple((s[0] + 1, *s[1:]) for s in whole))
    if way == 9:  # overlapping
        b.argument(found, [f"{name}[:-1]"] * b.count)
        b.argument(found, [f"{name}[1:]"] * b.count)
    elif way == 10:  # other shapes of the same memory
        b.argument(found)
        b.argument(found, [f"{name}.view(-1)"] * b.count)
    else:  # disjoint parts of the same memory
        b.argument(found, [f"{name}[1:]"] * b.count)
        b.argument(found, [f"{name}[:1]"] * b.count)


# -- ending --------------------------------------------------------------------------------------
def _finished(b: Builder) -> Program:
    choices = b.choices
    backward = "" if b.failed else _backward(b)
    live = b.live or ["x0"]  # what had another type in a block is not known any more
    computed = [n for n in live if n.startswith("v")] or live
    used = {name for step in walk(tuple(b.steps)) if isinstance(step, Step) for name in step.uses}
    ends = [n for n in computed if n not in used][
        -3:
    ]  # what nothing reads would be dropped as dead code
    outputs = list(
        dict.fromkeys(
            [*ends[::-1], computed[-1], *[choices.pick(live) for _ in range(choices.below(3))]]
        )
    )
    container = choices.pick(("tuple", "dict", "single"))
    if container == "single":
        outputs = outputs[:1]
    return Program(
        tuple(b.memories),
        tuple(b.arguments),
        tuple(b.steps),
        tuple(outputs),
        _calls(b),
        backward,
        container,
        b.failed,
        tuple(b.rejected),
    )


def _calls(b: Builder) -> tuple[Call, ...]:
    """Every size once, then the first one again: other values, and the same memory as left
    behind.
    """
    calls = [Call(k) for k in range(b.count)]
    if b.choices.chance(60):
        calls.append(Call(0, values=1))
    if b.choices.chance(50):
        calls.append(Call(calls[-1].sizes, again=True))
    return tuple(calls)


def _backward(b: Builder) -> str:
    """Who calls backward; inside the function it is a last step."""
    tracked = [
        n
        for n in b.live
        if all(x.requires_grad and x.dtype.is_floating_point for x in b.values(n))
    ]
    if not tracked:
        return ""
    way = b.choices.pick(("outside", "inside", "", "outside"))
    whole = all(set(a.given) == {a.memory} for a in b.arguments if a.memory)
    if b.tame and not (whole and all(m.history != "computed" for m in b.memories)):
        way = way and "outside"  # what runs through history made outside is co-executed
    if way == "inside":
        terms = list(dict.fromkeys([tracked[-1], b.choices.pick(tracked)]))
        text = " + ".join(
            f"({n} * {n}).sum()" if b.choices.chance(50) else f"{n}.mean()" for n in terms
        )
        cell = ("backward", b.dtype(terms[0]), "-", "-")
        b.steps.append(
            Step((f"({text}).backward()",), (), frozenset(terms), cells=frozenset([cell]))
        )
    return way
