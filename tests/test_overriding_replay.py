"""Classes of tensors that leave all functions as they are: captured calls replay, and what they
give is of the class that it is of without capturing."""

import pytest

import tracejit
import tracejit.nn.functional as F


class Named(tracejit.Tensor):
    @property
    def next(self):
        return self + 1


class Deep(Named):
    pass


def of(kind):
    return tracejit.tensor([1.0, 2.0, 3.0]).as_subclass(kind)


def with_gradient(x):
    leaf = x.detach().requires_grad_()
    loss = (leaf**2).sum()
    loss.backward()
    return leaf.grad, loss.detach()


def written(x):
    y = x.clone()
    y += 1
    y[0] = 5
    return y


def chosen(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


def one_side(x):
    if x.sum() > 0:
        y = x * 2
        return y
    z = x * 3
    return z + 1


def added_up(x):
    for _ in range(9):
        x = x * 0.5
    return x


def repeated(x):
    while x.sum() < 100:
        x = x * 2
    return x


def rows(x):
    found = []
    for row in x.reshape(3, 1).expand(3, 40).contiguous():
        found.append(row.sum())
    return tracejit.stack(found)


CALLS = [
    lambda x: x * 2,
    lambda x: (x - 1, [x[1:], x.view(3, 1)], {"a": x.unbind()}),
    lambda x: x.view(1, 3).max(0),
    lambda x: F.linear(x, tracejit.ones(2, 3)),
    lambda x: tracejit.cat([x, tracejit.ones(2)]),
    lambda x: x.as_subclass(Deep).sin(),
    lambda x: getattr(x, "next", x),
    with_gradient, written, chosen, one_side, added_up, repeated, rows,
]  # fmt: skip


def kinds(value):
    if isinstance(value, tracejit.Tensor):
        return type(value).__name__, value.tolist()
    if isinstance(value, dict):
        return [kinds(x) for x in value.values()]
    return [kinds(x) for x in value]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_results_keep_the_class_and_calls_replay(number):
    call = CALLS[number]
    f = tracejit.script(call)
    for _ in range(2):
        for kind in (Named, tracejit.Tensor, Deep):
            assert kinds(f(of(kind))) == kinds(call(of(kind)))
    report = f.report()
    assert not report.breaks and report.cache_hits == 3


def test_stored_results_keep_the_class():
    class Box:
        kept = None

    box = Box()

    @tracejit.script
    def f(x):
        box.kept = x * 2
        return x.sum()

    for k in range(4):
        f(of(Named) + k)
        assert type(box.kept) is Named and box.kept.tolist()[0] == 2 * (k + 1)
    assert f.report().cache_hits >= 2 and not f.report().breaks  # None at first


def test_a_class_that_is_asked_later_is_asked():
    class Late(tracejit.Tensor):
        pass

    f = tracejit.script(lambda x: x * 2)
    assert [type(f(of(Late))) for _ in range(2)] == [Late, Late]
    Late.__torch_function__ = classmethod(lambda *args: "asked")
    assert f(of(Late)) == "asked"


def test_a_class_is_asked_for_what_capturing_runs_itself():
    seen = []

    class Told(tracejit.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        y = x[1:]
        y += 1
        y[0] = 4
        for row in x:
            y = y + row
        return F.linear(y, tracejit.ones(1, 2)), tracejit.cat([y, x])

    g = tracejit.script(f)
    g(of(Told))
    captured = [name for name in seen if name not in ("__get__", "__len__")]
    seen.clear()
    f(of(Told))
    assert captured == [name for name in seen if name not in ("__get__", "__len__")]


@pytest.mark.parametrize("kind", [tracejit.nn.Parameter, tracejit.nn.Buffer])
def test_classes_of_parameters_and_buffers_are_plain_tensors_in_results(kind):
    class Weight(kind):
        pass

    module = tracejit.nn.Module()
    module.weight = Weight(tracejit.ones(3))
    f = tracejit.script(lambda x: x * module.weight)
    assert [type(f(tracejit.ones(3))) for _ in range(3)] == [tracejit.Tensor] * 3
    assert f.report().cache_hits == 2 and not f.report().breaks


def test_lazy_parameters_replay():
    layer = tracejit.nn.LazyLinear(4)
    layer(tracejit.ones(2, 3))
    f = tracejit.script(layer.forward)
    assert [type(f(tracejit.ones(2, 3))) for _ in range(3)] == [tracejit.Tensor] * 3
    assert f.report().cache_hits == 2 and not f.report().breaks
