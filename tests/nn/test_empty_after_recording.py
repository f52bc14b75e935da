"""What refuses empty inputs refuses them of a program too that was recorded with others.

In: functions, a shape each, and the dimension that is empty in the second call. The captured
function must raise what the plain one raises.
"""

from __future__ import annotations

import pytest

import tracejit
from tracejit.nn import functional as F

FUNCTIONS = {
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 2), (3, 4, 5), -1),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), (2, 3, 4, 5), 2),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, 2), (2, 3, 4, 5, 6), 2),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (3, 4, 5), 0),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, padding=1), (2, 3, 5), -1),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, padding=1), (2, 3, 5, 6), -1),
    "unfold": (lambda x: F.unfold(x, 3, padding=1), (2, 3, 5, 6), -1),
    "fold": (lambda x: F.fold(x, (3, 3), 1), (2, 4, 9), 1),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), (3, 4, 5), 0),
    "replicate": (lambda x: F.pad(x, (1, 1), "replicate"), (2, 3, 5), 1),
    "interpolate": (lambda x: F.interpolate(x, 4, mode="linear"), (2, 3, 5), 1),
    "area": (lambda x: F.interpolate(x, 4, mode="area"), (2, 3, 5), -1),
    "grid_sample": (lambda x: F.grid_sample(x, tracejit.zeros(2, 3, 3, 2), align_corners=False),
                    (2, 3, 4, 5), 2),
    "multilabel_margin_loss": (
        lambda x: F.multilabel_margin_loss(x, (x * 0).long()), (3, 4), -1),
    "multi_margin_loss": (
        lambda x: F.multi_margin_loss(x, (x.sum(-1) * 0).long()), (3, 4), -1),
}  # fmt: skip


def outcome(function, x):
    try:
        return function(x).tolist()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_empty_input_after_others(name):
    function, shape, dim = FUNCTIONS[name]
    captured = tracejit.script(lambda x: function(x), mode="graph")
    whole = tracejit.arange(float(tracejit.Size(shape).numel())).reshape(shape)
    empty = whole.narrow(dim, 0, 0)
    for x in (whole, empty, whole):
        assert outcome(captured, x) == outcome(function, x)
    assert isinstance(outcome(captured, empty), tuple)
