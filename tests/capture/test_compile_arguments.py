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


def test_the_module_behind_a_compiled_one():
    model = nn.Linear(2, 2)
    compiled = torch.compile(model)
    assert compiled._orig_mod is model and not hasattr(model, "_orig_mod")
    assert hasattr(compiled, "dynamo_ctx") and not hasattr(model, "dynamo_ctx")
    assert getattr(compiled, "_orig_mod", compiled).state_dict().keys() == model.state_dict().keys()
    assert "_orig_mod" not in str([*compiled.named_modules()])


def test_marks_and_settings_change_nothing():
    torch._inductor.config.coordinate_descent_tuning = True
    torch._inductor.config.triton.unique_kernel_names = True
    torch._dynamo.config.cache_size_limit = 64

    @torch.compile
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    for n in (2, 3):
        x = torch.ones(n)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static(x)
        assert f(x).tolist() == [4.0] * n
    assert f.report().compiles == 1 and not f.report().breaks
