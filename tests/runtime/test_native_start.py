"""Storages of results serve again only when nobody can see them any more."""

import gc
import weakref

import numpy as np
import pytest

import tracejit as tj
from tracejit.jit.capture import memory_words
from tracejit.jit.runtime import builtin, native_start

KEEPERS = {
    "tensor": lambda y: y,
    "detached": lambda y: y.detach(),
    "view": lambda y: y[1:],
    "array": lambda y: y.numpy(),
    "array of a view": lambda y: y[1:].numpy(),
    "slice of its array": lambda y: y.numpy()[1:],
    "its own array": lambda y: y.array,  # which tells nobody that it looks
    "memory": lambda y: memoryview(y.numpy()),
    "exchanged": lambda y: np.from_dlpack(y),
    "history": lambda y: y.clone().requires_grad_().exp().sum().grad_fn,
}


def seen(kept):
    if hasattr(kept, "next_functions"):
        return repr(kept)
    return np.asarray(kept).tolist()


@pytest.mark.parametrize("keeper", KEEPERS.values(), ids=KEEPERS)
@pytest.mark.parametrize("held", [1, 2, 5])
def test_what_is_kept_of_a_result_keeps_its_elements(keeper, held):
    f = tj.script(lambda x: (x * 2, x + 1), mode="compiled")
    kept, expected = [], []
    for k in range(20):
        y, z = f(tj.full((3,), float(k)))
        assert y.tolist() == [2.0 * k] * 3 and z.tolist() == [k + 1.0] * 3
        kept = [*kept[-held:], keeper(y)]
        expected = [*expected[-held:], seen(kept[-1])]
        del y, z
        assert [seen(one) for one in kept] == expected


def test_versions_start_anew():
    f = tj.script(lambda x: x * 2, mode="compiled")
    for _ in range(10):
        y = f(tj.ones(3))
        assert y._version == 0 and y.grad_fn is None and y.grad is None
        y.add_(1)
        y.grad = tj.ones(3)
        assert y._version == 1
    saved = y * 1
    saved.requires_grad_()
    held = f(tj.ones(3))
    out = (saved * held).sum()
    held.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_gradients_and_versions_follow_a_run(count):
    """Few and many outputs; gradients of earlier calls stay what they were."""
    weights = [tj.ones(2, requires_grad=True) for _ in range(count)]
    buffer = tj.zeros(2)

    @tj.script(mode="compiled")
    def step(x):
        for w in weights:
            w.grad = None
        buffer.add_(x)
        loss = sum((w * x).sum() for w in weights)
        loss.backward()
        return loss

    kept = []
    for k in range(12):
        loss = step(tj.full((2,), float(k)))
        assert loss.item() == 2.0 * k * count and loss.requires_grad
        kept.append([w.grad for w in weights])
        assert buffer._version == k + 1
    for k, grads in enumerate(kept):
        assert all(g.tolist() == [float(k)] * 2 for g in grads)
    assert buffer.tolist() == [66.0, 66.0]


def test_numbers_reach_the_program():
    f = tj.script(lambda x, a, n: (x * a + n, x[0] * n), mode="compiled")
    for k in range(12):
        y, z = f(tj.ones(3), k / 2, -k)
        assert y.tolist() == [k / 2 - k] * 3 and z.item() == -k


def test_functions_leave_no_memory_behind():
    gc.collect()
    before = tj.core.memory.stats().allocated
    f = tj.script(lambda x: x * 2, mode="compiled")
    for _ in range(10):
        f(tj.ones(4))
    del f
    gc.collect()
    assert tj.core.memory.stats().allocated <= before + 4096


def test_methods_outlive_the_threads_that_asked_at_once():
    """`functools.cache` keeps one thread's; CPython has the addresses of all."""
    text = builtin.method.__wrapped__("start", native_start._text("start"))
    again = builtin.method.__wrapped__("start", native_start._text("start"))
    assert text is not again
    kept = [weakref.ref(text), weakref.ref(again)]
    del text, again
    gc.collect()
    assert all(method() is not None for method in kept)


@pytest.mark.skipif(not memory_words.supported(), reason="no native code on this interpreter")
def test_addresses_are_read_as_they_are():
    """Ints of two digits are read where CPython keeps them, all others by asking it."""
    text = f'''\
"""A builtin function: `this` is an ndarray of words; `arguments` the address of the objects."""
from tracejit.jit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def read(this, arguments, count) -> "int64":
    words = pointer_at(pointer_at(this)[{builtin.DATA}])
    two_digits = words[0]
    value = words[1]
    address = pointer_at(arguments)[0]
{native_start._decoded("address", 4)}
    return call_function(words[2], address)
'''
    words = [memory_words.word(id(1 << 40) + memory_words.INT_SIZE)]
    words += [builtin.python_api(name) for name in ("PyLong_AsLongLong", "PyLong_FromLongLong")]
    read = builtin.function_over(builtin.method("read", text), words)
    edges = [0, 7, 2**30 - 1, 2**30, 2**30 + 1, 2**47 - 64, 2**59 + 5, 2**60 - 1, 2**60, 2**62 + 9]
    for number in (*edges, *(-n for n in edges)):
        assert read(number) == number
