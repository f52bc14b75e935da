"""Faults for `tests/mutants.py`: small mistakes of the kind that is easily made in each part of the
compiler. More are in `mutant_rows_regions.py` and `mutant_rows_state.py`.

A row: file, exact text, what replaces it, what that breaks, and the part of the suite that should
notice.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    area: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _differences(ops: str) -> tuple[str, ...]:
    return ("tests/ops/test_opinfo.py", "-k", f"gradients_agree_with_differences and ({ops})")


_PROGRAMS = (
    "tests/capture/test_programs.py",
    "tests/capture/test_guards.py",
    "tests/capture/test_replay.py",
    "-k",
    "guards or replay or scripted_program and "
    "(argument or alias or overlap or view or random or leaf or length or list_ or size)",
)
_NATIVE = (
    "tests/lowering/test_lower.py",
    "tests/lowering/test_schedule.py",
    "tests/runtime/test_executable.py",
)
_OPS_COMPILED = (
    "tests/ops/test_opinfo.py",
    "-k",
    "test_compiled_agrees_with_eager and compiled and "
    "(sum or softmax or cat or matmul or gelu or add or where or gather or amax)",
)

RULES = [
    Mutant(
        "rules",
        "tanh: forgets to square",
        "tracejit/core/ops/pointwise_math.py",
        "lambda grad, output: grad * (1 - output * output)",
        "lambda grad, output: grad * (1 - output)",
        _differences("tanh"),
    ),
    Mutant(
        "rules",
        "cos: wrong sign",
        "tracejit/core/ops/pointwise_math.py",
        "input=lambda grad, input: grad * -sin(input))",
        "input=lambda grad, input: grad * sin(input))",
        _differences("cos"),
    ),
    Mutant(
        "rules",
        "sub: second operand's sign",
        "tracejit/core/ops/pointwise_arithmetic.py",
        "input=lambda grad: grad,\n    other=lambda grad: -grad)",
        "input=lambda grad: grad,\n    other=lambda grad: grad)",
        _differences("sub"),
    ),
    Mutant(
        "rules",
        "div: divides once instead of twice",
        "tracejit/core/ops/pointwise_arithmetic.py",
        "-grad * ((input / other) / other)",
        "-grad * (input / other)",
        _differences("div"),
    ),
    Mutant(
        "rules",
        "maximum: gradient to the smaller",
        "tracejit/core/ops/pointwise_logic.py",
        "where(input == other, grad * 0.5, where(input < other, 0, grad))",
        "where(input == other, grad * 0.5, where(input < other, grad, 0))",
        _differences("maximum"),
    ),
    Mutant(
        "rules",
        "where: gradients exchanged",
        "tracejit/core/ops/pointwise_logic.py",
        '{"input": lambda grad, condition: where(condition, grad, 0),',
        '{"input": lambda grad, condition: where(condition, 0, grad),',
        _differences("where"),
    ),
    Mutant(
        "rules",
        "matmul: operand not transposed",
        "tracejit/core/ops/linalg.py",
        '"other": lambda grad, input: product(_turned(input), grad)})',
        '"other": lambda grad, input: product(input, grad)})',
        _differences("mm or matmul"),
    ),
    Mutant(
        "rules",
        "vector times matrix: the vector's gradient forgets the matrix",
        "tracejit/core/ops/linalg.py",
        "input=lambda grad, mat2: _vecmat(grad, _turned(mat2)),",
        "input=lambda grad, mat2: _vecmat(grad, _turned(mat2 * 0 + 1)),",
        _differences("matmul"),
    ),
    Mutant(
        "rules",
        "softmax: forgets the sum",
        "tracejit/core/ops/fused_gradients.py",
        "lambda grad, output, dim: output * (grad - (grad * output).sum(dim, True))",
        "lambda grad, output, dim: output * grad",
        _differences("softmax"),
    ),
    Mutant(
        "rules",
        "cross_entropy: own class not subtracted",
        "tracejit/core/ops/classification.py",
        "slope = where(own, probabilities - 1, probabilities)",
        "slope = where(own, probabilities, probabilities)",
        _differences("cross_entropy"),
    ),
    Mutant(
        "rules",
        "layer_norm: mean of the gradient left in",
        "tracejit/core/ops/fused_gradients.py",
        "scale * (g - g.mean(dims, True) - x * (g * x).mean(dims, True))",
        "scale * (g - x * (g * x).mean(dims, True))",
        _differences("layer_norm"),
    ),
    Mutant(
        "rules",
        "cumsum: gradient not turned back",
        "tracejit/core/ops/scan.py",
        "cumsum_record(grad.flip(dim), dim=dim).flip(dim)",
        "cumsum_record(grad.flip(dim), dim=dim)",
        _differences("cumsum"),
    ),
    Mutant(
        "rules",
        "permute: gradient permuted the same way",
        "tracejit/core/ops/movement.py",
        "permute_record(grad, dims=_inverse_permutation(dims))",
        "permute_record(grad, dims=dims)",
        _differences("permute"),
    ),
    Mutant(
        "rules",
        "un-broadcasting drops leading dimensions late",
        "tracejit/core/ops/cotangents.py",
        "    grad = grad.sum(repeated, True)\n",
        "    grad = grad.mean(repeated, True)\n",
        ("tests/ops/test_cotangents.py", "tests/eager/test_autograd.py"),
    ),
]

TAPE = [
    Mutant(
        "tape",
        "a saved tensor's version is not looked at",
        "tracejit/core/eager/saved.py",
        "if version != expected:",
        "if False:",
        ("tests/eager/test_writes.py", "tests/eager/test_engine.py"),
    ),
    Mutant(
        "tape",
        "gradients overwrite instead of adding up",
        "tracejit/core/eager/engine.py",
        "buffer[number] = grad if held is None else self._sum(node, number, held, grad)",
        "buffer[number] = grad",
        ("tests/eager/test_autograd.py",),
    ),
]

CAPTURE = [
    Mutant(
        "guards",
        "dtype is not checked",
        "tracejit/jit/capture/guards.py",
        'f"or {name}._dtype is not {dt} "',
        '""',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "number of dimensions is not checked",
        "tracejit/jit/capture/guards.py",
        'f"or len({name}._shape) != {len(value._shape)} or {name}._traced',
        'f"or {name}._traced',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "requires_grad is not checked",
        "tracejit/jit/capture/guards.py",
        'f"or {name}._requires_grad is not {value._requires_grad}"',
        'f""',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "primitive values are not compared",
        "tracejit/jit/capture/guards.py",
        '(type({name}) is not {cls} or {name} != {constant}"',
        '(type({name}) is not {cls}"',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "True and False are not compared",
        "tracejit/jit/capture/guards.py",
        'self._fail(f"{name} is not {value}", source, f"== {value}")',
        "pass",
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "the length of a list is not checked",
        "tracejit/jit/capture/guards.py",
        'f"type({name}) is not {cls} or {size}({name}) != {source.length}"',
        'f"type({name}) is not {cls}"',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "grad mode is not checked",
        "tracejit/jit/capture/guards.py",
        'f"active.grad_enabled is not {grad}"',
        '"False"',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "same tensor passed twice is not checked",
        "tracejit/jit/capture/guards.py",
        'self._fail(f"{a} is not {b}", one,',
        'self._fail("False", one,',
        _PROGRAMS,
    ),
    Mutant(
        "guards",
        "size guards never fail",
        "tracejit/jit/runtime/compiled_graph.py",
        "held = all(guard.holds(sizes) for guard in self.guards)",
        "held = True",
        _PROGRAMS,
    ),
    Mutant(
        "capture",
        "overlapping arguments are taken as disjoint",
        "tracejit/jit/runtime/no_alias.py",
        "self.overlap |= start < (end if written else written_end)",
        "pass",
        _PROGRAMS,
    ),
    Mutant(
        "capture",
        "a write is not seen through views made before",
        "tracejit/jit/capture/storage.py",
        "        self.mutations += 1\n",
        "",
        _PROGRAMS,
    ),
    Mutant(
        "capture",
        "the generator does not advance on replay",
        "tracejit/jit/runtime/entry.py",
        "inputs[number].take(evaluate(draws, bound.sizes))",
        "inputs[number].take(0)",
        _PROGRAMS,
    ),
    Mutant(
        "capture",
        "versions are not bumped on replay",
        "tracejit/jit/runtime/entry.py",
        "            for number, count in writes:\n                inputs[number]._storage",
        "            for number, count in ():\n                inputs[number]._storage",
        _PROGRAMS,
    ),
    Mutant(
        "capture",
        "a leaf made in the call forgets that it requires grad",
        "tracejit/jit/runtime/outputs.py",
        "        elif self.leaf:\n            tensor._requires_grad = True",
        "        elif self.leaf:\n            pass",
        _PROGRAMS,
    ),
]

PASSES = [
    Mutant(
        "passes",
        "cse forgets attributes",
        "tracejit/jit/passes/cse.py",
        "attributes = tuple((name, static_key(attributes[name])) for name in sorted(attributes))",
        "attributes = ()",
        ("tests/passes/test_merging.py",),
    ),
    Mutant(
        "passes",
        "dce drops what only a write reads",
        "tracejit/jit/passes/dce.py",
        "live = set(graph.results())",
        "live = set(graph.outputs)",
        ("tests/passes/test_merging.py",),
    ),
    Mutant(
        "passes",
        "x + 0 simplified for floats, which loses -0.0 + 0",
        "tracejit/jit/passes/simplify.py",
        "Identity(Pattern(lambda x: x + 0), lambda x: x, whole),",
        "Identity(Pattern(lambda x: x + 0), lambda x: x),",
        ("tests/passes/test_simplify.py",),
    ),
    Mutant(
        "passes",
        "a conversion to a narrower type and back is dropped",
        "tracejit/jit/passes/simplify.py",
        "return pointwise.convert(origin, target) if holds(x.dtype, origin.dtype) else None",
        "return pointwise.convert(origin, target)",
        ("tests/passes/test_simplify.py",),
    ),
    Mutant(
        "passes",
        "constants are folded without rounding to their dtype",
        "tracejit/jit/passes/fold.py",
        "return _rounded(value, x.dtype) if type(value) in (bool, int, float) else None",
        "return value if type(value) in (bool, int, float) else None",
        ("tests/passes/test_fold.py",),
    ),
    Mutant(
        "passes",
        "where of a constant condition takes the other side",
        "tracejit/jit/passes/simplify.py",
        "chosen = None if known is None else yes if known else no",
        "chosen = None if known is None else no if known else yes",
        ("tests/passes/test_simplify.py",),
    ),
]

LOWERING = [
    Mutant(
        "lowering",
        "a sum of one term keeps the sign of its zero",
        "tracejit/jit/lowering/emit.py",
        'if combine != "{a} + {b}" or not kind.startswith("float"):',
        "if True:",
        ("tests/lowering/test_lower.py", "-k", "one_term"),
    ),
    Mutant(
        "lowering",
        "exact sums of repeated elements follow their memory",
        "tracejit/core/ops/reduction_record.py",
        "    if 0 not in x.strides:\n        return xp",
        "    if True:\n        return x if 0 in x.strides else xp",
        ("tests/lowering/test_lower.py", "-k", "repeated_elements"),
    ),
    Mutant(
        "lowering",
        "two living temporaries share bytes",
        "tracejit/jit/runtime/memory_plan.py",
        "while living and living[0][0] < lives[i].first:",
        "while living and living[0][0] <= lives[i].first:",
        ("tests/runtime/test_memory_plan.py", *_NATIVE),
    ),
    Mutant(
        "lowering",
        "float16: halves round up instead of to even",
        "tracejit/jit/lowering/half.py",
        "normal = np.uint32(np.uint32(moved + odd) >> np.uint32(13))",
        "normal = np.uint32(np.uint32(moved + 1) >> np.uint32(13))",
        ("tests/lowering/test_half.py",),
    ),
    Mutant(
        "lowering",
        "transposes next to products are lost",
        "tracejit/jit/lowering/extern.py",
        "words[1] = 84 if trans_a != 0 else 78",
        "words[1] = 78",
        (*_NATIVE, "tests/runtime/test_native.py"),
    ),
    Mutant(
        "lowering",
        "a product with a vector forgets the terms that fill no vector",
        "tracejit/jit/lowering/vector_products.py",
        """yield "if rest != 0:\"""",
        """yield "if rest < 0:\"""",
        ("tests/ops/test_vector_products.py",),
    ),
    Mutant(
        "lowering",
        "groups merge across something between them",
        "tracejit/jit/lowering/groups.py",
        "return _same_loops(a, b) and not is_between(a, b)",
        "return _same_loops(a, b)",
        ("tests/lowering/test_dependent_loops.py", *_NATIVE),
    ),
    Mutant(
        "lowering",
        "columns of the last tile are computed beyond the end",
        "tracejit/jit/lowering/loops.py",
        "tiles = (columns + TILE - 1) // TILE",
        "tiles = columns // TILE + 0 * TILE",
        (*_NATIVE, *_OPS_COMPILED),
    ),
]

ROWS = [*RULES, *TAPE, *CAPTURE, *PASSES, *LOWERING]
