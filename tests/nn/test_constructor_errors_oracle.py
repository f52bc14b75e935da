"""Arguments that modules refuse when they are made, against PyTorch."""

from __future__ import annotations

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("call", [
    *(f"{kind}({arguments})" for kind in ("RNN", "LSTM", "GRU")
      for arguments in ("3.0, 2", "'3', 2", "3, 2.0", "0, 2")),
    "HuberLoss(delta=1j)", "HuberLoss(delta='1')", "HuberLoss(delta=2)", "HuberLoss(delta=True)",
])  # fmt: skip
def test_modules_refuse_arguments_as_pytorch_does(call):
    def outcome(lib):
        try:
            return repr(eval(call, vars(lib.nn).copy()))
        except Exception as error:
            return type(error), str(error)

    assert outcome(tracejit) == outcome(torch)


def test_numbers_of_captured_functions_are_numbers():
    @tracejit.script
    def loss(x, delta):
        return tracejit.nn.HuberLoss(delta=delta)(x, x * 3)

    x = tracejit.tensor([1.0, 2.0])
    for delta in (0.5, 1.5, 2.5):
        want = torch.nn.HuberLoss(delta=delta)(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0]))
        assert loss(x, delta).item() == pytest.approx(want.item())
