"""Native views are those of the general way: layout, record, family, history, references."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tests.runtime.test_eager_calls import history
from tracejit.core.eager.views import AliasFamily, View
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
PUBLIC = {"getitem": lambda x, key: x[key], "reshape": lambda x, *s: x.reshape(*s),
          "transpose": lambda x, a, b: x.transpose(a, b), "t": lambda x: x.t(),
          "permute": lambda x, *d: x.permute(*d), "unsqueeze": lambda x, d: x.unsqueeze(d),
          "expand": lambda x, *s: x.expand(*s)}
CALLS = [
    ("getitem", 0), ("getitem", -1), ("getitem", 3), ("getitem", slice(1, 3)),
    ("getitem", slice(None)), ("getitem", slice(-2, None)), ("getitem", slice(None, 100)),
    ("getitem", slice(0, 4, 1)), ("getitem", slice(-100, 2)), ("reshape", 24), ("reshape", -1),
    ("reshape", 2, 12), ("reshape", (3, -1)), ("reshape", tj.Size([6, 4])), ("reshape", 1, 24, 1),
    ("reshape", 4, 6, 1), ("transpose", 0, 1), ("transpose", -1, 0), ("transpose", 1, 1), ("t",),
    ("permute", 1, 0), ("permute", (1, 0)), ("permute", 0, -1), ("unsqueeze", 0), ("unsqueeze", 1),
    ("unsqueeze", -1), ("unsqueeze", 2), ("expand", 4, 6), ("expand", 3, 4, 6), ("expand", 1, 4, 6),
    ("expand", (2, 1, 4, 6)),
]  # fmt: skip
DECLINED = [
    ("getitem", 4), ("getitem", -5), ("getitem", True), ("getitem", None), ("getitem", (0, 1)),
    ("getitem", slice(0, 4, 2)), ("getitem", slice(2, 2)), ("getitem", [1]), ("getitem", "a"),
    ("getitem", slice(1.0, 2)), ("getitem", 2**70), ("getitem", slice(None, None, -1)),
    ("reshape",), ("reshape", 5, 5), ("reshape", -1, -1), ("reshape", -2), ("reshape", 0, -1),
    ("reshape", [24]), ("reshape", 24.0), ("reshape", 2**62, 4), ("reshape", -1, 7),
    ("reshape", tj.float32), ("transpose", 0, 2), ("transpose", 0, None), ("transpose", -3, 0),
    ("permute", 0, 0), ("permute", 0), ("permute", 0, 1, 2), ("unsqueeze", 3), ("unsqueeze", -4),
    ("unsqueeze", True), ("unsqueeze", 1.0), ("expand", 6), ("expand", 2, 6), ("expand", -1, 6),
    ("expand", 0, 4, 6),
]  # fmt: skip


def native(name):
    if functions[name].direct.__class__.__name__ != "builtin_function_or_method":
        direct_calls.make(functions[name])
    assert functions[name].direct.__class__.__name__ == "builtin_function_or_method"
    return functions[name].direct


def generally(name, *arguments):
    before, functions[name].direct = functions[name].direct, direct_calls.declines
    try:
        return PUBLIC[name](*arguments)
    finally:
        functions[name].direct = before


def record(x):
    view = x._view
    assert type(view) is View
    return (view.op, view.operands, view.attributes, view.generation, view.origin, view.version,
            view.viewed, view.output, type(view.family))  # fmt: skip


def same(found, expected, parent):
    assert type(found) is type(expected) is tj.Tensor
    names = ("_offset", "_shape", "_strides", "_dtype", "_device", "_requires_grad", "_output_nr")
    for name in names:
        assert getattr(found, name) == getattr(expected, name), name
    assert found._storage is expected._storage is parent._storage
    assert type(found._shape) is tuple and type(found._strides) in (tuple, type(None))
    assert record(found) == record(expected)
    assert found._view.parent is expected._view.parent is parent
    assert found._view.family is expected._view.family
    assert history(found) == history(expected)
    assert found.grad_fn is None or found.grad_fn.attributes is found._view.attributes
    assert found.tolist() == expected.tolist()


def parents():
    leaf = (tj.arange(24).reshape(4, 6) * 0.5).requires_grad_()
    inner = leaf * 2
    return {"plain": tj.arange(24).reshape(4, 6) + 0, "view": tj.arange(24.0).reshape(4, 6),
            "leaf": leaf, "inner": inner, "view of inner": inner.reshape(4, 6),
            "strided": tj.arange(60.0).reshape(5, 12)[1:].t()[::2].t(),
            "strided inner": (tj.ones(5, 12, requires_grad=True) * 2)[:4, 3:9],
            "bools": tj.arange(24).reshape(4, 6) > 3}  # fmt: skip


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("which", list(parents()))
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_views_are_the_same(call, which, grad):
    name, *arguments = call
    with tj.set_grad_enabled(grad):
        x = parents()[which]
        before = type(x._view)
        found = native(name)(x, *arguments)
        if found is NotImplemented:
            assert "strided" in which and name == "reshape"
            return
        told = x._view.viewed if type(x._view) is View else None
        assert type(x._view) is before or type(x._view) is AliasFamily
        y = parents()[which]
        generally(name, y, *arguments)
        assert told == (y._view.viewed if type(y._view) is View else None)
        same(found, generally(name, x, *arguments), x)
        same(PUBLIC[name](x, *arguments), found, x)
        if name == "expand":
            assert found.detach().numpy().flags.writeable
            assert generally(name, x.detach(), *arguments).numpy().flags.writeable
        again = native(name)(found, *([0, 0] if name == "transpose" else [0]))
        if again is not NotImplemented:
            assert again._view.parent is found and found._view.viewed is True
        if not x.requires_grad and not which.endswith("inner"):
            found.fill_(0)
            assert x._version == 1 and not any(found.reshape(-1).tolist())


@pytest.mark.parametrize("call", DECLINED, ids=str)
def test_other_arguments_go_the_general_way(call):
    name, *arguments = call
    for x in (tj.arange(24).reshape(4, 6), tj.ones(4, 6, requires_grad=True)):
        assert native(name)(x, *arguments) is NotImplemented


def test_tensors_that_are_not_plain_go_the_general_way():
    class Own(tj.Tensor):
        pass

    x = tj.ones(4, 6)
    leaf = tj.ones(4, 6, requires_grad=True)
    stale = (leaf * 1).reshape(4, 6)
    stale._view.parent.mul_(2)
    with tj.no_grad():
        made = leaf[0:2]
    others = [x.as_subclass(Own), x.data, tj.ones(0, 6), tj.ones(4, 6, device="meta"), stale, made,
              None, 3, "a", x.numpy(), tj.ones([1] * 8)]  # fmt: skip
    for name, *arguments in [("getitem", 0), ("reshape", -1), ("t",), ("unsqueeze", 0)]:
        for other in others:
            assert native(name)(other, *arguments) is NotImplemented
        with tj.inference_mode():
            assert native(name)(x, *arguments) is NotImplemented
        with tj.autograd.detect_anomaly(check_nan=False):
            assert native(name)(leaf, *arguments) is NotImplemented
        assert native(name)() is NotImplemented
        assert type(native(name)(x, *arguments)) is tj.Tensor


@pytest.mark.parametrize("shape", [(5,), (1,), (2, 1), (1, 2), (2, 1, 3), (1, 1, 2, 1)], ids=str)
def test_one_element_expands_as_in_general(shape):
    for x in (tj.tensor(2.5), tj.ones(3)[1], tj.ones(3, 1)[2], tj.ones(2, 3)[:1, 1:2]):
        if len(x.shape) <= len(shape):
            same(native("expand")(x, shape), generally("expand", x, shape), x)


def test_a_write_to_a_native_view_reaches_the_base_and_its_history():
    w = tj.ones(4, 6, requires_grad=True)
    base = w * 1
    row = native("getitem")(base, 1)
    column = native("t")(base)
    row.mul_(3)
    assert column[0, 1].item() == 3 and type(base.grad_fn).__name__ == "CopySlices"
    base.sum().backward()
    assert w.grad[1].tolist() == [3.0] * 6 and w.grad[0].tolist() == [1.0] * 6
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        native("getitem")(w, 0).add_(1)


@pytest.mark.parametrize("which", ["plain", "view", "leaf", "inner", "strided"])
def test_no_reference_is_lost_or_kept(which):
    x = parents()[which]
    calls = [(native(name), arguments) for name, *arguments in CALLS + DECLINED]
    watched = [x, x._storage, x.shape, x._shape, x._view, None, True, False, (), tj.float32,
               NotImplemented, "dim", *(y for _, y in calls)]  # fmt: skip

    def run(times):
        for _ in range(times):
            for direct, arguments in calls:
                direct(x, *arguments)

    assert_level(run, watched)
