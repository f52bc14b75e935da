"""GradScaler beside PyTorch's: what each step does, states, errors in PyTorch's words."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

OPTIONS = {"init_scale": 8.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2}


def made(t, **options):
    w = t.tensor([1.0, -2.0], requires_grad=True)
    return w, t.optim.SGD([w], lr=0.125, momentum=0.5), t.amp.GradScaler("cpu", **options)


def steps(t):
    w, optimizer, scaler = made(t, **OPTIONS)
    seen = [scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()]
    for k, factor in enumerate((1.0, 2.0, float("inf"), 1.0, 1.0, float("nan"), 3.0)):
        optimizer.zero_grad()
        scaler.scale((w * w).sum() * factor).backward()
        if k % 2:
            scaler.unscale_(optimizer)
        result = scaler.step(optimizer)
        scaler.update()
        seen += [result, scaler.state_dict(), w.tolist()]
    scaler.update(7.0)
    seen.append(scaler.get_scale())
    scaler.update(t.tensor(5.0))
    again = t.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    seen += [again.state_dict(), again.get_scale(), pickle.loads(pickle.dumps(scaler)).state_dict()]
    again.set_growth_factor(4.0)
    again.set_backoff_factor(0.5)
    again.set_growth_interval(9)
    seen += [again.get_growth_factor(), again.get_backoff_factor(), again.get_growth_interval()]
    return [*seen, [x.tolist() for x in scaler.scale([t.ones(1), (t.ones(2), t.ones(1))])[:1]]]


def test_steps_and_states():
    for a, b in zip(steps(tracejit), steps(torch), strict=True):
        if isinstance(b, list):
            np.testing.assert_allclose(np.array(a, float), np.array(b, float), rtol=1e-6)
        else:
            assert a == b


def test_disabled():
    for t in (torch, tracejit):
        w, optimizer, _ = made(t)
        scaler = t.amp.GradScaler("cpu", enabled=False)
        loss = (w * w).sum()
        assert scaler.scale(loss) is loss
        loss.backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
        assert w.tolist() == [0.75, -1.5]


def test_several_optimizers_share_a_scale():
    found = []
    for t in (torch, tracejit):
        v, w = (t.tensor([1.0], requires_grad=True) for _ in range(2))
        first, second = t.optim.SGD([v], lr=0.5), t.optim.SGD([w], lr=0.5)
        scaler = t.amp.GradScaler("cpu")
        scaler.scale((v * float("inf")).sum() + (w * w).sum()).backward()
        scaler.step(first)
        scaler.step(second)
        scaler.update()
        found.append((v.tolist(), w.tolist(), scaler.get_scale()))
    assert found[0] == found[1]


def twice(function):
    def run(t, w, optimizer, scaler):
        scaler.scale((w * w).sum()).backward()
        function(optimizer, scaler)
        function(optimizer, scaler)

    return run


def _half(t, w, optimizer, scaler):
    w = t.ones(2, dtype=t.float16, requires_grad=True)
    scaler.scale((w * w).sum()).backward()
    scaler.step(t.optim.SGD([w], lr=0.1))


REFUSED = {
    "step_first": lambda t, w, o, s: s.step(o), "update_first": lambda t, w, o, s: s.update(),
    "unscale_first": lambda t, w, o, s: s.unscale_(o),
    "unscale_twice": twice(lambda o, s: s.unscale_(o)), "step_twice": twice(lambda o, s: s.step(o)),
    "unscale_after": twice(lambda o, s: (s.step(o), s.unscale_(o))),
    "update_twice": twice(lambda o, s: (s._stages.clear() if hasattr(s, "_stages") else 0,
                                        s.update())),
    "no_gradient": lambda t, w, o, s: (s.scale(t.ones(1)), s.step(o)),
    "half": _half, "what": lambda t, w, o, s: s.scale(3),
    "closure": lambda t, w, o, s: s.step(o, closure=lambda: 1),
    "empty": lambda t, w, o, s: s.load_state_dict({}),
    "growth": lambda t, w, o, s: t.amp.GradScaler("cpu", growth_factor=1.0),
    "backoff": lambda t, w, o, s: t.amp.GradScaler("cpu", backoff_factor=1.0),
    "new_scale": lambda t, w, o, s: (s.scale(t.ones(1)), s.update(t.ones(2))),
    "pickled": lambda t, w, o, s: (s.scale((w * w).sum()).backward(), s.step(o), pickle.dumps(s)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_same_words(name):
    found = []
    for t in (torch, tracejit):
        with pytest.raises(Exception) as error:
            REFUSED[name](t, *made(t))
        found.append((error.type, str(error.value)))
    assert found[1] == found[0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_scaling_is_off():
    found = []
    for t in (torch, tracejit):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            scalers = [t.amp.GradScaler(), t.cuda.amp.GradScaler()]
        found.append(([s.is_enabled() for s in scalers],
                      [(w.category, str(w.message)) for w in told]))  # fmt: skip
    assert found[0] == found[1]
