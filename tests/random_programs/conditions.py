"""What a program decides by: tensor values, sizes, Python numbers, flags and objects.

In: a Builder to ask for operands. Out: a Condition, the text of an expression that has a truth
value at every size; or None. Called by `flow.py` and `statements.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.random_programs.builder import Builder

DECIDED = ("tensor", "size", "number", "flag")  # what decides, the strongest first
RELATIONS = (">", "<", ">=", "<=")


@dataclass(frozen=True)
class Condition:
    text: str
    by: str


def condition(b: Builder, depth: int = 0) -> Condition | None:
    """A decision that eager mode can make; None where nothing fitted."""
    for _ in range(4):
        made = _joined(b, depth) if depth < 2 and b.choices.chance(18) else _simple(b)
        if made is not None and _has_truth(b, made.text):
            return made
    return None


def _has_truth(b: Builder, text: str) -> bool:
    return b.evaluate(f"bool({text})") is not None


def _joined(b: Builder, depth: int) -> Condition | None:
    if b.choices.chance(30):
        inner = condition(b, depth + 1)
        return inner and Condition(f"not ({inner.text})", inner.by)
    left, right = condition(b, depth + 1), condition(b, depth + 1)
    if left is None or right is None:
        return None
    word = b.choices.pick(("and", "or"))
    by = min(left.by, right.by, key=DECIDED.index)
    return Condition(f"({left.text}) {word} ({right.text})", by)


def _simple(b: Builder) -> Condition | None:
    kind = b.choices.pick(
        (_of_values, _of_values, _of_values, _of_values, _of_size, _of_number, _of_flag)
    )
    return kind(b)


def _of_values(b: Builder) -> Condition | None:
    x = b.tensor()
    if x is None:
        return None
    if not b.rank(x) and b.choices.chance(50):
        limit = b.choices.pick(("0", "1", "-1", "0.5", *b.numbers[-2:]))
        return Condition(f"{x} {b.choices.pick(RELATIONS)} {limit}", "tensor")
    number = b.choices.pick(("0", "1", "-1", "0.5", "2", *b.numbers[-2:]))
    relation = b.choices.pick(RELATIONS)
    one = b.choices.pick((f"{x}.sum()", f"{x}.reshape(-1)[0]", f"tj.amax({x})", f"{x}.sum()"))
    forms = [
        f"{one} {relation} {number}",
        f"{one} {relation} {number}",
        f"({x} {relation} {number}).any()",
        f"({x} {relation} {number}).all()",
        f"-1 < {one} < 3",
        f"{one} != {number}",
    ]
    if not b.tame:  # what needs the value at once
        forms += [one, f"bool({one} {relation} {number})", f"{one}.item() {relation} {number}"]
    y = b.tensor()
    if y is not None:
        forms += [f"{x}.sum() {relation} {y}.sum()", f"{x}.sum() {relation} {y}.sum() > 0"]
    return Condition(b.choices.pick(forms), "tensor")


def _of_size(b: Builder) -> Condition | None:
    x = b.tensor(low=1)
    if x is None:
        return None
    d = b.choices.below(b.rank(x))
    limit = b.choices.pick(("0", "1", "2", "3", "4"))
    forms = [
        f"{x}.shape[{d}] > {limit}",
        f"{x}.numel() < {limit}",
        f"len({x}) == {limit}",
        f"{x}.shape[{d}] % 2",
        f"1 < {x}.shape[{d}] < 5",
        f"{x}.size(-1) >= {limit}",
    ]
    y = b.tensor(low=1)
    if y is not None:
        forms += [f"{x}.shape[0] == {y}.shape[0]", f"{x}.shape == {y}.shape"]
    return Condition(b.choices.pick(forms), "size")


def _of_number(b: Builder) -> Condition | None:
    if not b.numbers:
        return None
    n = b.choices.pick(b.numbers[-4:])
    limit = b.choices.pick(("0", "1", "2", "3", *b.numbers))
    forms = (
        f"{n} {b.choices.pick(RELATIONS)} {limit}",
        f"{n} % 2 == 0",
        f"-1 < {n} < 3",
        f"{n}",
        f"{n} == {limit}",
        f"{n} in (0, 2, 3)",
    )
    return Condition(b.choices.pick(forms), "number")


def _of_flag(b: Builder) -> Condition | None:
    forms = ["o.flag", "not o.flag", "'t' in o.d", "o.name == 'a'", "o.none is None"]
    forms += [f"len({name}) > {b.choices.pick((0, 1, 2))}" for name in b.lists[-2:]]
    forms += [f"{name}" for name in b.lists[-1:]]
    x, y = b.tensor(), b.tensor()
    if x is not None and y is not None:
        forms += [
            f"{x} is {y}",
            f"{x}.dtype == tj.float32",
            f"{x}.requires_grad",
            "tj.is_grad_enabled()",
            f"isinstance({x}, tj.Tensor)",
            f"{x}.ndim > 1",
        ]
    return Condition(b.choices.pick(forms), "flag")
