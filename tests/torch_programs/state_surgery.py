"""Checkpoints of another model: keys renamed, rows added, layers left out, what is said then."""

from collections import OrderedDict

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.backbone = nn.Sequential(OrderedDict([
            ("conv", nn.Conv1d(2, 4, 3)), ("norm", nn.BatchNorm1d(4)), ("act", nn.ReLU())]))
        self.head = nn.Linear(4, classes)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("cache", torch.zeros(3), persistent=False)

    def forward(self, x):
        return self.head(self.backbone(x).mean(-1)) * self.scale


def model():
    return Model()


def message(function, *args, **kwargs):
    try:
        return str(function(*args, **kwargs))
    except (RuntimeError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


def train(model):
    saved = OrderedDict(("module." + k, v) for k, v in model.state_dict().items())
    renamed = {k.replace("module.", "", 1).replace("backbone.", "encoder."): v
               for k, v in saved.items()}
    other = Model(classes=5)
    texts = [message(other.load_state_dict, saved), message(other.load_state_dict, renamed),
             message(other.load_state_dict, renamed, strict=False)]

    fixed = {k.replace("encoder.", "backbone."): v for k, v in renamed.items()}
    grown = torch.zeros(5, 4)
    grown[:3] = fixed["head.weight"]
    fixed["head.weight"] = grown
    fixed["head.bias"] = torch.cat([fixed["head.bias"], torch.zeros(2)])
    texts.append(message(other.load_state_dict, fixed))

    own_state = other.state_dict()
    for name, param in model.state_dict().items():
        if name not in own_state or own_state[name].shape != param.shape:
            continue
        own_state[name].copy_(param)
    incompatible = other.load_state_dict({"head.bias": torch.ones(5), "more": torch.ones(1)},
                                         strict=False)
    x = torch.linspace(-1, 1, 24).reshape(2, 2, 6)
    model.eval(), other.eval()
    forward = torch.compile(other)
    assert torch.equal(model(x), Model.forward(model, x))
    del other.backbone.act
    other.backbone.add_module("act", nn.Tanh())
    listing = [(n, tuple(p.shape)) for n, p in other.named_parameters(prefix="net")]
    return {"texts": texts, "missing": incompatible.missing_keys, "out": forward(x),
            "unexpected": incompatible.unexpected_keys, "listing": listing,
            "buffers": [n for n, _ in other.named_buffers()],
            "children": [n for n, _ in other.named_children()],
            "modules": [type(m).__name__ for m in other.modules()], "text": repr(other)}
