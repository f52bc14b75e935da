"""Statements for which it matters which tensor a variable is: gradients, hooks, histories,
attributes and sets of tensors.

In: a Builder. Out: whether a statement was added. Called by `flow.py`, at any depth.
"""

from __future__ import annotations

from tests.random_programs.builder import Builder
from tests.random_programs.statements import like, number

ASKED = ("{x} is {y}", "{x}.is_leaf", "{x}.requires_grad", "{x}.grad_fn is {y}.grad_fn",
         "{x}.grad_fn is None", "len({{{x}, {y}}})", "getattr({x}, 'tag', None)",
         "{x}.retains_grad", "{x}.grad is None", "id({x}) == id({y})", "{y} in {{{x}: 1}}",
         "{x}._is_view()")  # fmt: skip
CHANGED = ("{x}.tag = {n}", "{x}.detach_()", "{x}.requires_grad_()", "{x}.data = {y}.detach() * 2",
           "{x}.requires_grad_(not {x}.requires_grad)")  # fmt: skip
TRACKED = ("{x}.retain_grad()", "{x}.register_hook(lambda g: g * 2)",
           "{v} = tj.autograd.grad(({x} * {y}).sum(), {y}, retain_graph=True)[0]",
           "{v} = tj.autograd.grad(({x} * {y}).sum(), [{x}, {y}], retain_graph=True)[1]",
           "({x} * {y}).sum().backward(retain_graph=True)")  # fmt: skip


def identity(b: Builder) -> bool:
    """What a tensor has besides its elements, asked or changed."""
    x = b.tensor("f", fits=str.isidentifier)
    if x is None or not b.choices.chance(50):
        return False
    y, v = like(b, x), b.fresh("v")
    kind = b.choices.pick((ASKED, ASKED, CHANGED, TRACKED))
    text = b.choices.pick(kind).format(x=x, y=y, v=v, n=number(b))
    if kind is ASKED:
        return b.statement(f"o.log.append({text})", uses=(x, y), mark="identity asked")
    if kind is TRACKED and not all(t.requires_grad for n in (x, y) for t in b.values(n)):
        return False
    defines = (v,) if text.startswith(v) else ()
    return b.statement(text, defines=defines, uses=(x, y), mark="identity changed")
