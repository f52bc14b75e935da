"""What a step can be: elementwise ops, casts, products, composites and random tensors, as drafts.

In: a Builder to ask for operands. Out: a Draft, or None where the program has no fitting tensor. A
function is listed with the ops it makes, so that coverage can name those never made. Movement,
reductions, indexing and writes: `movements.py`.
"""

from __future__ import annotations

from tests.random_programs.builder import Builder, Draft
from tests.random_programs.spaces import DTYPES

EXACT_FLOAT = ("abs", "sign", "floor", "ceil", "trunc", "round", "neg", "square", "relu")
MATH = (
    "exp",
    "log",
    "sqrt",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "cos",
    "rsqrt",
    "reciprocal",
    "expm1",
    "log1p",
    "exp2",
    "log2",
    "atan",
    "tan",
    "sinh",
)
ACTIVATIONS = ("F.gelu", "F.silu", "F.softplus", "F.leaky_relu", "F.elu")
BINARY = ("add", "sub", "mul", "div")
SELECTION = ("maximum", "minimum")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGIC = ("logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
TESTS = ("isnan", "isfinite", "isinf", "logical_not")
CASTS = tuple(dict.fromkeys(DTYPES))


def exact_unary(b: Builder) -> Draft | None:
    op = b.choices.pick(EXACT_FLOAT)
    x = b.tensor("f" if op in ("floor", "ceil", "trunc", "round") else "fi")
    return x and Draft(op, f"tj.{op}({x})", (x,))


def math(b: Builder) -> Draft | None:
    op = b.choices.pick(MATH)
    x = b.tensor("fib" if b.choices.chance(20) else "f")
    return x and Draft(op, f"tj.{op}({x})", (x,))


def activation(b: Builder) -> Draft | None:
    op, x = b.choices.pick(ACTIVATIONS), b.tensor("f")
    return x and Draft(op[2:], f"{op}({x})", (x,))


def gelu_tanh(b: Builder) -> Draft | None:
    x = b.tensor("f")
    return x and Draft("gelu", f"F.gelu({x}, approximate='tanh')", (x,))


def literal(b: Builder, x: str) -> str:
    """A Python number that goes with a tensor: an argument, a size, or written out."""
    if b.dtype(x) == "bool":
        return b.choices.pick(("True", "2", "0.5"))
    whole = b.dtype(x) not in ("float32", "float64", "float16", "bfloat16")
    way = b.choices.below(4)
    if way == 1 and b.rank(x):
        return f"{x}.shape[{b.choices.below(b.rank(x))}]"
    if way == 2:
        if b.numbers and b.choices.chance(50):
            return b.choices.pick(b.numbers)
        return b.number(
            [
                b.choices.pick((2, 3, 1, -1))
                if whole
                else b.choices.pick((0.5, 2.0, -1.5, 3.25, 0.0, 1e-3))
                for _ in range(b.count)
            ]
        )
    return (
        b.choices.pick(("2", "1", "0", "-1", "3", "2.5"))
        if whole
        else b.choices.pick(("2.0", "0.5", "1", "0", "-1.5", "3", "1e-3"))
    )


def binary(b: Builder) -> Draft | None:
    op, x = b.choices.pick(BINARY + SELECTION), b.tensor()
    if x is None:
        return None
    if b.choices.chance(65) or op in SELECTION:
        y = b.partner(x)
        return Draft(op, f"tj.{op}({x}, {y})", (x, y))
    sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[op]
    number = literal(b, x)
    text = f"{x} {sign} {number}" if b.choices.chance(50) else f"{number} {sign} {x}"
    return Draft(op, text, (x, number) if number in b.numbers else (x,))


def scaled(b: Builder) -> Draft | None:
    x = b.tensor("f")
    if x is None:
        return None
    y = b.partner(x, "f")
    return Draft("add", f"tj.add({x}, {y}, alpha={b.choices.pick((2, 0.5, -1))})", (x, y))


def power(b: Builder) -> Draft | None:
    x = b.tensor("fi")
    if x is None:
        return None
    if b.dtype(x) in ("float32", "float64", "float16", "bfloat16"):
        if b.choices.chance(30):
            y = b.partner(x, "f")
            return Draft("pow", f"tj.pow({x}, {y})", (x, y))
        return Draft("pow", f"{x} ** {b.choices.pick((2, 3, 0.5, -1, 1, 0, 1.5))}", (x,))
    return Draft("pow", f"{x} ** {b.choices.pick((2, 3, 1, 0))}", (x,))


def division(b: Builder) -> Draft | None:
    op, x = b.choices.pick(("floor_divide", "remainder", "fmod")), b.tensor("fi")
    if x is None:
        return None
    divisor = b.choices.pick((2, 3, -2, 7))
    if b.dtype(x) == "uint8":
        divisor = abs(divisor)
    return Draft(op, f"tj.{op}({x}, {divisor})", (x,))


def comparison(b: Builder) -> Draft | None:
    op, x = b.choices.pick(COMPARISONS), b.tensor()
    if x is None:
        return None
    y = b.partner(x) if b.choices.chance(60) else literal(b, x)
    return Draft(op, f"tj.{op}({x}, {y})", (x, y) if y in b.live or y in b.numbers else (x,))


def logic(b: Builder) -> Draft | None:
    op = b.choices.pick(LOGIC + BITS)
    x = b.tensor("ib" if op in BITS else "fib")
    if x is None:
        return None
    y = b.partner(x, "ib" if op in BITS else "fib")
    return Draft(op, f"tj.{op}({x}, {y})", (x, y))


def bits(b: Builder) -> Draft | None:
    op = b.choices.pick(("bitwise_not", "bitwise_left_shift", "bitwise_right_shift"))
    x = b.tensor("ib" if op == "bitwise_not" else "i")
    return x and Draft(op, f"tj.{op}({x}{'' if op == 'bitwise_not' else ', 1'})", (x,))


def test(b: Builder) -> Draft | None:
    op, x = b.choices.pick(TESTS), b.tensor()
    return x and Draft(op, f"tj.{op}({x})", (x,))


def where(b: Builder) -> Draft | None:
    x = b.tensor()
    if x is None:
        return None
    y = b.partner(x)
    condition = b.tensor("b", fits=lambda n: b._broadcasts(x, n) and b._broadcasts(y, n))
    if condition is None:
        return Draft("where", f"tj.where({x} > 0, {x}, {y})", (x, y))
    return Draft("where", f"tj.where({condition}, {x}, {y})", (x, condition, y))


def clamp(b: Builder) -> Draft | None:
    x = b.tensor("fi")
    if x is None:
        return None
    limits = b.choices.pick(("min=-1", "max=2", "min=-1, max=1", "min=0", "min=2, max=1"))
    if b.dtype(x) == "uint8":
        limits = limits.replace("-1", "1")
    return Draft("clamp", f"tj.clamp({x}, {limits})", (x,))


def fused(b: Builder) -> Draft | None:
    x = b.tensor("f")
    if x is None:
        return None
    y = b.partner(x, "f")
    if b.choices.chance(50):
        return (
            Draft("lerp", f"tj.lerp({x}, {y}, 0.25)", (x, y)) if b.dtype(x) == b.dtype(y) else None
        )
    return Draft("addcmul", f"tj.addcmul({x}, {y}, {y}, value=0.5)", (x, y))


def cast(b: Builder) -> Draft | None:
    """Floats meet integers only where the value fits: what else gives differs between
    processors.
    """
    d, x = b.choices.pick(CASTS), b.tensor()
    if x is None:
        return None
    if b.dtype(x).startswith(("float", "bfloat")) and "int" in d:
        low = 0 if d == "uint8" else -100
        return Draft("to", f"tj.clamp(tj.nan_to_num({x}), {low}, 100).to(tj.{d})", (x,))
    return Draft("to", f"{x}.to(tj.{d})", (x,))


def copy(b: Builder) -> Draft | None:
    x = b.tensor()
    op = b.choices.pick(("clone", "detach", "contiguous", "ones_like", "zeros_like", "full_like"))
    ending = {"full_like": "3", "ones_like": "", "zeros_like": ""}.get(op)
    text = f"{x}.{op}()" if ending is None else f"tj.{op}({', '.join(filter(None, (x, ending)))})"
    return x and Draft(op, text, (x,))


# -- products ------------------------------------------------------------------------------------
def _matching(b: Builder, x: str, last: bool = True) -> str | None:
    """A matrix of x's dtype with as many rows as x has columns; made when there is none."""
    wanted = [s[-1] for s in b.shapes(x)]
    found = b.tensor(
        "f", 2, 2, lambda n: b.dtype(n) == b.dtype(x) and [s[0] for s in b.shapes(n)] == wanted
    )
    if found:
        return found
    columns = b.sizes[b.choices.pick("nmk")]
    return b.argument(
        b.memory(b.dtype(x), tuple(zip(wanted, columns)), history=b.choices.pick(("", "leaf")))
    )


def product(b: Builder) -> Draft | None:
    x = b.tensor("f", 1, 3)
    if x is None:
        return None
    y = _matching(b, x)
    op = "mm" if b.rank(x) == 2 and b.choices.chance(40) else "matmul"
    return Draft(op, f"tj.{op}({x}, {y})", (x, y))


def turned_product(b: Builder) -> Draft | None:
    """Transposes next to products, which are folded into them."""
    x = b.tensor("f", 2, 2)
    if x is None:
        return None
    if b.choices.chance(40):
        y = _matching(b, x)
        return Draft("matmul", f"({y}.t() @ {x}.t()) * 2", (x, y))
    return Draft("matmul", f"{x}.t() @ {x}" if b.choices.chance(50) else f"{x} @ {x}.t()", (x,))


def batched_product(b: Builder) -> Draft | None:
    x = b.tensor("f", 3, 3)
    op = b.choices.pick(("bmm", "matmul"))
    return x and Draft(op, f"tj.{op}({x}, {x}.transpose(1, 2))", (x,))


def vector_product(b: Builder) -> Draft | None:
    x = b.tensor("f", 1, 1)
    if x is None:
        return None
    y = b.tensor("f", 1, 1, lambda n: b.dtype(n) == b.dtype(x) and b.shapes(n) == b.shapes(x)) or x
    op = b.choices.pick(("dot", "outer", "matmul"))
    return Draft(op, f"tj.{op}({x}, {y})", (x, y))


def addmm(b: Builder) -> Draft | None:
    x = b.tensor("f", 2, 2)
    if x is None:
        return None
    y = _matching(b, x)
    width = tuple((s[1],) for s in b.shapes(y))
    bias = b.tensor(
        "f", 1, 1, lambda n: b.dtype(n) == b.dtype(x) and b.shapes(n) == width
    ) or b.argument(b.memory(b.dtype(x), width))
    options = b.choices.pick(("", ", beta=0.5, alpha=2", ", beta=0"))
    return Draft("addmm", f"tj.addmm({bias}, {x}, {y}{options})", (bias, x, y))


def linear(b: Builder) -> Draft | None:
    x = b.tensor("f", 1, 3)
    if x is None:
        return None
    out = b.sizes[b.choices.pick("nmk")]
    history = b.choices.pick(("", "leaf"))
    weight = b.argument(
        b.memory(b.dtype(x), tuple(zip(out, [s[-1] for s in b.shapes(x)])), history=history)
    )
    if b.choices.chance(30):
        return Draft("linear", f"F.linear({x}, {weight})", (x, weight))
    bias = b.argument(b.memory(b.dtype(x), tuple((n,) for n in out), history=history))
    return Draft("linear", f"F.linear({x}, {weight}, {bias})", (x, weight, bias))


# -- composites ----------------------------------------------------------------------------------
def softmax(b: Builder) -> Draft | None:
    op, x = b.choices.pick(("softmax", "log_softmax", "logsumexp")), b.tensor("f", 1)
    return x and Draft(op, f"tj.{op}({x}, {b.choices.between(-1, b.rank(x) - 1)})", (x,))


def layer_norm(b: Builder) -> Draft | None:
    x = b.tensor("f", 1, fits=lambda n: all(s and s[-1] for s in b.shapes(n)))
    if x is None:
        return None
    if b.choices.chance(50):
        return Draft("layer_norm", f"F.layer_norm({x}, ({x}.shape[-1],))", (x,))
    weight = b.argument(
        b.memory(
            b.dtype(x), tuple((s[-1],) for s in b.shapes(x)), history=b.choices.pick(("", "leaf"))
        )
    )
    return Draft(
        "layer_norm", f"F.layer_norm({x}, ({x}.shape[-1],), {weight}, {weight})", (x, weight)
    )


def mse_loss(b: Builder) -> Draft | None:
    x = b.tensor("f")
    if x is None:
        return None
    y = b.tensor("f", fits=lambda n: b.shapes(n) == b.shapes(x) and b.dtype(n) == b.dtype(x)) or x
    op, reduction = b.choices.pick(("mse_loss", "l1_loss")), b.choices.pick(("mean", "sum", "none"))
    return Draft(op, f"F.{op}({x}, {y} * 0.5, reduction={reduction!r})", (x, y))


def cross_entropy(b: Builder) -> Draft | None:
    x = b.tensor("f", 2, 2, lambda n: all(s[1] for s in b.shapes(n)))
    if x is None:
        return None
    target = b.index(tuple((s[0],) for s in b.shapes(x)), [s[1] for s in b.shapes(x)])
    reduction = b.choices.pick(("mean", "sum", "none"))
    return Draft(
        "cross_entropy", f"F.cross_entropy({x}, {target}, reduction={reduction!r})", (x, target)
    )


# -- random --------------------------------------------------------------------------------------
def random_like(b: Builder) -> Draft | None:
    op, x = b.choices.pick(("rand", "randn")), b.tensor("f")
    if x is None:
        return None
    if b.choices.chance(50):
        return Draft(op, f"tj.{op}_like({x})", (x,))
    return Draft(op, f"tj.{op}(*{x}.shape)", (x,))


def dropout(b: Builder) -> Draft | None:
    x = b.tensor("f")
    return x and Draft("dropout", f"F.dropout({x}, {b.choices.pick((0.5, 0.25))})", (x,))


OPERATIONS = {
    exact_unary: EXACT_FLOAT,
    math: MATH,
    activation: tuple(a[2:] for a in ACTIVATIONS),
    gelu_tanh: ("gelu",),
    binary: BINARY + SELECTION,
    scaled: ("add",),
    power: ("pow",),
    division: ("floor_divide", "remainder", "fmod"),
    comparison: COMPARISONS,
    logic: LOGIC + BITS,
    bits: ("bitwise_not", "bitwise_left_shift", "bitwise_right_shift"),
    test: TESTS,
    where: ("where",),
    clamp: ("clamp",),
    fused: ("lerp", "addcmul"),
    cast: ("to",),
    copy: ("clone", "detach", "contiguous", "ones_like", "zeros_like", "full_like"),
    product: ("matmul", "mm"),
    turned_product: ("matmul",),
    batched_product: ("bmm", "matmul"),
    vector_product: ("dot", "outer", "matmul"),
    addmm: ("addmm",),
    linear: ("linear",),
    softmax: ("softmax", "log_softmax", "logsumexp"),
    layer_norm: ("layer_norm",),
    mse_loss: ("mse_loss", "l1_loss"),
    cross_entropy: ("cross_entropy",),
    random_like: ("rand", "randn"),
    dropout: ("dropout",),
}
WEIGHTS = {math: 4, binary: 6, activation: 2, comparison: 2, cast: 2, exact_unary: 2, product: 2}
