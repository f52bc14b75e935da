"""One text, three readings: our emitter, numba and plain Python give the same memory."""

import ctypes
import hashlib
import warnings

import numpy as np
import pytest

from tests.runtime.programs import ADD, GELU, HEAD, ROW_SUM, kernel
from tracejit.jit.lowering import kernel_emitter, native, numba_emitter
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.lowering.vector_math_intrinsics import UnsupportedSyntax
from tracejit.jit.runtime import host, loader

# Each works on x (float32, 64), k (int64, 64), out (float64, 64), n = 64 and one more size.
TEXTS = {
    "arithmetic": "out[i] = np.float64(x[i] * x[i] - x[i] / np.float32(3.0)) + np.float64(k[i])",
    "integers": "out[i] = np.float64((k[i] // 7) * 100 + k[i] % 7 + (k[i] >> 2) - (k[i] << 1))",
    "negative divisors": "out[i] = np.float64(k[i] // -5 * 1000 + k[i] % -5)",
    "bits": "out[i] = np.float64((k[i] & 12) | (k[i] ^ 5))",
    "comparison": "out[i] = np.float64(x[i] < np.float32(0.5)) + np.float64(k[i] != 3)",
    "ternary": "out[i] = np.float64(x[i] if x[i] > np.float32(0.0) else -x[i])",
    "guarded ternary": "out[i] = np.float64(x[i - 1] if i > 0 else np.float32(9.0))",
    "guarded and": "out[i] = np.float64(1.0) if i > 0 and x[i - 1] > x[i] else np.float64(2.0)",
    "guarded or": "out[i] = np.float64(1.0) if i < 1 or x[i - 1] > x[i] else np.float64(2.0)",
    "not": "out[i] = np.float64(not x[i] > np.float32(0.0))",
    "extrema": "out[i] = np.float64(min(x[i], np.float32(0.25))) + np.float64(max(k[i], 3))",
    "casts": "out[i] = np.float64(np.int32(x[i] * np.float32(10.0))) + np.float64(np.uint8(k[i]))",
    "narrow": "out[i] = np.float64(np.int8(np.int8(k[i]) + np.int8(100)))",
    "views": "out[i] = np.float64(x[i].view(np.int32) >> np.int32(23))",
    "rounding": """
        up, down = np.ceil(x[i]), np.floor(x[i])
        out[i] = np.float64(up + down + np.rint(x[i]) + np.trunc(x[i]))""",
    "roots": "out[i] = np.sqrt(np.float64(abs(x[i])))",
    "fmod": "out[i] = np.fmod(np.float64(x[i]), np.float64(0.7))",
    "function": "out[i] = np.float64(tanh_float32(x[i]) * exp_float32(x[i]))",
    "own function": "out[i] = np.float64(square(x[i]))",
    "constant": "out[i] = np.float64(x[i] * THIRD) + FIFTH",
    "if chain": """
        if k[i] < 3:
            value = np.float64(1.0)
        elif k[i] < 10:
            value = np.float64(2.0)
        else:
            value = np.float64(x[i])
        out[i] = value""",
    "continue and break": """
        total = 0
        for j in range(n):
            if j % 3 == 1:
                continue
            if j > i:
                break
            total += j
        out[i] = np.float64(total)""",
    "while": """
        left = k[i]
        steps = 0
        while left > 0:
            left = left // 2
            steps += 1
        out[i] = np.float64(steps)""",
    "steps": """
        total = 0
        for j in range(n - 1, i, -3):
            total += j
        for j in range(0, i, 5):
            total += 1000 * j
        out[i] = np.float64(total)""",
    "loop variable": """
        for j in range(3):
            j = j + 10
        out[i] = np.float64(j)""",
    "parameter in a branch": """
        if i > 30:
            n = 5
        out[i] = np.float64(n)""",
    "tuples": """
        a, b = k[i], x[i]
        a, c = a + 1, a
        out[i] = np.float64(a * c) + np.float64(b)""",
    "scratch": """
        lanes = float32_scratch(scratch, 16)
        lanes[0] = x[i]
        lanes[1] = lanes[0] + lanes[0]
        out[i] = np.float64(lanes[1])""",
    "generic operands": """
        y = float32_pointer(buffers, operands[i % 2 * 0])
        out[i] = np.float64(y[i] + np.float32(1.0))""",
    "nested": """
        total = np.float64(0.0)
        for j in range(4):
            for l in range(j):
                total += np.float64(x[(i + j * l) % n])
        out[i] = total""",
}
MODULE = """
THIRD = np.float32(1.0) / np.float32(3.0)
FIFTH = np.float64(0.2)


def square(x):
    return x * x
"""


def of_text(body):
    body = body if body.startswith("\n") else "\n        " + body
    head = HEAD.replace("\n\n\ndef", MODULE + "\n\ndef").format(name="text")
    source = head + (
        "    x = float32_pointer(buffers, operands[0])\n"
        "    k = int64_pointer(buffers, operands[1])\n"
        "    out = float64_pointer(buffers, operands[2])\n"
        "    n = sizes[0]\n"
        "    for i in range(lo, hi):" + body + "\n"
    )
    return Kernel("text", source, hashlib.sha256(source.encode()).hexdigest()[:32], 1)


def arrays():
    generator = np.random.default_rng(5)
    x = generator.standard_normal(64).astype(np.float32)
    return [x, generator.integers(-40, 40, 64), np.full(64, np.nan)]


def run_native(texts, symbol, given):
    native._initialize()
    address = loader.load([native._object(texts)], [symbol])[0]
    scratch, status = np.zeros(64, np.uint8), np.zeros(4, np.int64)
    table = np.array([a.ctypes.data for a in given])
    operands, sizes = np.arange(3), np.array([64, 7])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64, ctypes.c_int64)(address)
    call(*(a.ctypes.data for a in (table, operands, sizes, scratch, status)), 0, 64)


@pytest.mark.parametrize("name", TEXTS)
def test_one_text_three_readings(name):
    text = of_text(TEXTS[name])
    emitted, by_numba, plain = arrays(), arrays(), arrays()
    function = native.namespace_of(text)["text"]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy says where int8 wraps
        function(plain, (0, 1, 2), (64, 7), np.zeros(64, np.uint8), np.zeros(4, np.int64), 0, 64)
    symbol = f"ours_{text.digest}"
    ours = kernel_emitter.emit_kernel(text.source, "text", symbol, native.namespace_of(text))
    run_native([ours], symbol, emitted)
    np.testing.assert_allclose(emitted[2], plain[2], rtol=1e-6, atol=1e-6)
    assert not np.isnan(plain[2]).any()
    if name not in ("narrow",):  # numba widens int8 sums, NumPy and we do not
        theirs = numba_emitter.emit_kernel(
            text.source, "text", f"numba_{text.digest}", native.namespace_of(text))
        run_native(theirs, f"numba_{text.digest}", by_numba)
        np.testing.assert_allclose(by_numba[2], plain[2], rtol=1e-6, atol=1e-6)


OUTSIDE = {
    "mixed types": "out[i] = np.float64(x[i] + np.float64(1.0) * x[i])",
    "inexact literal": "out[i] = np.float64(x[i] * 0.1)",
    "power": "out[i] = np.float64(x[i] ** 2)",
    "retyped name": "\n        a = k[i]\n        a = x[i]\n        out[i] = np.float64(a)",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_numba_takes_what_the_subset_does_not(name):
    text = of_text(OUTSIDE[name])
    with pytest.raises(UnsupportedSyntax, match=r"text:\d+"):
        kernel_emitter.emit_kernel(text.source, "text", "x", native.namespace_of(text))
    given = arrays()
    objects = native.compile_kernels([text])
    assert loader.load(objects, [native.symbol_of(text.digest)])
    assert len(given) == 3


def test_errors_name_the_kernel():
    with pytest.raises(native.KernelError, match="kernel text"):
        native.compile_kernels([of_text("out[i] = undefined_name(x[i])")])
    wrong = Kernel("other", GELU.source, "0" * 32, 1)
    with pytest.raises(native.KernelError, match="other"):
        native.compile_kernels([wrong])


MANY = kernel("many", """\
    a = float32_pointer(buffers, operands[0])
    b = float32_pointer(buffers, operands[1])
    c = float32_pointer(buffers, operands[2])
    d = float32_pointer(buffers, operands[3])
    out = float32_pointer(buffers, operands[4])
    more = float32_pointer(buffers, operands[5])
    for i in range(lo, hi):
        v = a[i] * b[i] + c[i]
        out[i] = v * d[i]
        more[i] = v / d[i] + a[i]
""")


@pytest.mark.parametrize("each", [ADD, GELU, MANY])
def test_loops_are_vectorised_without_checks_at_run_time(each):
    text = native.optimized_ir([each])
    assert " x float>" in text, "no vectors"
    assert "vector.memcheck" not in text


def test_scalar_loops_are_told_apart():
    scalar = kernel("scalar", """\
    x = float32_pointer(buffers, operands[0])
    out = float32_pointer(buffers, operands[1])
    for i in range(lo + 1, hi):
        out[i] = out[i - 1] * x[i]
""")
    assert " x float>" not in native.optimized_ir([scalar])


def test_contraction_can_be_turned_off():
    body = "out[i] = np.float64(x[i] * x[i] + x[i])"
    exact = of_text(body)
    fused = Kernel("text", exact.source + "\n\nFASTMATH = ('contract',)\n", "1" * 32, 1)
    assert "contract" in kernel_emitter.emit_kernel(
        fused.source, "text", "x", native.namespace_of(fused))
    assert "contract" not in kernel_emitter.emit_kernel(
        exact.source, "text", "x", native.namespace_of(exact))
    given = arrays()
    run_native(native.emit_kernel(exact), native.symbol_of(exact.digest), given)
    assert (given[2] == (given[0] * given[0] + given[0]).astype(np.float64)).all()


def test_several_threads_compile_several_objects():
    kernels = [of_text(TEXTS[name]) for name in list(TEXTS)[:6]]
    objects = native.compile_kernels(kernels, threads=3)
    assert len(objects) == 3
    assert all(loader.load(objects, [native.symbol_of(k.digest) for k in kernels]))


def test_an_object_without_the_symbol_is_refused():
    with pytest.raises(RuntimeError, match="nothing_like_it"):
        loader.load(native.compile_kernels([ADD]), ["nothing_like_it"])


def test_kernels_as_python_come_from_a_file():
    function = host.python_kernel(ROW_SUM)
    assert function.__code__.co_filename.endswith(".py")
    with open(function.__code__.co_filename) as file:
        assert file.read() == ROW_SUM.source
