"""Files that hold whole modules and other objects, loaded by who trusts them."""

import io
from fractions import Fraction
from pickle import UnpicklingError

import pytest

import tracejit
from tracejit import nn


class Net(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 4), nn.ReLU(), nn.BatchNorm1d(4))
        self.scale = Fraction(1, 2)
        self.register_buffer("offset", tracejit.ones(4))

    def forward(self, x):
        return self.layers(x) * float(self.scale) + self.offset


def saved(obj, library=tracejit):
    file = io.BytesIO()
    library.save(obj, file)
    file.seek(0)
    return file


def test_whole_module():
    net, x = Net(3).eval(), tracejit.arange(6.0).reshape(2, 3)
    file = saved(net)
    for how in ({}, {"weights_only": True}):
        file.seek(0)
        with pytest.raises(UnpicklingError, match="Weights only load failed"):
            tracejit.load(file, **how)
    file.seek(0)
    again = tracejit.load(file, weights_only=False)
    assert type(again) is Net and again.scale == Fraction(1, 2) and not again.training
    assert again(x).tolist() == net(x).tolist()
    again(x).sum().backward()
    assert again.layers[0].weight.grad is not None


def test_trained_optimizer_and_objects_beside_tensors():
    net = Net(2)
    optimizer = tracejit.optim.Adam(net.parameters(), lr=0.1)
    net(tracejit.ones(3, 2)).sum().backward()
    optimizer.step()
    held = {"net": net, "optimizer": optimizer.state_dict(), "best": Fraction(3, 4), "kind": dict}
    again = tracejit.load(saved(held), weights_only=False)
    assert again["best"] == Fraction(3, 4) and again["kind"] is dict
    state, expected = again["optimizer"]["state"][0], held["optimizer"]["state"][0]
    assert state["exp_avg"].tolist() == expected["exp_avg"].tolist()


def test_names_that_stand_for_nothing(monkeypatch):
    monkeypatch.setitem(globals(), "Gone", type("Gone", (), {"__module__": __name__}))
    file = saved({"gone": globals()["Gone"]()})
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="Gone"):
        tracejit.load(file, weights_only=False)


@pytest.mark.oracle
def test_module_that_pytorch_saved():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                              torch.nn.Linear(8, 3)).eval()
    again = tracejit.load(saved(net, torch), weights_only=False)
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert type(again[3]) is nn.Linear
    (row,), (expected,) = again(tracejit.tensor(x.tolist())).tolist(), net(x).tolist()
    assert row == pytest.approx(expected, rel=1e-5)


def test_captured_calls_save_modules_and_parameters():
    model = tracejit.nn.Linear(2, 2)

    @tracejit.script
    def step(x):
        file, loss = io.BytesIO(), model(x).sum()
        weights = [tracejit.nn.Parameter(x * 2), *model.parameters()]
        tracejit.save({"model": model, "loss": loss, "weights": weights}, file)
        return loss * 2, file.getvalue()

    for n in (1, 1, 3):
        x = tracejit.ones(n, 2)
        doubled, data = step(x)
        found = tracejit.load(io.BytesIO(data), weights_only=False)
        assert tracejit.equal(found["loss"] * 2, doubled)
        assert tracejit.equal(found["model"](x), model(x))
        assert tracejit.equal(found["weights"][0], x * 2)
        assert tracejit.equal(found["weights"][1], model.weight)
