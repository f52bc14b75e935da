"""Patterns: what they match and what they do not."""

import pytest

from tests.passes.programs import capture
from tracejit.core.ops import movement, pointwise
from tracejit.core.ops.types import bool_, float32, int64
from tracejit.jit.passes.pattern import Pattern, same_number


def matched(pattern, function, *kinds):
    graph = capture(function, *kinds)
    return pattern.match(graph.outputs[0]), graph.inputs


def test_holes_are_bound_by_name():
    bound, (x, y) = matched(Pattern(lambda a, b: a + -b), lambda x, y: x + -y, float32, float32)
    assert bound == {"a": x, "b": y}


def test_the_same_hole_stands_for_one_value():
    twice = Pattern(lambda a: a + -a)
    bound, (x, _) = matched(twice, lambda x, y: x + -x, float32, float32)
    assert bound == {"a": x}
    assert matched(twice, lambda x, y: x + -y, float32, float32)[0] is None


@pytest.mark.parametrize("function", [
    lambda x: x + 2, lambda x: x - 1, lambda x: 1 + x, lambda x: x, lambda x: x + x,
])
def test_other_expressions_do_not_match(function):
    assert matched(Pattern(lambda a: a + 1), function, float32)[0] is None


def test_numbers_match_by_value_and_sign_of_zero():
    one = Pattern(lambda a: a * 1)
    assert matched(one, lambda x: x * 1.0, float32)[0] is not None
    assert matched(one, lambda x: x * 1, int64)[0] is not None
    assert same_number(0, 0.0) and not same_number(0.0, -0.0)
    assert not same_number(1.0, "1") and not same_number(1.0, None)
    assert not same_number(float("nan"), float("nan"))


def test_attributes_match_by_value_or_into_a_hole():
    turned = Pattern(lambda a: movement.permute_record(a, dims=(1, 0)))
    assert matched(turned, lambda x: movement.permute(x, 1, 0), float32)[0] is not None
    assert matched(turned, lambda x: movement.permute(x, 0, 1), float32)[0] is None
    any_way = Pattern(lambda a, d: movement.permute_record(a, dims=d))
    assert matched(any_way, lambda x: movement.permute(x, 1, 0), float32)[0]["d"] == (1, 0)


def test_front_ends_see_the_dtype_asked_for():
    assert Pattern(lambda a: ~a, bool_).root.name == "logical_not"
    assert Pattern(lambda a: ~a, int64).root.name == "bitwise_not"


def test_a_pattern_applies_an_op():
    with pytest.raises(TypeError, match="must apply an op"):
        Pattern(lambda a: a)


def test_inputs_do_not_match_applications():
    graph = capture(lambda x: pointwise.exp(x), float32)
    assert Pattern(lambda a: -a).match(graph.inputs[0]) is None
