"""Operations that are counted: PyTorch's counts, by module, forward and backward."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
from torch.utils import flop_counter as theirs  # noqa: E402

from tracejit.utils import flop_counter as ours  # noqa: E402

pytestmark = pytest.mark.oracle


def product(lib):
    return lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.ReLU(), lib.nn.Linear(5, 2)), (3, 4)


def convolutions(lib):
    layers = (lib.nn.Conv2d(2, 4, 3, stride=2, padding=1), lib.nn.ReLU(),
              lib.nn.Conv2d(4, 4, 3, dilation=2), lib.nn.ConvTranspose2d(4, 3, 2, stride=2),
              lib.nn.Flatten(), lib.nn.Linear(768, 3))  # fmt: skip
    return lib.nn.Sequential(*layers), (2, 2, 24, 24)


def sequences(lib):
    return lib.nn.Sequential(lib.nn.Conv1d(3, 4, 5), lib.nn.Conv1d(4, 4, 1)), (2, 3, 9)


def attention(lib):
    class Attention(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = lib.nn.Linear(8, 24)

        def forward(self, x):
            q, k, v = self.first(x).chunk(3, -1)
            scores = lib.bmm(q, k.transpose(1, 2)).softmax(-1)
            return lib.einsum("bij,bjk->bik", scores, v) @ lib.ones(8, 2)

    return Attention(), (2, 5, 8)


def vectors(lib):
    class Vectors(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(4, 3))

        def forward(self, x):
            y = x @ self.weight
            return y * lib.mv(self.weight.t(), x) + lib.dot(y, y)

    return Vectors(), (4,)


def counted(lib, counter, make, backward):
    model, shape = make(lib)
    x = lib.ones(shape, requires_grad=True)
    with counter.FlopCounterMode(display=False) as mode:
        y = model(x)
        if backward:
            y.sum().backward()
    counts = {k: sum(v.values()) for k, v in mode.get_flop_counts().items() if sum(v.values())}
    return mode.get_total_flops(), counts


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("make", [product, convolutions, sequences, attention, vectors])
def test_counts_are_those_of_pytorch(make, backward):
    assert counted(tracejit, ours, make, backward) == counted(torch, theirs, make, backward)


def test_groups_share_out_the_channels():
    model = tracejit.nn.Conv2d(4, 8, 3, groups=2)
    with ours.FlopCounterMode(display=False) as counter:
        model(tracejit.ones(1, 4, 5, 5)).sum().backward()
    assert counter.get_total_flops() == 2 * (2 * 8 * 3 * 3 * 2 * 3 * 3)  # forward, and weights


def test_captured_functions_count():
    model, shape = product(tracejit)
    step = tracejit.script(lambda x: model(x).sum())
    step(tracejit.ones(shape))
    with ours.FlopCounterMode(display=False) as counter:
        step(tracejit.ones(shape))
    assert counter.get_total_flops() == 2 * (3 * 4 * 5 + 3 * 5 * 2)
    with ours.FlopCounterMode(display=False) as again:
        pass
    assert again.get_total_flops() == 0
    step(tracejit.ones(shape))
    assert again.get_total_flops() == 0
    assert step.report().cache_hits >= 1


def test_counters_inside_captured_functions_count_at_each_call():
    model, shape = product(tracejit)

    def step(x):
        scaled = x * 2
        with ours.FlopCounterMode(display=False) as counter:
            loss = model(scaled).sum()
            loss.backward()
        return counter.get_total_flops(), loss * 3, model[0].weight.grad.clone()

    captured = tracejit.script(step)
    for k in range(5):
        x = tracejit.full(shape, k + 1.0)
        results = []
        for run in (step, captured):
            model.zero_grad()
            results.append(run(x))
        (count, *plain), (got, *values) = results
        assert got == count > 0
        assert all(map(tracejit.allclose, values, plain))
    assert "the function counts its operations" in str(captured.report().breaks)


def test_the_table_is_shown(capsys):
    model, shape = product(tracejit)
    with ours.FlopCounterMode(depth=1):
        model(tracejit.ones(shape))
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["Module", "FLOP", "%", "Total"]
    assert [line.split()[0] for line in shown[2:]] == ["Global", "-", "Sequential", "-"]
    assert shown[2].split()[1:] == ["180.000", "100.00%"]


def test_formulas_of_the_users():
    def of_ones(*shapes, out_shape, **attributes):
        return 7

    with ours.FlopCounterMode(display=False, custom_mapping={"exp": of_ones}) as counter:
        tracejit.ones(2).exp()
    assert {op.name: n for op, n in counter.get_flop_counts()["Global"].items()} == {"exp": 7}
    with pytest.raises(ValueError, match="expected each target to be an op"):
        ours.register_flop_formula(3)(of_ones)
