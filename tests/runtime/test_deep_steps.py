"""Steps through many layers: one program, equal layers compiled once, work that grows with them."""

import cProfile
import os

import pytest

import tracejit
from tracejit import config
from tracejit.jit.runtime import cache


def _step(layers, width=8):
    tracejit.manual_seed(0)
    nn = tracejit.nn
    parts = [layer for _ in range(layers)
             for layer in (nn.Linear(width, width), nn.ReLU(), nn.LayerNorm(width))]
    model = tracejit.nn.Sequential(*parts)
    optimizer = tracejit.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _calls(layers):
    """Calls of our own functions in the first call of a step; numba's depend on the cache."""
    compiled = tracejit.script(_step(layers))
    profile = cProfile.Profile()
    with config.override(verify_passes=False):
        profile.enable()
        compiled(tracejit.ones(4, 8))
        profile.disable()
    assert compiled.report().breaks == []
    own = os.path.dirname(tracejit.__file__)
    return sum(row.callcount for row in profile.getstats()
               if not isinstance(row.code, str) and row.code.co_filename.startswith(own))


@pytest.mark.full
def test_work_grows_with_the_layers():
    small, large, larger = (_calls(layers) for layers in (6, 12, 24))
    assert larger - large < 2.4 * (large - small)


@pytest.mark.full
def test_equal_layers_are_compiled_once():
    shapes = {}
    for layers in (20, 30):
        step = tracejit.script(_step(layers))
        step(tracejit.ones(4, 8))
        kernels = step.report().kernels
        shapes[layers] = {kernel.source for kernel in kernels}
        assert max(kernel.loops for kernel in kernels) <= 4
    assert len(shapes[30] - shapes[20]) <= 3  # where groups of layers end
    longest = {layers: max(map(len, sources)) for layers, sources in shapes.items()}
    assert longest[30] <= longest[20]  # no kernel holds the parts of all layers


@pytest.mark.full
def test_a_deep_step_replays_with_the_values_of_the_plain_one():
    x = tracejit.ones(4, 8)
    plain, compiled = _step(30), tracejit.script(_step(30))
    for _ in range(3):
        assert tracejit.allclose(plain(x), compiled(x), rtol=1e-4)
    report = compiled.report()
    assert (report.compiles, report.cache_hits, report.breaks) == (1, 2, [])


def test_a_segment_is_cut_where_a_flag_says_and_the_break_says_how_to_go_on():
    def endless(x):
        for _ in range(60):
            x = x * 0.5 + 1
        return x

    with config.override(max_segment_nodes=50):
        compiled = tracejit.trace(endless)
        x = tracejit.ones(3)
        assert tracejit.allclose(compiled(x), endless(x))
    (found,) = compiled.report().breaks
    assert "the graph has 50 nodes already" in found.reason
    assert "TRACEJIT_MAX_SEGMENT_NODES" in found.hint


@pytest.mark.slow
@pytest.mark.parametrize("layers", [700, 2000])
def test_thousands_of_layers(layers):
    """100,000 and 300,000 nodes."""
    compiled = tracejit.script(_step(layers, width=4))
    x = tracejit.ones(2, 4)
    with config.override(verify_passes=False):
        for _ in range(3):
            loss = compiled(x)
    assert bool(loss.isfinite())
    report = compiled.report()
    assert (report.compiles, report.cache_hits, report.breaks) == (1, 2, [])
    assert len(report.graphs[-1].nodes) > 140 * layers
    assert cache.counts["compiled"] < 200
