"""What a step can be, continued: reductions, movement, indexing, writes, and decisions in Python.

In: a Builder. Out: a Draft or None. Writes go to arguments, to views of them and to results of
earlier steps.
"""

from __future__ import annotations

from tests.random_programs.builder import Builder, Draft
from tests.random_programs.operations import literal

SUMS = ("sum", "mean", "var", "prod", "cumsum")
EXTREMES = ("amax", "amin", "argmax", "argmin", "max", "min")
IN_PLACE = (
    "add_",
    "sub_",
    "mul_",
    "div_",
    "copy_",
    "fill_",
    "zero_",
    "relu_",
    "clamp_",
    "exp_",
    "tanh_",
    "sqrt_",
    "neg_",
    "pow_",
    "masked",
    "setitem",
    "iadd",
    "imul",
)


def _dim(b: Builder, x: str) -> int:
    return (
        b.choices.between(-b.rank(x), b.rank(x) - 1)
        if b.choices.chance(30)
        else b.choices.below(b.rank(x))
    )


def total(b: Builder) -> Draft | None:
    op = b.choices.pick(SUMS)
    x = b.tensor("fib" if op in ("sum", "prod") and b.choices.chance(40) else "f")
    if x is None:
        return None
    if op == "cumsum" or (b.rank(x) and b.choices.chance(70)):
        if not b.rank(x):
            return None
        dims: object = _dim(b, x)
        if op in ("sum", "mean", "var") and b.rank(x) > 1 and b.choices.chance(30):
            dims = (0, b.rank(x) - 1)
        keep = ", keepdim=True" if op != "cumsum" and b.choices.chance(40) else ""
        return Draft(op, f"tj.{op}({x}, {dims}{keep})", (x,))
    return Draft(op, f"tj.{op}({x})", (x,))


def extreme(b: Builder) -> Draft | None:
    op = b.choices.pick(EXTREMES)
    x = b.tensor("fi", fits=lambda n: all(0 not in s for s in b.shapes(n)))
    if x is None:
        return None
    if not b.rank(x) or b.choices.chance(30):
        return Draft(op, f"tj.{op}({x})", (x,))
    text = f"tj.{op}({x}, {_dim(b, x)}{', keepdim=True' if b.choices.chance(40) else ''})"
    return Draft(op, text, (x,), results=2 if op in ("max", "min") else 1)


def truth(b: Builder) -> Draft | None:
    op, x = b.choices.pick(("any", "all", "count_nonzero")), b.tensor()
    if x is None:
        return None
    return Draft(
        op,
        f"tj.{op}({x}{f', {_dim(b, x)}' if b.rank(x) and b.choices.chance(60) else ''})",
        (x,),
    )


# -- movement ------------------------------------------------------------------------------------
def reshape(b: Builder) -> Draft | None:
    x = b.tensor()
    if x is None:
        return None
    rank = b.rank(x)
    forms = [
        ("reshape", f"{x}.reshape(-1)"),
        ("unsqueeze", f"{x}.unsqueeze({b.choices.between(0, rank)})"),
        ("unsqueeze", f"{x}.unsqueeze(-1)"),
        ("squeeze", f"{x}.squeeze()"),
        ("view", f"{x}.view({x}.shape)"),
    ]
    if rank:
        forms += [
            ("squeeze", f"{x}.squeeze({_dim(b, x)})"),
            ("view", f"{x}.view(1, *{x}.shape)"),
            ("flatten", f"{x}.flatten()"),
            ("view", f"{x}.view(-1)"),
            ("reshape", f"{x}.reshape(-1, 1)"),
        ]
    if rank == 2:
        forms += [
            ("reshape", f"{x}.reshape({x}.shape[1], {x}.shape[0])"),
            ("reshape", f"{x}.t().reshape(-1)"),
        ]
    op, text = b.choices.pick(forms)
    return Draft(op, text, (x,))


def turn(b: Builder) -> Draft | None:
    x = b.tensor("fib", 2)
    if x is None:
        return None
    order = list(range(b.rank(x)))
    order = order[1:] + order[:1] if b.choices.chance(50) else order[::-1]
    op, text = b.choices.pick(
        (
            ("permute", f"{x}.permute({', '.join(map(str, order))})"),
            ("transpose", f"{x}.transpose(0, -1)"),
            ("transpose", f"{x}.transpose(-2, -1)"),
        )
    )
    return Draft(op, text, (x,))


def expand(b: Builder) -> Draft | None:
    x = b.tensor("fib", 0, 3)
    if x is None:
        return None
    if b.choices.chance(40):
        y = b.partner(x)
        return Draft("expand", f"{x}.expand_as({y})", (x, y))
    count = b.choices.pick((2, 3, 1))
    return Draft(
        "expand",
        f"{x}.unsqueeze(0).expand({', '.join([str(count)] + ['-1'] * b.rank(x))})",
        (x,),
    )


def part(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1)
    if x is None:
        return None
    key = b.choices.pick(
        ("1:", ":-1", "::2", "1:3", "..., 0", "0", "-1", "..., 1:", "..., ::3", "None", "..., -2:")
    )
    op = "select" if key in ("0", "-1", "..., 0") else "slice"
    return Draft(op, f"{x}[{key}]", (x,))


def narrow(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1)
    return x and Draft("narrow", f"{x}.narrow({_dim(b, x)}, 0, 1)", (x,))


def pieces(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1)
    if x is None:
        return None
    d = _dim(b, x)
    op, text = b.choices.pick(
        (
            ("split", f"tj.split({x}, 2, {d})[0]"),
            ("split", f"tj.split({x}, 3, {d})[-1]"),
            ("chunk", f"tj.chunk({x}, 2, {d})[0]"),
            ("unbind", f"tj.unbind({x}, {d})[0]"),
        )
    )
    return Draft(op, text, (x,))


def join(b: Builder) -> Draft | None:
    x = b.tensor("fib", 0, 3)
    if x is None:
        return None
    y = b.tensor("fib", fits=lambda n: b.shapes(n) == b.shapes(x)) or x
    if b.rank(x) and b.choices.chance(60):
        return Draft("cat", f"tj.cat([{x}, {y}], {_dim(b, x)})", (x, y))
    return Draft("stack", f"tj.stack([{x}, {y}, {x}], {b.choices.between(0, b.rank(x))})", (x, y))


def rearrange(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1, 3)
    if x is None:
        return None
    forms = [
        ("flip", f"tj.flip({x}, ({_dim(b, x)},))"),
        ("roll", f"tj.roll({x}, 1, {_dim(b, x)})"),
        ("pad", f"F.pad({x}, (1, 2))"),
        ("pad", f"F.pad({x}, (0, 1), value=1)"),
    ]
    if b.rank(x) > 1:
        forms += [
            ("tril", f"tj.tril({x})"),
            ("triu", f"tj.triu({x}, 1)"),
            ("diagonal", f"tj.diagonal({x})"),
        ]
    op, text = b.choices.pick(forms)
    return Draft(op, text, (x,))


# -- indexing ------------------------------------------------------------------------------------
def select_rows(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1, 3)
    if x is None:
        return None
    d = b.choices.below(b.rank(x))
    i = b.index(b.shape(b.choices.pick("nm")), [s[d] for s in b.shapes(x)])
    if d == 0 and b.choices.chance(30):
        return Draft("index", f"{x}[{i}]", (x, i))
    return Draft("index_select", f"tj.index_select({x}, {d}, {i})", (x, i))


def gather(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1, 3)
    if x is None:
        return None
    d = b.choices.below(b.rank(x))
    i = b.index(b.shapes(x), [s[d] for s in b.shapes(x)])
    return Draft("gather", f"tj.gather({x}, {d}, {i})", (x, i))


def scatter_add(b: Builder) -> Draft | None:
    x = b.tensor("fi", 1, 3)
    if x is None:
        return None
    y = b.tensor("fi", fits=lambda n: b.shapes(n) == b.shapes(x) and b.dtype(n) == b.dtype(x)) or x
    d = b.choices.below(b.rank(x))
    i = b.index(b.shapes(x), [s[d] for s in b.shapes(x)])
    return Draft("scatter_add", f"tj.scatter_add({x}, {d}, {i}, {y})", (x, i, y))


def embedding(b: Builder) -> Draft | None:
    x = b.tensor("f", 2, 2)
    if x is None:
        return None
    i = b.index(b.shape(*b.choices.pick(("n", "nm"))), [s[0] for s in b.shapes(x)])
    return Draft("embedding", f"F.embedding({i}, {x})", (x, i))


def masked_fill(b: Builder) -> Draft | None:
    x = b.tensor("fi")
    if x is None:
        return None
    mask = b.tensor("b", fits=lambda n: b._broadcasts(x, n))
    condition = mask or f"({x} > 0)"
    return Draft(
        "masked_fill",
        f"tj.masked_fill({x}, {condition}, 3)",
        (x, mask) if mask else (x,),
    )


def masked_select(b: Builder) -> Draft | None:
    """A size that depends on values: the segment ends."""
    x = b.tensor("fi", 1)
    return x and Draft("masked_select", f"{x}[{x} > 0]", (x,))


# -- writes --------------------------------------------------------------------------------------
def write(b: Builder) -> Draft | None:
    op = b.choices.pick(IN_PLACE)
    kinds = "f" if op in ("div_", "exp_", "tanh_", "sqrt_") else "fi"
    if op in ("copy_", "fill_", "zero_", "setitem"):
        kinds = "fib"
    x = b.tensor(kinds)
    if x is None:
        return None
    target = x
    if b.rank(x) and b.choices.chance(35):
        target = x + b.choices.pick(
            ("[1:]", "[0]", "[..., ::2]", ".view(-1)", "[:-1]")
            + ((".t()", ".transpose(0, 1)[0]") if b.rank(x) == 2 else ())
        )
    return _written(b, op, x, target)


def _written(b: Builder, op: str, x: str, target: str) -> Draft:
    whole = target == x
    y = b.partner(x, "f" if b.dtype(x).startswith(("float", "bfloat")) else "i") if whole else ""
    operand = y if whole and b.choices.chance(50) else literal(b, x)
    uses = (x, operand) if operand in b.live or operand in b.numbers else (x,)
    noisy = f"{operand}" if operand in b.live and operand != x else operand
    if op in ("add_", "sub_", "mul_", "div_"):
        return Draft(op, f"{target}.{op}({noisy})", uses, writes=x)
    if op in ("iadd", "imul"):
        sign = "+" if op == "iadd" else "*"
        return Draft(op, f"{target if target.endswith(']') else x} {sign}= {noisy}", uses, writes=x)
    if op == "copy_":
        return Draft(
            op,
            f"{target}.copy_({operand if operand in b.live else x + '.clone()'})"
            if whole
            else f"{target}.copy_({target} * 2)",
            uses,
            writes=x,
        )
    if op == "setitem" and b.rank(x):
        key = b.choices.pick(("0", "1:", "..., -1", "::2", "...", f"{x} > 1"))
        return Draft(
            op,
            f"{x}[{key}] = {literal(b, x) if not whole else operand}",
            uses,
            writes=x,
        )
    if op == "masked":
        return Draft(op, f"{x}[{x} > 0] = 2", (x,), writes=x)
    ending = {
        "fill_": "2",
        "clamp_": "-1, 1" if b.dtype(x) != "uint8" else "1, 3",
        "pow_": "2",
        "zero_": "",
        "setitem": "",
    }
    name = "zero_" if op == "setitem" else op
    return Draft(name, f"{target}.{name}({ending.get(name, '')})", (x,), writes=x)


# -- Python --------------------------------------------------------------------------------------
def branch(b: Builder) -> Draft | None:
    """A decision on a tensor's value."""
    x = b.tensor("fi")
    if x is None:
        return None
    new = f"v{len(b.steps)}"
    return Draft("branch", f"{x} + 1 if bool(tj.any({x} > 2)) else {x} * 2", (x,)) if new else None


def item(b: Builder) -> Draft | None:
    x = b.tensor("f", fits=lambda n: all(0 not in s for s in b.shapes(n)))
    return x and Draft("item", f"{x} * tj.amax({x}).item()", (x,))


def loop(b: Builder) -> Draft | None:
    """Python's own loop over a size."""
    x = b.tensor("f", 1, fits=lambda n: all(s[0] < 6 for s in b.shapes(n)))
    return x and Draft(
        "loop", f"sum([{x}[i] * (i + 1) for i in range({x}.shape[0])], tj.zeros(()))", (x,)
    )


def size_decision(b: Builder) -> Draft | None:
    x = b.tensor("fib", 1)
    return x and Draft("size_decision", f"{x}[1:] if {x}.shape[0] > 3 else {x}", (x,))


MOVEMENTS = {
    total: SUMS,
    extreme: EXTREMES,
    truth: ("any", "all", "count_nonzero"),
    reshape: ("reshape", "view", "squeeze", "unsqueeze", "flatten"),
    turn: ("permute", "transpose"),
    expand: ("expand",),
    part: ("slice", "select"),
    narrow: ("narrow",),
    pieces: ("split", "chunk", "unbind"),
    join: ("cat", "stack"),
    rearrange: ("flip", "roll", "pad", "tril", "triu", "diagonal"),
    select_rows: ("index_select", "index"),
    gather: ("gather",),
    scatter_add: ("scatter_add",),
    embedding: ("embedding",),
    masked_fill: ("masked_fill",),
    masked_select: ("masked_select",),
    write: IN_PLACE,
    branch: ("branch",),
    item: ("item",),
    loop: ("loop",),
    size_decision: ("size_decision",),
}
WEIGHTS = {
    total: 5,
    extreme: 3,
    reshape: 4,
    turn: 3,
    part: 4,
    expand: 3,
    join: 3,
    write: 10,
    pieces: 2,
    rearrange: 2,
    select_rows: 2,
    gather: 2,
    scatter_add: 2,
}
