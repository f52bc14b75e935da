"""state_dict and load_state_dict: contents, strictness, messages."""

import pytest

import tracejit
from tracejit import nn


def net():
    made = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
    made[1].register_buffer("seen", tracejit.zeros(()))
    made[1].register_buffer("scratch", tracejit.zeros(()), persistent=False)
    return made


def test_contents():
    model = net()
    state = model.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias", "1.seen"]
    assert not state["0.weight"].requires_grad and type(state["0.weight"]) is tracejit.Tensor
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight
    assert list(model[0].state_dict(prefix="p.")) == ["p.weight", "p.bias"]
    state["0.bias"].fill_(4)
    assert model[0].bias.tolist() == [4.0, 4.0, 4.0], "memory is shared"


def test_loading_copies_values():
    source, target = net(), net()
    weight = target[0].weight
    found = target.load_state_dict(source.state_dict())
    assert repr(found) == "<All keys matched successfully>"
    assert target[0].weight is weight and weight.tolist() == source[0].weight.tolist()
    with tracejit.no_grad():
        source[0].weight.zero_()
    assert weight.tolist() != source[0].weight.tolist()
    assert weight.requires_grad and weight.is_leaf


def test_loading_by_assignment():
    source, target = net(), net()
    state = source.state_dict()
    target.load_state_dict(state, assign=True)
    assert type(target[0].weight) is nn.Parameter and target[0].weight.requires_grad
    state["0.weight"].fill_(3)
    assert target[0].weight.tolist() == [[3.0, 3.0]] * 3
    assert target[1].seen is state["1.seen"]


def test_everything_wrong_is_in_one_message():
    state = net().state_dict()
    state["extra"] = tracejit.zeros(1)
    state["0.bias"] = tracejit.zeros(4)
    state["1.bias"] = [1.0]
    del state["1.weight"]
    model = net()
    with pytest.raises(RuntimeError) as error:
        model.load_state_dict(state)
    assert str(error.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "1.weight". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for 0.bias: copying a param with shape tracejit.Size([4]) from "
        "checkpoint, "
        "the shape in current model is tracejit.Size([3]).\n"
        '\tWhile copying the parameter named "1.bias", expected tracejit.Tensor or Tensor-like '
        "object "
        "from checkpoint but received <class 'list'>"
    )


def test_not_strict():
    state = net().state_dict()
    state["extra"] = tracejit.zeros(1)
    del state["1.weight"]
    found = net().load_state_dict(state, strict=False)
    assert found.missing_keys == ["1.weight"] and found.unexpected_keys == ["extra"]
    assert "missing_keys=['1.weight']" in repr(found)
    state["0.bias"] = tracejit.zeros(4)
    with pytest.raises(RuntimeError, match="size mismatch for 0.bias"):
        net().load_state_dict(state, strict=False)


def test_not_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'list'>"):
        net().load_state_dict([1])
