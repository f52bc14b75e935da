"""Promotion, errors and conventions of elementwise ops that rows do not show; all as in PyTorch."""

import math

import pytest

import tracejit
from tracejit.core.ops import pointwise
from tracejit.core.ops.types import TensorType, float16, float32, float64, int8, int64, uint8
from tracejit.jit.ir.graph import Graph


def test_tensors_are_converted_and_numbers_stay_numbers():
    graph = Graph()
    x = graph.input(TensorType(int64, (3,)))
    result = x * 2.5
    assert [n.op.name for n in graph.nodes] == ["convert", "mul"]
    assert result.dtype is float32 and graph.nodes[1].inputs[1] == 2.5


def test_a_runtime_number_takes_the_tensors_dtype():
    graph = Graph()
    x, rate = graph.input(TensorType(float32, (3,))), graph.input(TensorType(float64, ()))
    rate.is_weak = True
    assert (x * rate).dtype is float32
    assert (rate * 2.0).dtype is float64 and (1 - rate).dtype is float64
    step = graph.input(TensorType(int64, ()))
    step.is_weak = True
    assert (step * 0.5).dtype is float64 and (step * rate).dtype is float64


@pytest.mark.parametrize("number, want", [(300, 44), (-1, -1), (129, -127)])
def test_integers_wrap(number, want):
    assert (tracejit.zeros(1, dtype=int8) + number).tolist() == [want]


def test_uint8_wraps():
    assert (tracejit.tensor([1], dtype=uint8) + -2).tolist() == [255]


def test_half_rounds_once():
    x = tracejit.tensor([2048.0], dtype=float16)
    assert tracejit.add(x, 1, alpha=1).dtype is float16
    gelu = tracejit.nn.functional.gelu(tracejit.tensor([0.3], dtype=float16))
    assert gelu.item() == pytest.approx(0.18538, abs=1e-4)


@pytest.mark.parametrize("call, error, text", [
    (lambda t: t([True]) - t([True]), RuntimeError, "Subtraction, the `-` operator, with two bool"),
    (lambda t: -t([True]), RuntimeError, "Negation, the `-` operator, on a bool tensor"),
    (lambda t: t([5]) // 0, RuntimeError, "ZeroDivisionError"),
    (lambda t: t([5, 4]) % t([2, 0]), RuntimeError, "ZeroDivisionError"),
    (lambda t: t([5]).fmod(0), RuntimeError, "ZeroDivisionError"),
    (lambda t: t([5]) ** -1, RuntimeError, "Integers to negative integer powers are not allowed"),
    (lambda t: t([1.0]) & 1, NotImplementedError, "bitwise_and_cpu"),
    (lambda t: t([1]).add(1, alpha=0.5), RuntimeError, "For integral input tensors"),
    (lambda t: t([1.0]).clamp(), RuntimeError, "At least one of 'min' or 'max'"),
    (lambda t: pointwise.where(t([1.0]), 1, 2), RuntimeError, "where expected"),
    (lambda t: t([1.0]).div(2, rounding_mode="up"), RuntimeError, "div expected rounding_mode"),
    (lambda t: t([1.0]) + "a", TypeError, "unsupported operand"),
    (lambda t: tracejit.mul(t([1.0]), "a"), TypeError, "expected a number, got str"),
    (lambda t: tracejit.exp(t([1.0]), 2), TypeError, "exp"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as raised:
        call(tracejit.tensor)
    assert text in str(raised.value)


def gradient(function, *values):
    x = tracejit.tensor(values, dtype=float64, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize("function, values, want", [
    (lambda x: x.abs(), (0.0, -2.0), [0.0, -1.0]),
    (lambda x: x.clamp(0, 1), (0.0, 1.0, 2.0, -1.0), [1.0, 1.0, 0.0, 0.0]),
    (lambda x: x.relu(), (0.0, 1.0), [0.0, 1.0]),
    (lambda x: pointwise.maximum(x, x.detach()), (3.0,), [0.5]),
    (lambda x: x ** 0, (0.0, 2.0), [0.0, 0.0]),
    (lambda x: x ** 2, (0.0, 2.0), [0.0, 4.0]),
    (lambda x: x.floor(), (0.5,), [0.0]),
    (lambda x: x.sqrt(), (0.0, 4.0), [math.inf, 0.25]),
    (lambda x: 0 ** x, (2.0,), [0.0]),
    (lambda x: pointwise.where(x > 0, x, -x), (-2.0, 2.0), [-1.0, 1.0]),
])  # fmt: skip
def test_gradients_where_they_are_a_convention(function, values, want):
    assert gradient(function, *values) == want


def test_names_of_backward_nodes():
    x = tracejit.tensor([1.0], requires_grad=True)
    names = [f(x).grad_fn.name() for f in (
        lambda x: x + 1, lambda x: x / 2, lambda x: x ** 2, lambda x: x ** 3, lambda x: x.log1p(),
        lambda x: x.clamp(0, 1), lambda x: x.double(), lambda x: x.relu())]  # fmt: skip
    assert names == ["AddBackward0", "DivBackward0", "PowBackward0", "PowBackward0",
                     "Log1PBackward0", "ClampBackward1", "ToCopyBackward0", "ReluBackward0"]


# -- in place --------------------------------------------------------------------------------------
def test_in_place_twins_write_and_return_their_tensor():
    x = tracejit.tensor([1.0, 4.0])
    before = x.data_ptr()
    assert x.add_(1).mul_(2) is x and x.tolist() == [4.0, 10.0]
    x -= 1
    x /= 3
    assert x.data_ptr() == before and x.tolist() == [1.0, 3.0] and x._version == 4


def test_in_place_refuses_what_does_not_fit():
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        tracejit.tensor([1, 2]).add_(1.5)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match"):
        tracejit.zeros(3).add_(tracejit.zeros(2, 3))


def test_graph_values_have_no_memory_to_write():
    graph = Graph()
    x = y = graph.input(TensorType(float32, (3,)))
    x += 1
    assert x is not y and graph.nodes[0].op.name == "add"


# -- small results ---------------------------------------------------------------------------------
def test_sigmoid_and_what_is_made_of_it_keep_denormal_results():
    x = tracejit.tensor([-89.0, -95.0, -100.0, -103.0], dtype=float32)
    exact = 1 / (1 + (-x.double()).exp())
    least = 1.4012984643e-45
    for got, want in (
        (x.sigmoid(), exact),
        (tracejit.nn.functional.silu(x), x.double() * exact),
        (tracejit.nn.functional.gelu(x / 9, approximate="tanh"),
         tracejit.nn.functional.gelu(x.double() / 9, approximate="tanh")),
    ):  # fmt: skip
        assert (got.double() - want).abs().max().item() <= 2e-5 * want.abs().max().item() + least
        assert (got != 0).sum() == (want.to(float32) != 0).sum()


def test_arithmetic_of_two_numbers():
    import tracejit

    assert tracejit.add(2, 3).dtype is tracejit.int64 and tracejit.mul(2, 3.5).item() == 7
    assert tracejit.div(7, 2).item() == 3.5 and tracejit.sub(2, 3).item() == -1
    assert tracejit.floor_divide(-7, 2).item() == -4
    assert tracejit.div(7, 2, rounding_mode="trunc").item() == 3
    for call in (tracejit.pow, tracejit.remainder, tracejit.eq, tracejit.maximum):
        with pytest.raises(TypeError):
            call(2, 3)


def test_a_number_divided_by_a_tensor_and_truncated():
    import tracejit

    assert tracejit.div(7, tracejit.tensor([2, -2]), rounding_mode="trunc").tolist() == [3, -3]


@pytest.mark.parametrize("limit, value, expected", [
    (0.5, 3.7, [3, 3, 3, 1, 2]), (-0.5, -1.9, [-1, -1, -1, 1, 2]), (1, 4, [4, 4, 4, 4, 2]),
])  # fmt: skip
def test_the_threshold_of_integers_and_its_value_lose_their_fraction(limit, value, expected):
    def call(x, limit, value):
        return tracejit.nn.functional.threshold(x, limit, value)

    for function in (call, tracejit.script(call, mode="graph")):
        found = function(tracejit.arange(-2, 3), limit, value)
        assert found.dtype is tracejit.int64 and found.tolist() == expected
    x = tracejit.arange(-2, 3)
    tracejit.nn.functional.threshold_(x, limit, value)
    assert x.tolist() == expected


def test_bools_have_no_threshold():
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        tracejit.nn.functional.threshold(tracejit.tensor([True]), 0, 0)
