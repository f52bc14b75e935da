"""Python state of random programs: an object passed in, globals, cells of a function around; how
programs read and change it, and what the caller does to it between calls.

In: a Builder. Out: statements of the program, of its preamble, and of the caller. Called by
`flow.py` and `generator.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import tracejit as tj
from tests.random_programs.builder import Builder
from tests.random_programs.program import Block, Call, Clause, Step
from tests.random_programs.spaces import DTYPES
from tests.random_programs.statements import like, number


@dataclass
class State:
    """The caller's state, as Python; methods of its class are added while a program is made."""

    once: tuple[str, ...]
    each: tuple[str, ...]
    outer: tuple[str, ...]
    cells: tuple[str, ...]
    methods: list[Block]
    functions: list[Block]

    def preamble(self) -> tuple[Step | Block, ...]:
        lines = tuple(Step((line,), (line.split(" ")[0],), frozenset()) for line in self.outer)
        return (*lines, Block((Clause("class State:", tuple(self.methods)),)), *self.functions)


def new_state(b: Builder) -> State:
    """An object `o` with numbers, flags, tensors and containers; globals and cells."""
    c = b.choices
    shape = c.pick((("n", "m"), ("n",), (), ("n", "m"), (3,)))
    history = c.pick(("", "", "", "leaf") if b.tame else ("", "", "leaf", "computed"))
    dtype = c.pick(DTYPES) if c.chance(30) else "float32"
    memory = b.memory(dtype, b.shape(*shape), history=history if "float" in dtype else "").name
    once = ["o = State()", f"o.k = {c.pick((0, 1, 3))}", f"o.f = {c.pick((0.5, 2.0, -1.0))}",
            f"o.flag = {c.chance(50)}", "o.log = []", "o.d = {'a': 1}", "o.name = 'a'",
            "o.none = None"]  # fmt: skip
    views = (memory, memory, f"{memory} * 1", f"{memory}.view({memory}.shape)")
    views = views[:1] if b.tame and history else views
    each = [f"o.t = {c.pick(views)}", f"o.l = [{c.pick(('', memory, f'{memory}, {memory} * 2'))}]",
            "o.d.pop('t', None)"]  # fmt: skip
    outer = [f"G0 = {c.pick((1, 2, 0.5))}"] if c.chance(50) else []
    cells = [f"c0 = {c.pick((1, 2, 0.5))}"] if c.chance(40) else []
    state = State(tuple(once), tuple(each), tuple(outer), tuple(cells), b.methods, b.functions)
    for space in b.spaces:
        exec("\n".join(["class State:\n    pass", *once, *each, *outer, *cells]), space)
    b.live.append("o.t")
    b.lists.append("o.l")
    b.numbers += ["o.k", "o.f", *(line.split(" ")[0] for line in (*outer, *cells))]
    return state


# -- steps ---------------------------------------------------------------------------------------
def attribute(b: Builder) -> bool:
    """The object's attributes read, bound and changed."""
    x = like(b, "o.t") if "o.t" in b.live and b.choices.chance(80) else b.tensor()
    if x is None:
        return False
    v = b.fresh("v")
    if b.choices.chance(30):
        text, defines = f"{v} = o.t", (v,)
        return b.statement(text, defines=defines, mark="attribute read")
    text = b.choices.pick((f"o.t = {x}", f"o.t = {x} * 2", "o.k += 1", "o.flag = not o.flag",
                           f"o.k = {number(b)}", "o.f = o.f * 0.9 + 0.25", "o.k = (o.k + 1) % 3",
                           f"o.none = {x}", f"o.t = {x}.detach()", "o.k += 1"))  # fmt: skip
    return b.statement(text, uses=(x,), mark="attribute store")


def dictionary(b: Builder) -> bool:
    x = b.tensor()
    if x is None:
        return False
    v = b.fresh("v")
    if b.choices.chance(40):
        text = b.choices.pick((f"o.d.get('t', {x})", f"o.d['t'] if 't' in o.d else {x}",
                               f"o.d.setdefault('t', {x})"))  # fmt: skip
        return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="dict")
    text = b.choices.pick((f"o.d['t'] = {x}", "o.d['a'] += 1", f"o.d['b'] = {number(b)}",
                           f"o.d.update(t={x} + 1)", "o.d.pop('b', None)"))  # fmt: skip
    return b.statement(text, uses=(x,), mark="dict")


def outer_number(b: Builder) -> bool:
    """A global or a cell of the function around changes."""
    names = [n for n in b.numbers if n in ("G0", "c0")]
    if not names or "function" in b.places:
        return False
    n = b.choices.pick(names)
    text = b.choices.pick((f"{n} += 1", f"{n} = {n} * 0.5 + 1", f"{n} = {number(b)}"))
    return b.statement(text, mark="global" if n == "G0" else "cell")


# -- between calls -------------------------------------------------------------------------------
def with_changes(b: Builder, state: State, calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """The calls, and what the caller changes before some of them."""
    made = list(calls)
    while len(made) < 4 and b.choices.chance(50):
        made.append(Call(made[-1].sizes, again=True))
    return tuple(call if k == 0 else _changed(b, state, call) for k, call in enumerate(made))


def _changed(b: Builder, state: State, call: Call) -> Call:
    changes = [
        _change(b, state) for _ in range(b.choices.between(0, 2)) if b.choices.chance(80)
    ]
    return replace(call, changes=tuple(changes), no_grad=b.choices.chance(8))


def _change(b: Builder, state: State) -> str:
    c = b.choices
    m = c.pick(b.memories).name
    floating = b.value("o.t").dtype.is_floating_point if _is_tensor(b) else False
    forms = [
        f"o.k = {c.pick((0, 2, 5, -1))}",
        f"o.k = {c.pick((0, 2, 5, -1))}",
        f"o.k = {c.pick((0.5, 2.0))}",
        f"o.f = {c.pick((0.25, 3.0, -0.5))}",
        "o.flag = not o.flag",
        "o.flag = not o.flag",
        f"o.t = {m}",
        f"o.t = {m}.view({m}.shape)",
        "o.t = o.t.double()" if floating else "o.t = o.t.clone()",
        "o.t = o.t.detach()",
        "o.l.clear()",
        f"o.l.append({m})",
        "o.l = list(o.l)",
        "o.l = o.l[:1]",
        "o.log.clear()",
        "o.d['a'] = 4",
        f"o.d['t'] = {m}",
        "o.d = dict(o.d)",
        "o.name = 'b'",
        f"o.none = {c.pick((m, '3', 'None'))}",
        f"tj.manual_seed({c.pick((3, 4))})",
    ]
    forms += [f"scope['G0'] = {c.pick((3, 0.25, 2))}"] * 3 if state.outer else []
    forms += [f"cell('c0', {c.pick((3, 0.25, 2))})"] * 3 if state.cells else []
    numbers = [a.name for a in b.arguments if not a.memory and a.name != "o"]
    forms += [f"{n} = {c.pick((1, 2, 3, 0.5))}" for n in numbers[-2:]] * 2
    tensors = [a.name for a in b.arguments if a.memory and a.name not in b.frozen]
    forms += [f"{tensors[-1]} = {tensors[0]}", f"{tensors[-1]} = {tensors[-1]}.detach().clone()",
              f"{tensors[0]} = o.t"] if tensors else []  # fmt: skip
    return c.pick(forms)


def _is_tensor(b: Builder) -> bool:
    return all(isinstance(x, tj.Tensor) for x in b.values("o.t"))
