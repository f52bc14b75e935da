"""What captured calls cost beside time: memory of a step against eager mode's, and nothing for
large arrays that they only close over."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np

import tracejit as tj
from tracejit.core.eager import dispatch


def _step():
    nn = tj.nn
    layers = nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 64)
    model = nn.Sequential(*layers)
    optimizer = tj.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _peak(function, *args):
    """Bytes that a call needs on top of what is there between calls."""
    for _ in range(9):  # by then native code serves the call
        function(*args)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        function(*args)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_captured_step_needs_no_more_memory_than_its_ops_one_by_one(monkeypatch):
    x, captured = tj.ones(512, 64), tj.script(_step())
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_library", [])  # programs of fused ops need less
        eager = _peak(_step(), x)
    beside = _peak(captured, x)
    assert beside + captured.report().peak_bytes <= eager


def test_what_a_function_closes_over_is_neither_copied_nor_read():
    array = np.empty(1 << 28, np.float32)  # one GB, of which no page is there
    tensor = tj.from_numpy(array)
    of_tensor, of_array = tj.script(lambda x: x * tensor[:4]), tj.script(lambda x: x + array[:4])
    for f in (of_tensor, of_array):
        f(tj.ones(4))
        assert _peak(f, tj.ones(4)) < 1 << 20
    assert of_tensor.report().compiles == 1
