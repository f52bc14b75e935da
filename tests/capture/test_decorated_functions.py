"""Functions under decorators that switch a mode, as `step` of most optimizers of users: what they
do is recorded like any other code of the user's."""

import functools
import math

import pytest

import tracejit

DECORATORS = {
    "no_grad": tracejit.no_grad(),
    "no_grad, as it is": tracejit.no_grad,
    "enable_grad": tracejit.enable_grad(),
    "inference_mode": tracejit.inference_mode(),
    "set_grad_enabled": tracejit.set_grad_enabled(True),
    "autocast": tracejit.autocast("cpu", enabled=False),
}


@pytest.mark.parametrize("decorator", DECORATORS)
def test_what_a_decorated_function_decides_is_part_of_the_program(decorator):
    @DECORATORS[decorator]
    def scaled(x, count):
        c = math.sqrt(1 - 0.9**count)
        if x.sum() > 0:
            x = x * 2
        else:
            x = x - 1
        for _ in range(x.shape[0]):
            x = x + 1
        return x / c

    compiled = tracejit.script(lambda x, count: scaled(x, count))
    for count in (1, 2, 3, 4, 5):
        x = tracejit.linspace(-1, 2, 3) * (-1) ** count
        assert compiled(x, count).tolist() == pytest.approx(scaled(x, count).tolist())
    report = compiled.report()
    assert report.breaks == [] and report.variants <= 2 and report.cache_hits >= 3


def test_a_decorated_function_with_an_effect_is_not_run_on_trial():
    seen = []

    @tracejit.no_grad()
    def noted(x):
        seen.append(x.shape[0])
        return x + 1

    @tracejit.script
    def f(x):
        if x.sum() > 0:
            x = noted(x)
        return x * 2

    for k in (1.0, -1.0, 1.0):
        f(tracejit.full((2,), k))
    assert seen == [2, 2]


@pytest.mark.parametrize("fullgraph", [False, True])
def test_functions_that_keep_results_are_filled_by_the_first_call(fullgraph):
    @functools.lru_cache(None)
    def gain(n):
        return n * 2.0

    double = tracejit.script(lambda x: x * gain(3), fullgraph=fullgraph)
    assert [double(tracejit.ones(1)).item() for _ in range(4)] == [6.0] * 4
    assert double.report().breaks == []
    assert double.statistics.cache_hits == 2, "asked again by replays"
    assert gain.cache_info()[:2] == (3, 1), "as often as the plain function asks"


def test_the_report_names_functions_whose_results_are_new_in_each_call():
    @functools.lru_cache(None)
    def gain(x):
        return 2.0

    double = tracejit.script(lambda x: x * gain(x))
    assert [double(tracejit.ones(1)).item() for _ in range(4)] == [2.0] * 4
    assert "gain caches results (functools.lru_cache), and it ran" in str(double.report())


def test_a_graph_is_asked_for_before_a_function_keeps_results():
    @functools.lru_cache(None)
    def gain(n):
        return n * 2.0

    def f(x):
        return x.mul_(gain(3))

    x = tracejit.ones(1)
    assert len(tracejit.script(f).graph(x).nodes) > 0 and x.tolist() == [1.0]
