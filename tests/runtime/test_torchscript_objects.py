"""What programs written for TorchScript ask of `jit` beside `script` and `trace`."""

import typing

import pytest

import tracejit
from tracejit import jit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


def net():
    return tracejit.nn.Sequential(tracejit.nn.Linear(2, 3), tracejit.nn.Dropout(0.5))


def test_compiled_modules_and_functions_are_known():
    plain = net()
    for compiled in (jit.script(plain), jit.trace(plain.eval(), tracejit.ones(1, 2)),
                     jit.trace_module(plain, {"forward": tracejit.ones(1, 2)})):
        assert isinstance(compiled, jit.ScriptModule)
        assert isinstance(compiled, jit.RecursiveScriptModule)
        assert isinstance(compiled, tracejit.nn.Module)
    assert not isinstance(plain, jit.ScriptModule)
    assert isinstance(jit.script(lambda x: x), jit.ScriptFunction)
    with pytest.raises(NotImplementedError, match="traces forward only, not other"):
        jit.trace_module(plain, {"other": 1})


def test_a_list_of_examples_is_one_for_each_argument():
    for library in (torch, tracejit):
        one = library.ones(2)
        assert library.jit.trace(lambda x, y: x + y, [one, one])(one, one).tolist() == [2, 2]
        traced = library.jit.trace_module(library.nn.Identity(), {"forward": [one]})
        assert traced(one).tolist() == [1, 1]


def test_a_tracer_s_checks_may_be_asked_for_and_examples_have_names():
    for library in (torch, tracejit):
        traced = library.jit.trace(
            lambda x, y: x + y, example_kwarg_inputs={"x": library.ones(2), "y": library.ones(2)},
            check_trace=False, strict=False, check_tolerance=1e-4)
        assert traced(library.ones(2), library.ones(2)).tolist() == [2, 2]


class Older(jit.ScriptModule):
    __constants__ = ["scale"]

    def __init__(self):
        super().__init__()
        self.scale = 2
        self.weight = tracejit.nn.Parameter(tracejit.ones(3))

    @jit.script_method
    def forward(self, x):
        if x.sum() > 0:
            x = x * self.scale
        return x + self.weight


def test_modules_that_say_so_themselves():
    older = Older()
    assert isinstance(older, jit.ScriptModule) and not isinstance(net(), Older)
    assert not isinstance(jit.script(net()), Older)
    for sign in (1, -1, 1):
        x = tracejit.ones(3) * sign
        assert older(x).tolist() == [3.0 if sign > 0 else 0.0] * 3
    older(tracejit.ones(3)).sum().backward()
    assert older.weight.grad.tolist() == [1.0] * 3
    assert list(older.state_dict()) == ["weight"]


def test_frozen_modules_are_copies():
    plain = net()
    compiled = jit.script(plain)
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(compiled)
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule as input"):
        jit.freeze(plain)
    x = tracejit.ones(1, 2)
    frozen = jit.freeze(compiled.eval())
    expected = frozen(x).tolist()
    assert expected == compiled(x).tolist()
    with tracejit.no_grad():
        plain[0].weight.zero_()
    assert frozen(x).tolist() == expected != compiled(x).tolist()
    assert isinstance(jit.optimize_for_inference(compiled), jit.ScriptModule)


def test_tasks_run_at_once():
    task = jit.fork(lambda a, b=1: a + b, 1, b=3)
    assert jit.wait(task) == task.value() == 4 and task.done()
    assert task.then(lambda t: t.wait() * 2).wait() == 8


# ruff: noqa: UP007, UP045 (as older programs write them)
TYPES = [
    ([1, 2], list[int]), ([1, "a"], list[int]), ({"a": 1}, dict[str, int]),
    ({1: 1}, dict[str, int]), ((1, "a"), tuple[int, str]),
    ((1, 2), tuple[int, str]), (None, typing.Optional[int]), (3, typing.Optional[int]),
    ("a", typing.Optional[int]), (3, int), ([[1], [2]], list[list[int]]),
    ([], list[int]), (1.0, typing.Union[int, float]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), TYPES)
def test_types_of_objects(value, kind):
    assert jit.isinstance(value, kind) is torch.jit.isinstance(value, kind)


def test_switches_change_nothing():
    with jit.optimized_execution(False), jit.strict_fusion(), jit.fuser("fuser1"):
        assert jit.script_if_tracing(abs)(-1) == 1
    assert jit.set_fusion_strategy([("STATIC", 2)]) == [("STATIC", 2)]
    jit.enable_onednn_fusion(True)
    assert jit.onednn_fusion_enabled() is False
