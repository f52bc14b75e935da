"""What hooks after a gradient, and values of `functional_call`, may be; in PyTorch's words."""

from __future__ import annotations

import pytest

import tracejit
import tracejit.func

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def _after_hook(lib, returned, run=lambda f: f):
    p = lib.nn.Parameter(lib.ones(2))
    seen = []
    p.register_post_accumulate_grad_hook(lambda p: returned(lib, p))
    p.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad is not None))

    def step(x):
        (p * x).sum().backward()
        return x

    try:
        run(step)(lib.ones(2))
    except (TypeError, RuntimeError) as error:
        return type(error), str(error), p.grad.tolist(), seen
    return p.grad.tolist(), seen


@pytest.mark.parametrize("returned", [
    lambda lib, p: None, lambda lib, p: 1, lambda lib, p: [], lambda lib, p: lib.ones(2),
    lambda lib, p: lib.ones(3), lambda lib, p: p,
], ids=["none", "number", "list", "tensor", "larger", "itself"])  # fmt: skip
def test_a_hook_after_accumulation_returns_nothing(returned):
    expected = _after_hook(torch, returned)
    assert _after_hook(tracejit, returned) == expected
    assert _after_hook(tracejit, returned, tracejit.script) == expected


@pytest.mark.parametrize("given", [{"weight": 1}, {"bias": [1.0]}, {"nope": 1}, {"weight": "ab"},
                                   {"bias": None}])
def test_functional_call_takes_tensors_only(given):
    outcomes = []
    for lib, run in ((torch, lambda f: f), (tracejit, lambda f: f), (tracejit, tracejit.script)):
        layer = lib.nn.Linear(2, 1)
        call = lib.func.functional_call
        try:
            run(lambda x, layer=layer, call=call: call(layer, given, x))(lib.ones(2))
            outcomes.append(None)
        except TypeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def _on_node(lib, register, returned, run=lambda f: f):
    x = lib.ones(2, requires_grad=True)

    def found(*seen):
        return returned(lib)

    def step(x):
        y = x * 2
        getattr(y if register == "register_hook" else y.grad_fn, register.split(".")[-1])(found)
        y.sum().backward()
        return y

    try:
        run(step)(x)
    except (TypeError, RuntimeError) as error:
        return type(error), str(error).replace("torch.", "tracejit.")
    return None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("register", ["register_hook", "register_prehook", "grad_fn.register_hook"])
@pytest.mark.parametrize("returned", [
    lambda lib: (), lambda lib: lib.ones(2), lambda lib: (lib.ones(3), None), lambda lib: 3,
    lambda lib: (lib.ones(2).double(),), lambda lib: (lib.ones(2) * 5,), lambda lib: (None,),
    lambda lib: ("a",), lambda lib: (lib.ones(2) * 7, None), lambda lib: (lib.ones(2), lib.ones(2)),
])  # fmt: skip
def test_what_hooks_of_nodes_return_is_checked(register, returned):
    expected = _on_node(torch, register, returned)
    assert _on_node(tracejit, register, returned) == expected
    assert _on_node(tracejit, register, returned, tracejit.script) == expected
