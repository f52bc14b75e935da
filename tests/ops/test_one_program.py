"""One program serves every batch size: nothing in these ops asks what their results do not depend
on."""

import pytest

import tracejit as t
from tracejit.jit import script

FUNCTIONS = {
    "quantile": lambda x: t.quantile(x, t.tensor([0.2, 0.5]), dim=0),
    "nanquantile": lambda x: t.nanquantile(x, 0.5, dim=1),
    "gradient": lambda x: t.gradient(x, dim=0),
    "trapezoid": lambda x: t.trapezoid(x, dim=0) + t.cumulative_trapezoid(x, x).sum(),
    "scatter_reduce": lambda x: t.zeros(6, 3).scatter_reduce(0, (x > 0).long(), x, "amax"),
    "index_reduce": lambda x: t.ones(4, 3).index_reduce(0, (x[:, 0] > 0).long(), x, "mean"),
    "cummax": lambda x: (*x.cummax(0), *x.cummin(1), x.logcumsumexp(0)),
    "mode": lambda x: tuple(x.mode(0)),
    "searchsorted": lambda x: t.searchsorted(x.sort(1).values, x),
    "histogram": lambda x: tuple(t.histogram(x, 4, range=(0.0, 1.0))),
    "cov": lambda x: (x.t().cov(), x.cov(), x.t().corrcoef()),
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    "diag": lambda x: (x.diag_embed(), x[:, 0].diag(), t.block_diag(x, x)),
    "stacks": lambda x: (t.hstack([x, x]), t.vstack([x, x]), t.column_stack([x, x[:, 0]])),
    "splits": lambda x: (*x.hsplit(3), *x.vsplit([1, 2])),
    "written": lambda x: (x.put(t.tensor([0, 1]), t.tensor([5.0, 6.0])),
                          x.masked_scatter(x > 0, x.flip(0))),
    "special": lambda x: t.lgamma(x * x + 1) + t.polygamma(1, x * x + 1) + t.xlogy(x, x * x),
}  # fmt: skip


def flat(found):
    return found if isinstance(found, (tuple, list)) else (found,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_batch_sizes(name):
    function = FUNCTIONS[name]
    captured = script(lambda x: function(x), mode="graph")
    for size in (4, 5, 7):
        t.manual_seed(size)
        x = t.randn(size, 3)
        for got, want in zip(flat(captured(x)), flat(function(x)), strict=True):
            assert got.shape == want.shape and t.allclose(got, want, equal_nan=True)
    report = captured.report()
    assert report.compiles == 1 and not report.breaks
