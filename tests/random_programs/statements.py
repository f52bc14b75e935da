"""What a step of a program with control flow can be besides an op: names bound anew, aliases,
numbers, lists, host reads, comprehensions.

In: a Builder. Out: whether a statement was added. Called by `flow.py`, at any depth.
"""

from __future__ import annotations

import tracejit as tj
from tests.random_programs.builder import Builder
from tests.random_programs.conditions import condition
from tests.random_programs.spaces import KIND

SAME_TYPE = (
    "{x} * 0.5", "{x} + {y}", "{x} - {y}", "tj.tanh({x})", "{x}.clone()", "{x}.flip(0)", "-{x}",
    "{x} + {y}.sum()", "tj.where({x} > 0, {x}, {y})", "{x} + {n}", "{x} * {n}", "{y}", "{y}",
    "{x}[:]", "{x}.view({x}.shape)", "({x} * {y}).clamp(-4, 4)", "{x}.detach()", "{y} + 1",
    "{x} + tj.rand_like({x})",
)  # fmt: skip
VIEWS = ("{y}", "{x}[:]", "{x}.view({x}.shape)", "{x}.detach()")
OTHER_TYPE = ("{x}.double()", "{x}.unsqueeze(0)", "{x}.sum()", "{x}.reshape(-1)", "{n}", "{x} > 0")


def like(b: Builder, x: str) -> str:
    """A tensor of the same dtype and shape, that one itself where there is no other."""
    return b.tensor(fits=lambda n: b.type(n) == b.type(x) and n != x) or x


def number(b: Builder) -> str:
    plain = b.choices.pick(("1", "2", "0.5", "3", "-1"))
    return b.choices.pick(b.numbers) if b.numbers and b.choices.chance(60) else plain


def rebind(b: Builder) -> bool:
    """A variable bound to another tensor, of its type as a rule."""
    x = b.tensor(fits=lambda n: not b.careful or n.isidentifier())
    if x is None:
        return False
    other = b.choices.chance(5)
    form = b.choices.pick(OTHER_TYPE if other else SAME_TYPE)
    if b.careful and ("rand" in form or form in VIEWS and b.choices.chance(70)):
        return False
    y = like(b, x)
    text = form.format(x=x, y=y, n=number(b))
    found = b.evaluate(text)
    if found is None or not all(isinstance(f, tj.Tensor) for f in found):
        return False
    same = [(f.dtype.name, tuple(map(int, f.shape))) for f in found] == [
        (b.dtype(x), s) for s in b.shapes(x)
    ]
    if same == other:
        return False
    return b.statement(f"{x} = {text}", defines=() if "." in x else (x,), uses=(x, y),
                       mark="rebinding")


def alias(b: Builder) -> bool:
    """Another name for a tensor, or for one of two."""
    x = b.tensor()
    if x is None:
        return False
    v, y = b.fresh("v"), like(b, x)
    if b.choices.chance(35):
        text = b.choices.pick((f"{x}", f"{x}[:]", f"{x}.view({x}.shape)", f"{x}.detach()"))
        return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="alias")
    c = condition(b)
    if c is None:
        return False
    a = b.choices.pick((x, x, f"{x} * 2", f"{x}.clone()", x if b.tame else f"{x}[:]"))
    text = f"{a} if {c.text} else {y}"
    return b.statement(f"{v} = {text}", defines=(v,), uses=(x, y), mark="ternary", decided=c.by)


def swap(b: Builder) -> bool:
    """Two names that change places."""
    x = b.tensor(fits=str.isidentifier)
    y = x and like(b, x)
    if x is None or y is None or x == y or not y.isidentifier():
        return False
    text = b.choices.pick((f"{x}, {y} = {y}, {x}", f"{x}, {y} = {y} * 2, {x}"))
    return b.statement(text, defines=(x, y), uses=(x, y), mark="rebinding")


def gradient(b: Builder) -> bool:
    """A gradient that is a value, or a leaf made here."""
    x, v = b.tensor("f"), b.fresh("v")
    if x is None or not b.choices.chance(40):
        return False
    if b.choices.chance(40):
        text = f"{x}.detach().clone().requires_grad_()"
        return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="leaf")
    y = b.tensor("f") or x
    text = f"tj.autograd.grad(({y} * {x}.sum()).sum(), {x}, retain_graph=True)"
    return b.statement(f"({v},) = {text}", defines=(v,), uses=(x, y), mark="autograd.grad")


def truth_value(b: Builder) -> bool:
    """`and`, `or` and `not` as values."""
    c, n = condition(b, 1), b.fresh("n")
    if c is None:
        return False
    x = b.tensor()
    forms = (f"not ({c.text})", f"({c.text}) and {number(b)}", f"({c.text}) or {x or 2}",
             f"bool({c.text})")  # fmt: skip
    return b.statement(f"{n} = {b.choices.pick(forms)}", f"o.log.append({n})", mark="and/or/not",
                       decided=c.by)


def count(b: Builder) -> bool:
    """Arithmetic on Python numbers: a new one, or one that changes."""
    c = b.choices
    x = b.tensor(low=1)
    old = [n for n in b.numbers if n[0] not in "ik"]  # what bounds a loop stays as it is
    sources = ["1", "2", number(b), f"len({c.pick(b.lists)})" if b.lists else "3"]
    sources += [f"{x}.shape[0]", f"{x}.numel()"] if x else []
    if not old or c.chance(35):
        n = b.fresh("n")
        text = f"{c.pick(sources)} {c.pick(('+', '-', '*'))} {number(b)}"
        return b.statement(f"{n} = {text}", defines=(n,), mark="number")
    n = c.pick(old)
    if not isinstance(b.value(n), int):
        return b.statement(f"{n} = {n} * 0.5 + {number(b)}", mark="number")
    form = c.pick((f"{n} += {c.pick(sources)}", f"{n} -= 1", f"{n} = ({n} * 3 + 1) % 7",
                   f"{n} = max({n}, {number(b)})", f"{n} = {c.pick(sources)}"))  # fmt: skip
    return b.statement(form, mark="number")


def host_read(b: Builder) -> bool:
    """A value that leaves the tensors: into a list, a text, a number."""
    x = b.tensor(fits=lambda n: all(0 not in s for s in b.shapes(n)))
    if x is None:
        return False
    one = b.choices.pick((f"{x}.sum()", f"{x}.reshape(-1)[0]", f"tj.amax({x})"))
    if b.choices.chance(15):
        n = b.fresh("n")
        return b.statement(f"{n} = float({one})", defines=(n,), uses=(x,), mark="host read")
    text = b.choices.pick((f"{one}.item()", f"float({one})", f"f'{{{one}.item():.3g}}'",
                           f"{one}.tolist()", f"str({one}.item())", f"{x}.dtype"))  # fmt: skip
    return b.statement(f"o.log.append({text})", uses=(x,), mark="host read")


# -- lists ---------------------------------------------------------------------------------------
def new_list(b: Builder) -> bool:
    x = b.tensor()
    if x is None:
        return False
    name = b.fresh("l")
    text = b.choices.pick((f"[{x}]", f"[{x}, {like(b, x)}]", f"[{x} * k for k in range(2)]"))
    return b.statement(f"{name} = {text}", defines=(name,), uses=(x,), mark="list")


def append(b: Builder) -> bool:
    """A tensor of the elements' type put into a list."""
    if b.careful and "branch" in b.places:
        return False
    if not b.lists:
        return new_list(b)
    name = b.choices.pick(b.lists)
    x = b.tensor(fits=lambda n: _fits_list(b, name, n))
    if x is None:
        return False
    value = b.choices.pick((x, x, f"{x} * 2", f"{x}.clone()"))
    text = f"{name} += [{value}]" if b.choices.chance(10) else f"{name}.append({value})"
    return b.statement(text, uses=(x,), mark="list")


def _fits_list(b: Builder, name: str, x: str) -> bool:
    if not b.evaluate(name):
        return False
    return all(
        not elements or (elements[0].dtype, elements[0].shape) == (y.dtype, y.shape)
        for elements, y in zip(b.values(name), b.values(x))
        if not elements or isinstance(elements[0], tj.Tensor)
    )


def read_list(b: Builder) -> bool:
    """Tensors out of a list: an element, all joined, a sum, those that fit."""
    if not b.lists:
        return False
    name, v = b.choices.pick(b.lists), b.fresh("v")
    forms = (f"tj.stack({name})", f"sum({name})", f"{name}[-1]", f"{name}[0]", f"{name}.pop()",
             f"tj.cat([t.reshape(-1) for t in {name}])", f"sum(t.sum() for t in {name})",
             f"tj.stack([t * 2 for t in {name}])", f"max({name}, key=len)",
             f"[t for t in {name} if t.sum() > 0]")  # fmt: skip
    text = b.choices.pick(forms)
    if not b.choices.chance(10):  # an empty list is an exception, which must agree, too
        text = f"{text} if {name} else tj.zeros(2)"
    found = b.evaluate(name)
    if found is None or any(len(x) > 12 for x in found):
        return False
    return b.statement(f"{v} = {text}", defines=(v,), mark="list")


def comprehension(b: Builder) -> bool:
    """A loop inside an expression."""
    x = b.tensor("fib", 1, fits=lambda n: all(s[0] < 9 for s in b.shapes(n)))
    if x is None:
        return False
    v, c = b.fresh("v"), condition(b, 1)
    test = f" if {c.text}" if c and b.choices.chance(30) else ""
    text = b.choices.pick((f"sum([r * 2 for r in {x}{test}])", f"[r.sum() for r in {x}{test}]",
                           f"sum({x}[i] * i for i in range({x}.shape[0]){test})",
                           f"{{k: r for k, r in enumerate({x})}}"))  # fmt: skip
    return b.statement(f"{v} = {text}", defines=(v,), uses=(x,), mark="comprehension",
                       decided=c.by if c and test else "size")


def index_row(b: Builder) -> bool:
    """Rows by the index of a loop around, read or written."""
    indices = [n for n in b.numbers if n.startswith("i")]
    if not indices:
        return False
    i = b.choices.pick(indices)
    x = b.tensor("fib", 1, fits=lambda n: all(s[0] for s in b.shapes(n)))
    if x is None:
        return False
    place = b.choices.pick((i, f"{i} % {x}.shape[0]", f"-1 - {i}", f"{i} - 1", i))
    if b.choices.chance(60):
        v = b.fresh("v")
        return b.statement(f"{v} = {x}[{place}]", defines=(v,), uses=(x,), mark="row of index")
    floating = b.dtype(x) in KIND["f"]
    value = b.choices.pick((f"{x}[0]", "1", f"{x}[{place}] + 1", f"{x}[{place}] * 2"))
    sign = "+=" if floating and b.choices.chance(40) else "="
    return b.statement(f"{x}[{place}] {sign} {value}", uses=(x,), mark="row of index")
