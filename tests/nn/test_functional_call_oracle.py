"""Which names `functional_call` takes, and what it leaves behind."""

from __future__ import annotations

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
{"extra": t.ones(2)}
{"inner.extra": t.nn.Parameter(t.ones(2))}
{"plain": t.ones(2)}, {"scale": t.ones(2)}
{"nothing": t.ones(2)}
{"inner.weight": t.ones(2, 2), "inner.bias": None}
{"text": t.ones(2)}
{"lost.weight": t.ones(2)}
{"text.weight": t.ones(2)}
{"inner.inner.weight": t.ones(2)}
{"seen": t.ones(2)}
({"seen": t.ones(2)}, {"plain": t.zeros(2)})
""".strip().split("\n")


def outcome(library, call, run=lambda f: f):
    class Inner(library.nn.Linear):
        def forward(self, x):
            return super().forward(x) + getattr(self, "extra", 0)

    class Model(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner(2, 2)
            library.nn.init.ones_(self.inner.weight)
            library.nn.init.ones_(self.inner.bias)
            self.register_buffer("seen", library.zeros(2))
            self.plain, self.text, self.nothing = library.zeros(2), "text", None

        def forward(self, x, scale=1):
            self.seen = self.seen + 1
            given = [name for name, _ in self.named_parameters()]
            nothing = 0 if self.nothing is None else self.nothing
            out = self.inner(x) * scale + self.plain + nothing + getattr(self, "extra", 0)
            return out, given

    model = Model()
    made = eval(f"({call},)", {"t": library})
    given, options = made if len(made) == 2 else (*made, {})
    f = run(lambda given, x: library.func.functional_call(model, given, (x,), options))
    seen = []
    for _ in range(3):
        try:
            out, names = f(given, library.arange(2.0))
            seen.append((out.tolist(), names))
        except (TypeError, AttributeError) as error:
            seen.append((type(error), str(error)))
    dicts = [given] if isinstance(given, dict) else given
    left = [{k: v if v is None else v.tolist() for k, v in d.items()} for d in dicts]
    return seen, left, sorted(vars(model)), [n for n, _ in model.named_parameters()]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_with_other_tensors(call):
    expected = outcome(torch, call)
    got = [outcome(tracejit, call), outcome(tracejit, call, tracejit.script)]
    for (seen, left, own, parameters), way in zip(got, ("eager", "script"), strict=True):
        assert (seen, left, parameters) == (expected[0], expected[1], expected[3]), way
        assert [name for name in own if name[0] != "_"] == [n for n in expected[2] if n[0] != "_"]


def test_a_module_that_holds_itself():
    texts = []
    for library in (torch, tracejit):
        model = library.nn.Linear(1, 1)
        holder = library.nn.Sequential(model)
        model.holder = holder
        given = {"0.holder.0.weight": library.ones(1, 1), "0.bias": library.zeros(1)}
        texts.append(library.func.functional_call(holder, given, library.ones(1),
                                                  tie_weights=False).tolist())
    assert texts[0] == texts[1] == [1.0]
