"""Native functions of small eager ops give what the general way gives: the same bits, history,
errors and references."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.ops import direct_calls
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.runtime import eager_words

pytestmark = pytest.mark.skipif(not eager_words.available(), reason="no native code on this "
                                "interpreter")
COMPARISONS = ["eq", "ge", "gt", "le", "lt", "ne"]  # a number cannot be their first operand
FAST = sorted(op.name for op in REGISTRY.values() if op.fast == "elementwise")
UNARY = [name for name in FAST if len(REGISTRY[name].operands) == 1]
BINARY = [name for name in FAST if len(REGISTRY[name].operands) == 2]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 1e-40, 1e38,
           -3e38, 88.7, -104.0, 2.0, 3.0]  # fmt: skip


def native(name):
    op = REGISTRY[name]
    if op.direct.__class__.__name__ != "builtin_function_or_method":
        direct_calls.make(op)
    assert op.direct.__class__.__name__ == "builtin_function_or_method"
    return op.direct


def generally(name, *operands):
    """What the op gives where no native function is tried."""
    op = REGISTRY[name]
    before, op.direct = op.direct, None
    try:
        return op(*operands)
    finally:
        op.direct = before


def values(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if dtype is tj.int64:
        found = rng.integers(-(2**62), 2**62, count)
        found[: count // 2] %= 7
        return tj.tensor(found.reshape(shape))
    found = rng.standard_normal(count) * 10.0 ** rng.integers(-6, 6, count)
    found[rng.permutation(count)[: len(SPECIAL)]] = rng.permutation(SPECIAL)[:count]
    with np.errstate(all="ignore"):
        return tj.tensor(found.reshape(shape).astype(dtype.numpy))


def same(found, expected):
    assert type(found) is type(expected) is tj.Tensor
    assert found.dtype is expected.dtype and tuple(found.shape) == tuple(expected.shape)
    assert found.stride() == expected.stride() and found.storage_offset() == 0
    assert found.numpy().tobytes() == expected.numpy().tobytes()
    assert found._version == expected._version == 0 and found.is_leaf == expected.is_leaf
    assert found.untyped_storage().nbytes() == expected.untyped_storage().nbytes()


@pytest.mark.parametrize("shape", [(), (1,), (16,), (3, 5), (2, 1, 3, 1), (37,), (2048,), (8192,)])
@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.int64])
@pytest.mark.parametrize("name", FAST)
def test_elements_are_the_same_bits(name, dtype, shape):
    direct = native(name)
    operands = [values(dtype, shape, k) for k in range(len(REGISTRY[name].operands))]
    found = direct(*operands)
    if found is NotImplemented:
        assert dtype is tj.int64
        return
    same(found, generally(name, *operands))
    assert REGISTRY[name](*operands).numpy().tobytes() == found.numpy().tobytes()


@pytest.mark.parametrize("number", [
    2, -1, 0, 0.1, -0.0, float("nan"), float("inf"), 1e300, 2**53 + 1, -(2**63), 16777217])
@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.int64])
@pytest.mark.parametrize("name", BINARY)
def test_numbers_take_the_tensors_dtype(name, dtype, number):
    direct = native(name)
    x = values(dtype, (19,), 3)
    answered = 0
    for operands in ((x, number), (number, x)):
        found = direct(*operands)
        if found is NotImplemented:
            continue
        assert name not in COMPARISONS or operands[0] is x
        answered += 1
        same(found, generally(name, *operands))
    assert answered == 2 - (name in COMPARISONS) or dtype is tj.int64


@pytest.mark.parametrize("name", BINARY)
def test_a_tensor_without_dimensions_goes_with_any_shape(name):
    direct = native(name)
    x, y = values(tj.float32, (3, 4), 1), values(tj.float32, (), 2)
    for operands in ((x, y), (y, x), (y, y), (x, y.expand(3, 4)), (y.expand(3, 4), x),
                     (y.expand(3, 4), y.expand(3, 4)), (y, x[0, 1].expand(3, 4))):
        same(direct(*operands), generally(name, *operands))


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.int64])
@pytest.mark.parametrize("shapes", [((3, 7), (7,)), ((3, 7), (3, 1)), ((3, 1), (1, 7)),
                                    ((5,), (1,)), ((2, 1, 4), (3, 1)), ((64, 31), (31,)),
                                    ((1, 1), (6,)),
                                    ((2, 3, 4), (2, 1, 4))], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", BINARY)
def test_operands_of_different_shapes_broadcast(name, shapes, dtype):
    direct = native(name)
    for pair in (shapes, shapes[::-1]):
        given = [values(dtype, shape, k) for k, shape in enumerate(pair)]
        found = direct(*given)
        if found is NotImplemented:
            assert dtype is tj.int64 and name == "div"
            return
        same(found, generally(name, *given))
        if dtype is not tj.int64:
            signs = [np.arange(np.prod(s)).reshape(s) % 3 < k + 1 for k, s in enumerate(pair)]
            nans = [tj.tensor(np.where(sign, np.nan, -np.nan), dtype=dtype) for sign in signs]
            same(direct(*nans), generally(name, *nans))


@pytest.mark.parametrize("name", UNARY)
def test_an_expanded_element_is_computed_for_each_place(name):
    for value in SPECIAL:
        x = tj.tensor(value).expand(5, 7)
        same(native(name)(x), generally(name, x))


@pytest.mark.parametrize("name", FAST)
def test_what_is_not_plain_goes_the_general_way(name):
    direct, count = native(name), len(REGISTRY[name].operands)
    x = tj.ones(4, 4)

    class Own(tj.Tensor):
        pass

    others = [x.T[:, 1:], x.to(tj.bfloat16), x.to(tj.int32), x.to(tj.bool), tj.ones(8193),
              tj.ones(0, 3), tj.ones(2, device="meta"), x.as_subclass(Own), x.data, 3, "a",
              None, x.numpy(), True, x.to(tj.complex64)]  # fmt: skip
    for other in others:
        assert direct(*[other] * count) is NotImplemented
    assert direct() is direct(*[x] * (count + 1)) is NotImplemented
    if count == 2:
        for other in (True, 1j, "a", None, np.float32(1), x.numpy(), tj.ones(3), tj.ones(2, 1, 3),
                      tj.ones(600, 4, 4), tj.ones(0, 4, 4), tj.ones([1] * 8).reshape([1] * 9),
                      x.to(tj.float64), 2**64, [1.0], Own(), x.to(tj.int64)):  # fmt: skip
            assert direct(x, other) is NotImplemented
            assert direct(other, x) is NotImplemented
    assert type(direct(*[x] * count)) is tj.Tensor
    with tj.inference_mode():
        assert direct(*[x] * count) is NotImplemented
    made = threading.Thread(target=lambda: others.append(direct(*[x] * count)))
    with tj.inference_mode():  # of this thread
        made.start()
        made.join()
    assert type(others[-1]) is tj.Tensor


def history(x):
    """What a result's node says and keeps."""
    node = x.grad_fn
    if node is None:
        return None
    kept = [
        (type(k).__name__, *[getattr(k, n, None) for n in ("dtype", "shape", "version", "number")],
         getattr(k, "tensor", None) is not None and k.tensor.tolist())
        if type(k).__module__.startswith("tracejit") else (k, type(k))
        for k in (*node.operands, *node.outputs)]  # fmt: skip
    edges = [e and (e[0], e[1]) for e in node.edges]
    return (type(node), edges, kept, node.attributes, node.needed, node.keeps, node.symbolic,
            node.extras, node.op, x._output_nr, x.requires_grad)  # fmt: skip


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64])
@pytest.mark.parametrize("name", FAST)
def test_history_is_the_same(name, dtype):
    direct, count = native(name), len(REGISTRY[name].operands)
    leaf = tj.linspace(0.5, 2, 6).to(dtype).requires_grad_()
    inner, plain = leaf * 1.5, tj.linspace(0.1, 0.3, 6).to(dtype)
    view, scalar = inner.reshape(6), (leaf * 2).sum()
    known = [leaf, inner, plain, view, leaf]
    if count == 1:
        calls = [(x,) for x in known]
    else:
        calls = [(a, b) for a in known for b in (*known, 2, 0.5, scalar, leaf[:1], leaf[None])]
        calls += [(leaf[:1], inner)]
        calls += [(scalar, plain)] + [(2, leaf), (0.5, inner)] * (name not in COMPARISONS)
    for call in calls:
        found, expected = direct(*call), generally(name, *call)
        same(found.detach(), expected.detach())
        assert history(found) == history(expected)
        if expected.requires_grad:
            both = [tj.autograd.grad(y, leaf, tj.ones_like(y), retain_graph=True)[0]
                    for y in (found, expected)]
            assert both[0].numpy().tobytes() == both[1].numpy().tobytes()
    with tj.no_grad():
        assert not direct(*[leaf] * count).requires_grad
    if name in COMPARISONS:
        return
    with tj.autograd.detect_anomaly(check_nan=False):
        assert direct(*[leaf] * count) is NotImplemented
        assert direct(*[plain] * count) is not NotImplemented
    with tj.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        assert direct(*[leaf] * count) is NotImplemented


def test_a_stale_view_gets_its_history_first():
    leaf = tj.ones(4, requires_grad=True)
    base = leaf * 1
    view = base.reshape(4)
    base.mul_(3)
    assert native("add")(view, 1.0) is NotImplemented
    assert (view + 1.0).grad_fn.next_functions[0][0] is view.grad_fn


def test_a_write_to_a_saved_operand_is_found():
    w, x = tj.ones(3, requires_grad=True), tj.ones(3)
    product = native("mul")(w, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0"):
        product.sum().backward()


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", FAST)
def test_no_reference_is_lost_or_kept(name, recorded):
    direct, count = native(name), len(REGISTRY[name].operands)
    forms = [[tj.ones(5, requires_grad=recorded) * 1 for _ in range(count)]]
    if count == 2:
        leaf = tj.ones(5, requires_grad=recorded)
        forms += [[forms[0][0], x] for x in (1000, 1234.5, tj.ones(5), tj.ones(2, 1))] + [[leaf, 3]]
    watched = [x for form in forms for x in form]
    watched += [None, True, False, (), tj.float32, tj.Tensor, NotImplemented, REGISTRY[name], 0]
    watched += [x.shape for form in forms for x in form if isinstance(x, tj.Tensor)]

    def calls(times):
        for _ in range(times):
            for form in forms:
                direct(*form)
            direct(forms[0][0], None)
            direct()

    calls(50)
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    tracemalloc.start()
    calls(10)
    start = tracemalloc.get_traced_memory()[0]
    calls(1000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    moved = [sys.getrefcount(x) - b for x, b in zip(watched, before)]
    assert all(abs(count) < 200 for count in moved), moved  # a call that leaks makes it 1000
    assert grown < 8000


def test_the_first_calls_are_counted(monkeypatch):
    class Record:
        direct = None

    made = []

    def maker(op):
        made.append(op)
        return direct_calls.declines

    monkeypatch.setattr(direct_calls, "_maker", [maker])
    record = Record()
    record.direct = direct_calls.counting(record)
    for _ in range(direct_calls.CALLS):
        assert not made
        assert record.direct(1) is NotImplemented
    assert made == [record] and record.direct is direct_calls.declines


def test_whoever_runs_ops_instead_sees_all_of_them():
    from tracejit.core.eager import dispatch

    direct, x = native("add"), tj.ones(3)
    seen = []

    def run(op, operands, attributes):
        seen.append(op.name)
        return before(op, operands, attributes)

    before = dispatch.replace_run(run)
    try:
        assert direct(x, x) is NotImplemented
        _ = x + x
    finally:
        dispatch.replace_run(before)
    assert seen == ["add"]
    assert type(direct(x, x)) is tj.Tensor


def test_an_override_is_asked():
    class Own(tj.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "asked"

    x = tj.ones(3)
    assert (x + x.as_subclass(Own)) == "asked"
    assert type(x + x) is tj.Tensor
    assert type(native("add")(x, x)) is tj.Tensor
