"""Storages: what programs see of the memory behind tensors is what PyTorch shows."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")]


def numbers(t):
    return t.arange(6, dtype=t.float32)


def bytes_of(t):
    return numbers(t).untyped_storage()


def identity(t):
    x = numbers(t)
    memory = x.untyped_storage()
    others = x[1:].untyped_storage(), x.detach().untyped_storage(), x.data.untyped_storage()
    same = [o is memory and o == memory and hash(o) == hash(memory) for o in others]
    parts = x[2:].untyped_storage().data_ptr() == x.data_ptr() == memory.data_ptr()
    return same, parts, memory == x.clone().untyped_storage(), memory != x, memory == 5


def measures(t):
    memory = numbers(t)[2:].untyped_storage()
    return (memory.nbytes(), memory.size(), len(memory), memory.element_size(), memory.is_cuda,
            str(memory.device), memory.get_device(), memory.is_pinned(), memory.is_shared(),
            memory.resizable(), memory.filename, memory.is_sparse, bool(memory),
            memory._cdata == memory.untyped()._cdata, memory.untyped() is memory,
            t.empty(0).untyped_storage().data_ptr(), t.is_storage(memory), t.is_storage(3))


def written(t):
    x = numbers(t)
    memory = x.untyped_storage()
    memory[3] = 0x40
    memory[4:8] = 300
    part = memory[8:12]
    part[3] = 0xC0
    return x.tolist(), memory.tolist(), list(memory) == memory.tolist(), 63 in memory, part.tolist()


def copies(t):
    x, y = numbers(t), t.zeros(6)
    memory = y.untyped_storage()
    assert memory.copy_(x.untyped_storage()) is memory
    other = memory.clone()
    memory.fill_(0)
    return y.tolist(), other.tolist(), other.cpu() is other, memory.new().nbytes()


def of_python(t):
    kinds = (t.UntypedStorage(), t.UntypedStorage([1, 2, 300]), t.UntypedStorage((3,)))
    return [s.tolist() for s in kinds], t.UntypedStorage(5).nbytes()


def copied_by_python(t):
    memory = bytes_of(t)
    x = numbers(t)
    return [f(memory).tolist() == memory.tolist() and f(memory) != memory
            for f in (copy.copy, copy.deepcopy)], copy.deepcopy([x, x])[0].tolist()


def released_and_filled_again(t):
    x = t.ones(3, requires_grad=True)
    loss = (x * x * x).sum()
    memory, version, view = x.untyped_storage(), x._version, x.detach()
    assert memory.resize_(0) is memory
    gone = memory.nbytes(), len(memory), x.data_ptr(), tuple(x.shape), x._version - version
    memory.resize_(12)
    x.data.copy_(t.full((3,), 2.0))
    loss.backward()
    return gone, x.grad.tolist(), view.tolist(), x._version - version


def larger(t):
    x = numbers(t)
    alias = x.detach()
    x.untyped_storage().resize_(64)
    x[0] = 9
    return alias.tolist(), x.untyped_storage().nbytes()


def set_to_storages(t):
    memory = t.arange(12.0).untyped_storage()
    x = t.empty(0)
    found = [x.set_(memory, 2, (2, 3), (3, 1)).tolist(), x.set_(memory, 2, (2, 3)).tolist(),
             x.set_(memory, 1, (3,), (2,)).tolist(), x.storage_offset(), x.stride(),
             x.set_(memory).tolist(), x.set_(source=memory, storage_offset=1, size=(2,)).tolist()]
    x.fill_(-1)
    found.append(t.empty(0).set_(memory).tolist())
    return *found, x.set_().tolist(), x.untyped_storage().nbytes()


def set_to_tensors(t):
    y, x = numbers(t), t.ones(3)
    row = x[1:]
    assert x.set_(y) is x and x.is_set_to(y)
    found = x.tolist(), row.tolist(), row.set_(y, 3, (2,)).tolist()
    row.mul_(10)
    weight = t.ones(2, requires_grad=True)
    with t.no_grad():
        weight.set_(y, 0, (4,))
    return *found, y.tolist(), weight.tolist(), weight.requires_grad


def set_makes_room(t):
    memory = t.arange(3.0).untyped_storage()
    return t.empty(0).set_(memory, 1, (2, 3)).tolist()[0][:2], memory.nbytes()


def typed(t):
    x = numbers(t)
    s = x.storage()
    s[0], s[-1] = 5, 7.5
    s[1:3] = 9
    named = s.dtype is t.float32, s.pickle_storage_type(), x.storage_type() is t.FloatStorage
    kinds = [isinstance(s, k) for k in (t.FloatStorage, t.DoubleStorage, t.TypedStorage)]
    return (x.tolist(), s.tolist(), list(s), s[2], s.size(), len(s), s.nbytes(), s.element_size(),
            s.data_ptr() == x.data_ptr(), named, kinds, s.untyped() is x.untyped_storage(),
            s.double().tolist(), s.long().tolist(), s.bool().tolist(), s.clone().tolist(),
            t.is_storage(s), s.is_cuda, s.fill_(2).tolist(),
            s.copy_(t.arange(6.0).storage()).tolist(), x.tolist(), s.resize_(8), s.nbytes())


def typed_of_python(t):
    return (t.FloatStorage([1, 2.5]).tolist(), t.LongStorage([1, 2]).tolist(),
            t.FloatStorage(4).nbytes(), t.FloatStorage().size(),
            t.TypedStorage([1, 2], dtype=t.int64).tolist(), t.TypedStorage(4).dtype is t.float32,
            t.TypedStorage(wrap_storage=numbers(t).untyped_storage(), dtype=t.int32).tolist())


def typed_of_each_dtype(t):
    kinds = (t.bool, t.uint8, t.int16, t.int64, t.float16, t.bfloat16, t.float64, t.complex64)
    return [(t.ones(2, dtype=k).storage().tolist(), t.zeros(1, dtype=k).storage_type().__name__)
            for k in kinds]


def tensors_of_storages(t):
    x = numbers(t)
    y = t.FloatTensor(x.storage())
    y[0] = 8
    z = t.Tensor(x.untyped_storage())
    batch = t.ones(2).new(t.ones(2).storage()._new_shared(6)).resize_(2, 3)
    return x.tolist(), z.tolist(), x.new(x.storage()).tolist(), tuple(batch.shape)


def in_shared_memory(t):
    large = t.zeros(1 << 18) + 1
    return (large.is_shared(), large.untyped_storage().clone().is_shared(),
            t.zeros(2).storage()._new_shared(4).is_shared(), t.ones(2).share_memory_().is_shared())


def resizable(t):
    x, array = numbers(t), np.arange(3.0)
    before = x.untyped_storage().resizable()
    x.numpy()
    return before, x.untyped_storage().resizable(), t.from_numpy(array).storage().resizable()


def tensors_that_share_memory_grow(t):
    x = numbers(t)
    y = x.detach()
    x.resize_(4, 4)[0, 0] = 3
    return y.tolist(), y.untyped_storage() is x.untyped_storage(), x[1].tolist()[:2]


def as_text(t):
    return [str(s).replace("torch", "tracejit")
            for s in (bytes_of(t), numbers(t).storage(), t.UntypedStorage())]


PROGRAMS = [
    identity, measures, written, copies, of_python, copied_by_python, released_and_filled_again,
    larger, set_to_storages, set_to_tensors, set_makes_room, typed, typed_of_python,
    typed_of_each_dtype, tensors_of_storages, in_shared_memory, resizable,
    tensors_that_share_memory_grow, as_text,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program):
    assert program(tracejit) == program(torch)


ERRORS = {
    "index": lambda t: bytes_of(t)[24],
    "negative index": lambda t: bytes_of(t)[-25],
    "index of a text": lambda t: bytes_of(t)["a"],
    "index of a float": lambda t: bytes_of(t)[1.5],
    "step": lambda t: bytes_of(t)[::2],
    "float written": lambda t: bytes_of(t).__setitem__(0, 1.5),
    "copy of fewer bytes": lambda t: bytes_of(t).copy_(t.zeros(3).untyped_storage()),
    "copy of a tensor": lambda t: bytes_of(t).copy_(t.zeros(6)),
    "negative size": lambda t: bytes_of(t).resize_(-1),
    "size that is a text": lambda t: bytes_of(t).resize_("a"),
    "size that is a float": lambda t: bytes_of(t).resize_(4.0),
    "array of NumPy's resized": lambda t: t.from_numpy(np.ones(3)).untyped_storage().resize_(0),
    "shown to NumPy": lambda t: [x := numbers(t), x.numpy(), x.untyped_storage().resize_(0)],
    "grown, but shown to NumPy": lambda t: [x := numbers(t), x.numpy(), x.resize_(9)],
    "tensor as bytes": lambda t: t.UntypedStorage(t.ones(2)),
    "text as bytes": lambda t: t.UntypedStorage("a"),
    "floats as bytes": lambda t: t.UntypedStorage([1.5]),
    "two sizes": lambda t: t.UntypedStorage(5, 6),
    "negative bytes": lambda t: t.UntypedStorage(-1),
    "negative stride": lambda t: t.empty(0).set_(bytes_of(t), 0, (2, 3), (3, -1)),
    "negative offset": lambda t: t.empty(0).set_(bytes_of(t), -1, (2, 3)),
    "other rank": lambda t: t.empty(0).set_(bytes_of(t), 0, (2, 3), (1,)),
    "offset alone": lambda t: t.empty(0).set_(bytes_of(t), 1),
    "set to an int": lambda t: t.empty(0).set_(5),
    "other dtype": lambda t: t.empty(0).set_(t.arange(3)),
    "typed storage of another dtype": lambda t: t.empty(0).set_(t.arange(3).storage()),
    "leaf set": lambda t: t.ones(3, requires_grad=True).set_(bytes_of(t)),
    "leaf set to a tensor": lambda t: t.ones(3, requires_grad=True).set_(numbers(t)),
    "slice of numbers": lambda t: numbers(t).storage()[1:3],
    "index of numbers": lambda t: numbers(t).storage()[6],
    "storage of a tensor": lambda t: t.FloatStorage(t.ones(2)),
    "storage of a text": lambda t: t.FloatStorage("ab"),
    "list of a released one": lambda t: [x := numbers(t), x.untyped_storage().resize_(0),
                                         x.tolist()],
    "part of a released one": lambda t: [x := numbers(t), x.untyped_storage().resize_(0), x[0]],
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_as_in_torch(case):
    with pytest.raises(Exception) as theirs:
        ERRORS[case](torch)
    with pytest.raises(theirs.type):
        ERRORS[case](tracejit)


def test_typed_storages_warn_once():
    from tracejit.core.eager import typed_storage

    typed_storage._told.clear()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        tracejit.ones(1).storage()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tracejit.ones(1).storage()


def test_pickles():
    memory = bytes_of(tracejit)
    assert pickle.loads(pickle.dumps(memory)).tolist() == memory.tolist()
    x, own = copy.deepcopy([x := numbers(tracejit), x.untyped_storage()])
    assert x.untyped_storage() is own
