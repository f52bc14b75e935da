"""Hooks of modules in calls that go wrong, and of modules whose values are of other kinds; what
happens in which order, as in PyTorch."""

from __future__ import annotations

import pickle
import warnings
from collections import namedtuple

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

Pair = namedtuple("Pair", "first second")


def _raising(*_):
    raise ValueError("a hook's")


def always_called_after_a_pre_hook(lib, module, x, seen):
    module.register_forward_hook(lambda m, i, o: seen.append(("own", o)), always_call=True)
    module.register_forward_hook(_raising, always_call=True, prepend=True)
    for_all = lib.nn.modules.module.register_module_forward_hook(
        lambda m, i, o: seen.append(("all", o)), always_call=True)  # fmt: skip
    module.register_forward_pre_hook(_raising)
    with for_all:
        module(x)


def named_tuple_out(lib, module, x, seen):
    module.register_full_backward_hook(lambda m, i, o: seen.append((i, o)))
    module.made = lambda y: Pair(y * 2, "text")
    out = module(x)
    seen.append((type(out), out.second))
    out.first.sum().backward()


def list_out(lib, module, x, seen):
    module.register_full_backward_hook(lambda m, i, o: seen.append((i, o)))
    module.made = lambda y: [y * 2]
    module(x)[0].sum().backward()


def past_the_outputs(lib, module, x, seen):
    module.register_full_backward_hook(lambda m, i, o: seen.append((i, o)))
    module.made = lambda y: (seen.append(y), y * 2)[1]
    module(x)
    seen[0].sum().backward()


def no_input_requires_grad(lib, module, x, seen):
    module.register_full_backward_hook(lambda m, i, o: i)
    module(x.detach()).sum().backward()
    module.register_full_backward_hook(lambda m, i, o: o)
    module(x.detach()).sum().backward()


def too_many_of_a_pre_hook(lib, module, x, seen):
    module.register_full_backward_pre_hook(lambda m, o: (o[0], o[0]))
    module(x).sum().backward()


def only_some_inputs_require_grad(lib, module, x, seen):
    module.register_full_backward_hook(lambda m, i, o: seen.append((i, o)))
    module.made = lambda y: (y, x.detach() * 3, y.detach(), y * 2)
    outs = module(x, x.detach())
    seen.append([out.requires_grad for out in outs])
    outs[0].sum().backward()


def older_form(lib, module, x, seen):
    module.register_backward_hook(lambda m, i, o: None)
    for made in (lambda y: y, lambda y: y * 2, lambda y: (y * 2, y * 3), lambda y: {"a": y},
                 lambda y: [y], lambda y: (y, "text")):  # fmt: skip
        module.made = made
        module(x)
        module(x, 3)


PROGRAMS = [always_called_after_a_pre_hook, named_tuple_out, list_out, past_the_outputs,
            no_input_requires_grad, too_many_of_a_pre_hook, only_some_inputs_require_grad,
            older_form]  # fmt: skip


def _shown(value):
    if isinstance(value, (tuple, list)):
        return [_shown(x) for x in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _told(lib, program):
    class Module(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2))
            self.made = lambda y: y

        def forward(self, x, other=None):
            return self.made(x * self.weight)

    module, x, seen = Module(), lib.ones(2, requires_grad=True), []
    error = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            program(lib, module, x, seen)
        except Exception as raised:
            error = type(raised), str(raised)
    texts = [(w.category, str(w.message).split(" See https")[0]) for w in told]
    return _shown(seen), error, texts, _shown(x.grad), _shown(module.weight.grad)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_hooks_see_what_they_see_in_pytorch(program):
    assert _told(tracejit, program) == _told(torch, program)


def test_handles_know_their_hooks_and_travel_with_them():
    module = tracejit.nn.Module()
    handle = module.register_forward_hook(print)
    assert handle.hooks_dict_ref() == {handle.id: print}
    module.handle = handle
    copied = pickle.loads(pickle.dumps(module))
    copied.handle.id += 1000
    copied.handle.__setstate__(copied.handle.__dict__)
    assert module.register_forward_hook(print).id > copied.handle.id
    copied.handle.id -= 1000
    copied.handle.remove()
    assert not copied._forward_hooks and len(module._forward_hooks) == 2
