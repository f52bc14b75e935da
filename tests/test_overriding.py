"""Classes and modes that say what functions of tensors do: `__torch_function__`.

What PyTorch does is written here as values; `test_overriding_oracle.py` compares whole calls.
"""

import subprocess
import sys

import pytest

import tracejit
import tracejit.nn.functional as F
from tracejit.overrides import TorchFunctionMode, resolve_name


class Diagonal:
    """No tensor: a class with functions of its own, as packages of structured matrices have."""

    handled: dict = {}

    def __init__(self, values):
        self.values = values

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.handled:
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


Diagonal.handled = {
    tracejit.exp: lambda d: Diagonal(d.values.exp()),
    tracejit.matmul: lambda d, x: d.values[:, None] * x,
    tracejit.Tensor.matmul: lambda x, d: x * d.values,
    tracejit.Tensor.add: lambda x, d: x + tracejit.diag(d.values),
    tracejit.cat: lambda parts, dim=0: [type(p).__name__ for p in parts],
    F.relu: lambda d, inplace: Diagonal(F.relu(d.values)),
}


class Named(tracejit.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.fixture
def named():
    Named.calls.clear()
    return tracejit.tensor([1.0, 2.0]).as_subclass(Named)


def test_another_class_answers_functions_methods_and_operators():
    d, x = Diagonal(tracejit.tensor([1.0, 2.0])), tracejit.ones(2, 2)
    assert tracejit.exp(d).values.tolist() == d.values.exp().tolist()
    assert tracejit.matmul(d, x).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert (x @ d).tolist() == x.matmul(d).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert (x + d).tolist() == x.add(d).tolist() == (d + x).tolist() == [[2.0, 1.0], [1.0, 3.0]]
    assert tracejit.cat([x, d]) == ["Tensor", "Diagonal"]
    assert F.relu(d).values.tolist() == [1.0, 2.0]


def test_what_no_class_answers_is_an_error():
    d, x = Diagonal(tracejit.ones(2)), tracejit.ones(2)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.sub'"):
        tracejit.sub(x, d)
    with pytest.raises(TypeError, match="no implementation found for 'torch.functional.split'"):
        tracejit.split(d, 1)
    with pytest.raises(TypeError, match="unsupported operand"):
        x - d


@pytest.mark.parametrize("call", [
    "ones(2) @ d", "exp(d)", "stack([d])", "ones(2) == d", "reshape(d, (2,))",
])  # fmt: skip
def test_the_first_call_of_a_process_asks(call):
    text = ("import tracejit\n"
            "from tracejit import *\n"
            "class D:\n"
            "    @classmethod\n"
            "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
            "        return 'asked'\n"
            f"d = D()\nassert (lambda: tracejit.{call})() == 'asked'\n")
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_results_stay_of_a_class_of_tensors(named):
    plain = tracejit.ones(2)
    for result in (named + 1, 1 + named, plain + named, named.exp(), tracejit.exp(named), named[0],
                   tracejit.cat([named, plain]), named.T, named.data, F.relu(named), *named):
        assert type(result) is Named
    assert type(named.max(0).values) is Named
    assert type(named.sum().item()) is float and type(named.shape) is tracejit.Size
    assert type(named.detach().numpy()).__name__ == "ndarray"


def test_names_of_what_was_called(named):
    named + 1, named - 1, named @ named, -named, named[0], named.shape, named.requires_grad
    assert Named.calls == ["add", "sub", "matmul", "neg", "__getitem__", "__get__", "__get__"]


def test_classes_are_asked_subclasses_first(named):
    asked = []

    class Further(Named):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append([kind.__name__ for kind in types])
            return NotImplemented

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append("Other")
            return 3

    further = tracejit.ones(2).as_subclass(Further)
    assert tracejit.stack([named, further, Other()]) == 3
    assert asked == [["Further", "Named", "Other"], "Other"]


def test_no_class_is_asked_where_that_is_off(named):
    with tracejit._C.DisableTorchFunctionSubclass():
        assert type(named + 1) is tracejit.Tensor
    assert not Named.calls and type(named + 1) is Named


def test_parameters_are_not_asked_and_gradients_flow(named):
    weight = tracejit.nn.Parameter(tracejit.ones(2))
    assert type(weight * 2) is tracejit.Tensor
    loss = (named * weight).sum()
    loss.backward()
    assert type(loss) is Named and weight.grad.tolist() == [1.0, 2.0]


def test_modes_see_every_call_before_classes(named):
    seen = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(resolve_name(func))
            return func(*args, **(kwargs or {}))

    with Watching():
        x = tracejit.ones(2)
        named + x
    tracejit.ones(2)
    assert seen == ["torch.ones", "torch.Tensor.add"] and Named.calls == ["add"]


def test_captured_functions_ask(named):
    plain = tracejit.ones(2)

    @tracejit.script
    def f(x):
        return x * 2 + plain

    for _ in range(3):
        Named.calls.clear()
        assert type(f(named)) is Named and f(named).tolist() == [3.0, 5.0]
        assert Named.calls.count("mul") == 2
    assert any("__torch_function__" in b.reason for b in f.report().breaks)
