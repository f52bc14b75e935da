"""Assertions about a tensor's value are kept by captured programs, and fail with their error."""

import pytest

import tracejit


def checked(x, low):
    tracejit._assert_async((x > low).all(), "too low")
    y = x * 2
    tracejit._assert(y.sum() < 100, "too much")
    tracejit._assert(x.ndim == 1, "one dimension")
    return y


@pytest.mark.parametrize("capture", [tracejit.script, tracejit.trace])
@pytest.mark.parametrize("recorded", [True, False])
def test_assertions_are_part_of_the_program(capture, recorded):
    step = capture(checked)
    if recorded:  # else the first call is one that fails
        assert step(tracejit.tensor([1.0, 2.0]), 0.0).tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="^too low$"):
        step(tracejit.tensor([-1.0, 2.0]), 0.0)
    assert step(tracejit.tensor([-1.0, 2.0]), -2.0).tolist() == [-2.0, 4.0]
    with pytest.raises(AssertionError, match="^too much$"):
        step(tracejit.tensor([60.0, 2.0]), 0.0)
    with pytest.raises(AssertionError, match="^one dimension$"):
        step(tracejit.ones(2, 2), 0.0)
    assert step(tracejit.tensor([1.0, 3.0]), 0.0).tolist() == [2.0, 6.0]
    raised = ["the function raises an exception for these values"]  # the first call, in one case
    assert [b.reason for b in step.report().breaks] == raised[recorded:]


def test_gradients_go_on_past_an_assertion():
    step = tracejit.script(lambda x: (checked(x, 0.0) ** 2).sum())
    for value in (1.0, 2.0, 3.0):
        x = tracejit.tensor([value], requires_grad=True)
        step(x).backward()
        assert x.grad.item() == 8 * value
    assert not step.report().breaks
