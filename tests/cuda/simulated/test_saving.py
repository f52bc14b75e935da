"""Tensors of a CUDA device: in files, in batches, and where a function is run again."""

import io

import pytest

import tracejit
from tracejit.utils.checkpoint import checkpoint
from tracejit.utils.data import DataLoader, TensorDataset

CUDA = tracejit.device("cuda:0")


def saved(obj):
    file = io.BytesIO()
    tracejit.save(obj, file)
    return file.getvalue()


def test_tensors_come_back_to_their_device():
    x = tracejit.arange(6.0, device="cuda").reshape(2, 3)
    data = saved({"x": x, "view": x.t()[1:], "weight": tracejit.nn.Parameter(x[:1] * 2)})
    found = tracejit.load(io.BytesIO(data))
    assert {t.device for t in found.values()} == {CUDA}
    assert found["x"].tolist() == x.tolist() and found["weight"].tolist() == [[0, 2, 4]]
    found["x"].fill_(7)
    assert found["view"].tolist() == [[7, 7], [7, 7]] and x[0, 0].item() == 0


@pytest.mark.parametrize("where", ["cpu", {"cuda:0": "cpu"}, lambda storage, place: storage])
def test_tensors_go_where_they_are_sent(where):
    data = saved(tracejit.arange(3.0, device="cuda"))
    found = tracejit.load(io.BytesIO(data), map_location=where)
    assert found.device.type == "cpu" and found.tolist() == [0, 1, 2]
    again = tracejit.load(io.BytesIO(saved(found)), map_location="cuda")
    assert again.device == CUDA and (again + 1).tolist() == [1, 2, 3]


def test_checkpointed_on_the_device():
    x = tracejit.tensor([0.5, 1.0], device="cuda", requires_grad=True)
    for reentrant in (True, False):
        checkpoint(lambda x: (x * x).exp().sin(), x, use_reentrant=reentrant).sum().backward()
    y = tracejit.tensor([0.5, 1.0], requires_grad=True)
    (y * y).exp().sin().sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * g for g in y.grad.tolist()], rel=1e-5)


def test_batches_of_device_tensors():
    data = TensorDataset(tracejit.arange(4.0, device="cuda"))
    found = [batch for (batch,) in DataLoader(data, 2)]
    assert [b.tolist() for b in found] == [[0, 1], [2, 3]] and found[0].device == CUDA
