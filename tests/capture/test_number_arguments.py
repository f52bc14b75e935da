"""Numbers that are arguments and change between calls: the plain function's results and types, and
questions instead of a program per value (C2)."""

from __future__ import annotations

import collections
import copy
import datetime
import decimal
import math

import numpy as np
import pytest

import tracejit as tj
from tests.capture.number_outcomes import same
from tracejit import nn

NAN, INF = float("nan"), float("inf")
INTS = [1, 2, 0, -3, 7, 2**31 - 1, 2**53 + 1, 2**60 + 2**36 + 1, -(2**63), 2**63 - 1]
HUGE = [2**63, -(2**63) - 1, 2**70]
FLOATS = [1.5, -0.0, 0.0, -2.25, 1e300, 5e-324, INF, -INF, NAN]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_ints_meet_tensors(dtype, mode):
    x = tj.tensor([1, 0, 3]).to(getattr(tj, dtype))
    taken = (lambda n: (x * n, x + n)) if dtype == "bool" else lambda n: (x * n, x + n, n - x)
    report = same(taken, INTS, mode)
    assert report.compiles == 1, report


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_floats_meet_tensors(mode):
    x = tj.tensor([1.0, -2.0])
    report = same(lambda v: (x * v, x + v, tj.tensor([1, 2]) * v), FLOATS, mode)
    assert report.compiles == 1, report


def made_of(n, kind):
    filled = tj.zeros(2, dtype=kind or tj.float32).fill_(n)
    return tj.tensor(n, dtype=kind), tj.tensor([[n, 1], [True, n]], dtype=kind), filled


@pytest.mark.parametrize("dtype", [None, "float32", "float16", "float64", "int64", "bool"])
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_tensors_are_made_of_numbers(dtype, mode):
    kind = None if dtype is None else getattr(tj, dtype)
    report = same(lambda n: made_of(n, kind), INTS, mode)
    assert report.compiles == 1, report
    if dtype != "int64":  # into which no infinity goes
        report = same(lambda v: made_of(v, kind), FLOATS, mode)
        assert report.compiles == 1, report


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_tensors_are_made_of_numbers_that_may_not_fit(dtype):
    same(lambda n: made_of(n, getattr(tj, dtype)), [1, -3, 100, 200, 300, -300, 2**40, -(2**63)])


def test_tensors_are_made_of_numbers_and_sizes():
    x = tj.ones(3, 2)
    report = same(lambda n: (tj.tensor([x.shape[0], n]), tj.tensor(x.shape), tj.tensor((n, 0.5)),
                             tj.as_tensor([n])), INTS)
    assert report.compiles == 1, report
    same(lambda n: tj.tensor([n, [1]]), [1, 2])
    same(lambda n: tj.tensor([n, 2**63]), [1, 2])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
def test_ints_beyond_64_bits(dtype):
    x = tj.tensor([1, 2]).to(getattr(tj, dtype))
    same(lambda n: x * n, [1, *HUGE, 5])


def test_the_type_of_a_number_matters():
    x = tj.tensor([1, 2])
    report = same(lambda n: x * n, [1, 1.0, True, 2, 2.0, False, 3, 3.5])
    assert report.compiles == 4  # int, float, True, False


ARITHMETIC = {
    "add": lambda n, m: n + m,
    "sub": lambda n, m: n - m,
    "mul": lambda n, m: n * m,
    "truediv": lambda n, m: n / m,
    "floordiv": lambda n, m: n // m,
    "mod": lambda n, m: n % m,
    "divmod": divmod,
    "pow": lambda n, m: n**m if abs(m) < 50 else n,
    "neg": lambda n, m: (-n, +m, abs(n), abs(m)),
    "constants": lambda n, m: (1 - n, 2.0 * m, 7 // (n or 1), True + n, m - False),
    "round": lambda n, m: (round(n, 1), round(m, 2)),
    "floor": lambda n, m: (math.floor(n), math.ceil(m), math.trunc(n), round(n)),
    "between": lambda n, m: (min(n, m), max(n, m, 1)),
}
PAIRS = [
    (3, 4), (3, -2), (-7, 2), (0, 5), (5, 0), (2**62, 2**62), (10**40, 3), (1.5, 2), (2, 1.5),
    (-0.0, 1), (1, -0.0), (INF, 2.0), (NAN, 1.0), (1e308, 10.0), (-8.0, 0.5), (2.5, 2),
    (10**400, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_pythons(name):
    x = tj.ones(2)
    operation = ARITHMETIC[name]
    same(lambda n, m: (operation(n, m), x), PAIRS)


@pytest.mark.parametrize("name", [n for n in ARITHMETIC if n not in ("between", "round")])
def test_arithmetic_needs_one_program(name):
    x, operation = tj.ones(2), ARITHMETIC[name]
    numbers = [(5, 3), (7, 2), (11, 4), (9, 5)] + [(6.5, 3.25), (9.5, 2.75), (7.25, 4.5)]
    report = same(lambda n, m: (operation(n, m), x), numbers)
    assert report.compiles == 2 and not report.breaks  # ints, floats


def test_equal_constants_that_differ():
    x = tj.ones(1)
    same(lambda v: (x, v * 0.0, v * -0.0, v + 1, v + 1.0, v + True), [2.0, 3, -1.0, NAN])


def test_signs_of_zeros_that_are_asked_for():
    x = tj.ones(1)
    same(lambda v: x * math.copysign(2, v * 0.5), [0.0, -0.0, 1.0, NAN, -1.0])


def test_bits():
    x = tj.ones(1)
    report = same(lambda n: (n & 6, n | 1, n ^ 3, ~n, n << 2, n >> 1, x), [1, 5, -3, 2**70])
    assert report.compiles == 1


def test_a_result_of_another_type_is_another_program():
    report = same(lambda n, x: x * 2**n, [(3, tj.ones(1)), (-1, tj.ones(1)), (4, tj.ones(1))])
    assert report.compiles == 2


def test_what_python_raises():
    def caught(n, x):
        try:
            return x * (1 / n)
        except ZeroDivisionError:
            return x - 1

    x = tj.ones(2)
    same(caught, [(2, x), (0, x), (0.0, x), (4, x), (5.0, x)])
    same(lambda n: x * (1 % n), [2, 0, 3])
    same(lambda n: (1 % n, x)[1], [2, 0, 3])  # the result is not used
    same(lambda n: (x, 1 << n), [2, -1, 3])


@pytest.mark.parametrize(
    "asks",
    [
        lambda x, n: x.reshape(n, -1),
        lambda x, n: x[n],
        lambda x, n: x[:n],
        lambda x, n: x.sum(n - 1),
        lambda x, n: sum(x * k for k in range(n)),
        lambda x, n: (x * [4, 5, 6][n], "abc"[n], f"{n}", str(n), f"{n:03d}", "%d" % n),  # noqa: UP031
        lambda x, n: x * {1: 10, 2: 20}[n],
        lambda x, n: x * math.sqrt(n),
        lambda x, n: x * float(n),
        lambda x, n: tj.zeros(n, 2),
        lambda x, n: x.repeat(n, 1),
        lambda x, n: x.roll(n, 0),
        lambda x, n: x.narrow(0, n - 1, 2),
        lambda x, n: (x, hash(n), int(n), bool(n), repr(n), isinstance(n, int), pow(n, 3, 5)),
        lambda x, n: tj.arange(n),
        lambda x, n: tj.full((2, n), n),
        lambda x, n: tj.tensor(n) * x,
        lambda x, n: tj.tensor([n, 1]),
        lambda x, n: x**n,
        lambda x, n: tj.where(x > n, x, n),
        lambda x, n: x.clamp(n, n + 1),
        lambda x, n: x.masked_fill(x > 1, n),
        lambda x, n: (x.long() // n, x.long() % n, x.long() << n, x.long() & n),
        lambda x, n: tj.add(x, x, alpha=n),
        lambda x, n: x.shape[0] * n + x.reshape(-1).shape[0],
        lambda x, n: x * (n + x.shape[0]) * (x.shape[1] - n),
        lambda x, n: x * (x.shape[0] if n < x.shape[0] else n),
        lambda x, n: copy.copy(n) * x,
    ],
)
def test_a_value_that_is_asked_for_is_guarded(asks):
    same(lambda n: asks(tj.arange(6.0).reshape(3, 2), n), [1, 2, 1])


def test_a_branch_depends_on_the_answer():
    def warm(x, step):
        if step < 10:
            return x * step / 10
        return x if step % 100 else x * 2

    x = tj.ones(2)
    report = same(warm, [(k, x) and (x, k) for k in [*range(20), 100, 200, 300]])
    assert report.compiles == 3 and len(report.recompiles) == 2
    assert any("step" in r.path and "<" in r.path for r in report.recompiles)


def test_truth_and_equality():
    x = tj.ones(1)
    report = same(lambda n: x if n else x + 1, [1, 2, 0, 3, -1])
    assert report.compiles == 2
    report = same(lambda n: (n == 3, n != "a", n == None, n in (1, 3), x), [1, 2, 5, 3, 3.0])  # noqa: E711
    assert report.compiles <= 4


@pytest.mark.parametrize("k", [0, 1])
def test_a_dimension_that_is_an_argument_is_no_other_operand(k):
    x = tj.arange(6.0).view(2, 3)
    for function in (tj.max, tj.min):
        found, expected = tj.script(lambda x, k, f=function: f(x, k))(x, k), function(x, k)
        assert found.values.tolist() == expected.values.tolist()
        assert found.indices.tolist() == expected.indices.tolist()


def test_a_number_that_only_a_gradient_reads_is_an_input():
    def f(c, a, b, k):
        return tj.addmm(c, a, b, alpha=k)

    captured = tj.script(f)
    for k in (1, 3):
        grads = []
        for call in (f, captured):
            given = [tj.ones(2, 2, requires_grad=True) for _ in range(3)]
            call(*given, k).sum().backward()
            grads.append([x.grad.tolist() for x in given])
        assert grads[0] == grads[1]


EXPONENTS = [2, 3, -2, 7, 0.5, -0.5, 1.7, 1 / 3, -2.0, 0.75]
ROUNDED = {
    "power": lambda x, y, p: x ** p,
    "power of a number": lambda x, y, p: abs(p) ** x,
    "power in place": lambda x, y, p: x.clone().pow_(p),
    "float_power": lambda x, y, p: tj.float_power(x, p),
    "lerp": lambda x, y, p: tj.lerp(x, y, weight=p),
    "lerp in place": lambda x, y, p: x.clone().lerp_(y, p),
    "huber": lambda x, y, p: tj.nn.functional.huber_loss(x, y, delta=abs(p)),
    "smooth_l1": lambda x, y, p: tj.nn.functional.smooth_l1_loss(x, y, beta=abs(p)),
    "softplus": lambda x, y, p: tj.nn.functional.softplus(x, p),
    "addmm": lambda x, y, p: tj.addmm(x, x, y, beta=p, alpha=p),
    "addcdiv": lambda x, y, p: tj.addcdiv(x, x, y, value=p),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ROUNDED)
def test_numbers_that_change_give_the_bits_of_eager_mode(name, dtype):
    f = ROUNDED[name]

    def spread(x, y, *numbers, **more):
        return f(x, y, *numbers, *more.values())

    def bits(call, p, where):
        x, y = [(tj.arange(9.0) * 0.37 + start).sin().abs().add(0.1).view(3, 3).to(
            getattr(tj, dtype)).requires_grad_() for start in (p, p + 0.3)]
        result = call(x, y, p=p) if where == "kwargs" else call(x, y, p)
        result.sum().backward()
        whole = [t.detach().to(tj.float64) for t in (result, x.grad, y.grad) if t is not None]
        return [t.numpy().tobytes() for t in whole]

    for where, plain in (("argument", f), ("args", spread), ("kwargs", spread)):
        captured = tj.script(plain, mode="graph", numerics="eager")
        for p in EXPONENTS:
            assert bits(captured, p, where) == bits(plain, p, where), (where, p)


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_losses_of_halves_take_numbers_that_change(mode):
    x = (tj.arange(7.0) * 0.3).bfloat16()
    same(lambda d: tj.nn.functional.huber_loss(x, x * 0, delta=d), [0.7, 0.3], mode)


@pytest.mark.parametrize("name", (
    "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1 "
    "fabs fmod gamma hypot lgamma log log10 log1p log2 pow radians sin sinh sqrt tan tanh"
).split())  # fmt: skip
def test_what_math_makes_of_a_float_is_one_program(name):
    function = getattr(math, name)
    others = (0.5,) if name in ("atan2", "copysign", "fmod", "hypot", "pow") else ()
    start = 1.0 if name == "acosh" else 0.0

    def scaled(x, n):
        factor = function(n + start, *others)
        return x * factor, factor

    captured = tj.script(scaled)
    for n in (0.125, 0.25, 0.5, 0.75):
        (ours, factor), (plain, expected) = captured(tj.ones(2), n), scaled(tj.ones(2), n)
        assert factor == expected and type(factor) is float and ours.tolist() == plain.tolist()
    assert captured.report().cache_misses == 1 and not captured.report().breaks


def test_a_number_is_no_tensor_where_an_op_wants_one():
    def given(x, n):
        found = []
        for op in (tj.exp, tj.tanh, tj.amax, tj.sum):
            for number in (n, n * 0.5, x[0].item()):
                try:
                    found.append(op(number))
                except (TypeError, AttributeError) as error:
                    found.append(str(error))
        return found

    def counted(x, n):
        for _ in range(20):
            n = n + 1
        try:
            return tj.exp(n)
        except TypeError as error:
            return str(error)

    for plain in (given, counted):
        captured = tj.script(plain)
        for n in (1, 2, 3):
            x = tj.tensor([0.5, 2.0])
            assert captured(x, n) == plain(x, n)


def test_numbers_have_the_attributes_of_numbers():
    def asked(x, v):
        out = [hasattr(v, "shape"), getattr(v, "dtype", None), hasattr(len(x), "shape"),
               v.real * 2, hasattr(x, "dtype"), bool(np.isclose(v, v)),
               str(np.result_type(float(v))), np.ndim(v)]  # fmt: skip
        for number in (v, x.shape[0]):
            try:
                out.append(getattr(number, "shape"))  # noqa: B009 - how a name may be asked for
            except AttributeError as error:
                out.append(str(error))
        return (x * v).tolist(), out

    f = tj.script(asked)
    for n, v in ((2, 0.5), (2, 0.75), (3, 0.5), (3, 2), (2, 3)):
        assert f(tj.ones(n), v) == asked(tj.ones(n), v)


@pytest.mark.parametrize("way", [
    lambda x, rng: rng.permutation(len(x)).tolist(),
    lambda x, rng: x[tj.from_numpy(rng.permutation(x.shape[0]))].tolist(),
    lambda x, rng: np.random.default_rng(x.shape[0]).permutation(len(x)).tolist(),
    lambda x, rng: rng.choice(x.numel(), size=x.shape[0]).tolist(),
    lambda x, rng: collections.deque(range(5), maxlen=len(x)),
    lambda x, rng: str(decimal.Decimal(len(x))),
    lambda x, rng: datetime.timedelta(seconds=len(x)).seconds,
])
def test_c_code_gets_plain_sizes(way):
    f = tj.script(lambda x, rng: (way(x, rng), (x * 2).tolist()))
    for n in (3, 3, 4):
        x = tj.arange(float(n))
        expected = way(x, np.random.RandomState(0)), (x * 2).tolist()
        assert f(x, np.random.RandomState(0)) == expected


def test_modules_that_a_call_makes_hold_plain_numbers():
    @tj.script
    def made(x, v):
        layers = nn.Sequential(nn.Linear(x.size(1), len(x)), nn.LeakyReLU(v), nn.LSTM(len(x), 4))
        return layers, {"embedding": nn.Embedding.from_pretrained(x)}

    for n, v in ((2, 0.5), (2, 0.5), (3, 0.25)):
        layers, held = made(tj.ones(n, 5), v)
        modules = [*layers, held["embedding"]]
        numbers = [x for m in modules for x in vars(m).values() if isinstance(x, (int, float))]
        assert {type(x) for x in numbers} <= {int, float, bool}
        assert "Linear(in_features=5, out_features=" + str(n) in str(layers)
        assert layers[1].negative_slope == v and layers[2].input_size == n
