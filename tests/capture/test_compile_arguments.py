"""`torch.compile` with the arguments that programs give it."""

import pytest

import tracejit as torch
from tracejit import nn


@pytest.mark.parametrize("options", [
    {}, {"mode": "default"}, {"mode": "reduce-overhead"}, {"mode": "max-autotune"},
    {"mode": "max-autotune-no-cudagraphs"}, {"mode": "graph"}, {"backend": "inductor"},
    {"backend": "eager"}, {"backend": "aot_eager", "fullgraph": True}, {"options": {}},
    {"options": {"max_autotune": True, "triton.cudagraphs": True}}, {"dynamic": True},
    {"backend": "inductor", "mode": "default", "dynamic": False, "numerics": "eager"},
])  # fmt: skip
def test_arguments_of_pytorch(options):
    x = torch.ones(1, 2)
    for f in (torch.compile(lambda x: x + 1, **options),
              torch.compile(**options)(lambda x: x + 1),
              torch.compile(model=lambda x: x + 1, **options)):
        assert f(x).tolist() == [[2.0, 2.0]] and f.report().compiles == 1
    model = nn.Linear(2, 2)
    assert torch.equal(torch.compile(model, **options)(x), model(x))
    expected = model(x)
    model.compile(**options)
    assert torch.equal(model(x), expected) and model.report().compiles == 1


def test_disabled():
    def f(x):
        return x + 1

    assert torch.compile(f, disable=True) is f and torch.compile(disable=True)(f) is f


@pytest.mark.parametrize(("options", "kind", "text"), [
    ({"mode": "fast"}, RuntimeError, "Unrecognized mode=fast, should be one of: default, lite"),
    ({"backend": "tvm"}, RuntimeError, "Invalid backend: 'tvm'"),
    ({"backend": lambda graph, inputs: graph}, NotImplementedError, "a backend of the user's"),
    ({"mode": "default", "options": {}}, RuntimeError, "Either mode or options"),
])  # fmt: skip
def test_what_is_refused(options, kind, text):
    with pytest.raises(kind, match=text):
        torch.compile(lambda x: x, **options)
