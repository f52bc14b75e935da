"""Which modules run, in forward and in backward passes, against PyTorch."""

from __future__ import annotations

import importlib

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def _seen(lib, capture=None):
    tracker = importlib.import_module(f"{lib.__name__}.utils.module_tracker").ModuleTracker()
    seen = []

    def note():
        seen.append((sorted(tracker.parents), tracker.is_bw))

    class Part(lib.nn.Module):
        def forward(self, parts):
            x = parts["x"] * 2
            note()
            if x.requires_grad:
                x.register_hook(lambda grad: note())
            return {"x": x.sin()}

    class Whole(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Part()
            self.rest = lib.nn.ModuleList([Part(), lib.nn.Sequential(Part())])
            self.again = self.first

        def forward(self, x):
            parts = self.again(self.rest[1](self.first({"x": x})))
            return self.rest[0](parts)["x"]

    model = Whole()
    call = capture(model) if capture else model
    with tracker:
        for needs in (True, False, True):
            out = call(lib.ones(2, requires_grad=needs) * 1).sum()
            if needs:
                out.backward()
            note()
        model.rest[0]({"x": lib.ones(1)})
    call(lib.ones(2))
    note()
    return seen


@pytest.mark.parametrize("capture", [None, tracejit.script], ids=["eager", "script"])
def test_modules_are_followed_as_pytorch_follows_them(capture):
    assert _seen(tracejit, capture) == _seen(torch)


def test_a_module_called_by_itself_first_keeps_its_name():
    def names(lib):
        made = importlib.import_module(f"{lib.__name__}.utils.module_tracker").ModuleTracker()
        model, seen = lib.nn.Sequential(lib.nn.Sequential(lib.nn.Tanh())), []
        with made:
            for module in (model[0][0], model[0], model):
                model[0][0].register_forward_hook(lambda *_: seen.append(sorted(made.parents)))
                module(lib.ones(1))
        return seen

    assert names(tracejit) == names(torch)
