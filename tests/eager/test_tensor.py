"""What a tensor is and says, conversions in and out, against torch and NumPy."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import tracejit
from tests.eager.programs import check
from tracejit.core.ops.cotangents import type_of
from tracejit.core.ops.record import REGISTRY, Op

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def errors_of(*actions):
    found = []
    for action in actions:
        try:
            found.append(action())
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


@program
def data_and_dtypes(m):
    return [
        m.tensor(d)
        for d in (
            1,
            1.5,
            True,
            [1, 2],
            [1, 2.5],
            [True, False],
            [True, 2],
            [[1.0], [2.0]],
            [],
            [[]],
            [[], []],
            np.float32(1),
            np.float64(1),
            np.int32(1),
            [np.float64(1)],
            np.arange(3),
            np.ones((2, 2)),
            np.ones(2, np.float16),
            [np.ones(2), np.zeros(2)],
            (1, 2),
            range(0),
            2**40,
            -1,
            [1j, 2],
            np.arange(6).reshape(2, 3).T,
            [m.tensor(1.0), m.tensor(2.0)],
            [m.tensor(1), 2],
        )
    ]


@program
def asked_dtype(m):
    return (
        [m.tensor([1.7, -1.7], dtype=d) for d in (m.int32, m.float64, m.bool, m.float16)],
        m.tensor(3, dtype=m.float32),
        m.tensor(np.ones(2), dtype=m.int64),
    )


@program
def bad_data(m):
    return [
        e[0]
        for e in errors_of(
            lambda: m.tensor([[1, 2], [3]]),
            lambda: m.tensor("a"),
            lambda: m.tensor([None]),
            lambda: m.tensor(np.array(["a"])),
            lambda: m.from_numpy([1]),
            lambda: m.tensor([1, [2]]),
            lambda: m.from_numpy(np.arange(3)[::-1]),
        )
    ]


@program
def ragged(m):
    return errors_of(lambda: m.tensor([[1, 2], [3]]), lambda: m.tensor([[[1], [2]], [[3], [4, 5]]]))


@program
def copies_and_sharing(m):
    a = np.arange(4.0)
    made = [
        m.tensor(a),
        m.as_tensor(a),
        m.from_numpy(a),
        m.asarray(a),
        m.from_numpy(a[::2]),
        m.as_tensor(a, dtype=m.float32),
        m.from_numpy(a.reshape(2, 2).T),
    ]
    a[0] = 9
    return made


@program
def metadata(m):
    x = m.zeros(2, 3)
    return (
        list(x.shape),
        list(x.size()),
        x.size(1),
        x.size(-1),
        x.dim(),
        x.ndim,
        x.numel(),
        x.nelement(),
        x.element_size(),
        x.itemsize,
        x.nbytes,
        x.stride(),
        x.stride(0),
        x.storage_offset(),
        x.is_contiguous(),
        x.is_floating_point(),
        x.is_complex(),
        x.is_cuda,
        str(x.layout),
        str(x.device),
        len(x),
        x.type(),
        x.is_leaf,
        x.output_nr,
        x._version,
        x.get_device(),
        x.shape.numel(),
        x.shape[1:] == (3,),
        x.shape == (2, 3),
        repr(x.shape + (1,)),
        x.long().type(),
    )


@program
def scalars(m):
    x = m.tensor([2.5])
    return (
        x.item(),
        float(x),
        int(x),
        bool(x),
        complex(x),
        m.tensor(3).item(),
        m.tensor(True).item(),
        int(m.tensor(7)),
        [10, 20, 30][m.tensor(1)],
        x.tolist(),
        m.ones(2, 2).tolist(),
        m.tensor(1.5).tolist(),
        m.tensor([1.5], dtype=m.bfloat16).item(),
        round(m.tensor(2.6).item()),
    )


@program
def not_scalars(m):
    return errors_of(
        lambda: m.ones(2).item(),
        lambda: bool(m.ones(2)),
        lambda: bool(m.ones(0)),
        lambda: len(m.tensor(1.0)),
        lambda: list(m.tensor(1.0)),
        lambda: [1][m.tensor(0.0)],
        lambda: [1][m.ones(2).long()],
        lambda: m.ones(1, requires_grad=True).numpy(),
        lambda: m.ones(2).size(5),
    )


@program
def iteration(m):
    x = m.arange(6).reshape(3, 2)
    return (
        list(x),
        [int(v) for row in x for v in row],
        3 in x,
        9 in x,
        [a.tolist() for a, b in zip(x, x)],
    )


@program
def conversions(m):
    x = m.tensor([1.5, -2.5])
    y = m.tensor([1], dtype=m.float64)
    return (
        x.to(m.float64),
        x.to("cpu"),
        x.to(m.device("cpu"), m.int32),
        x.to(y),
        x.to(x) is x,
        x.to(m.float32) is x,
        x.to(m.float32, copy=True) is x,
        x.to(dtype=m.float16),
        x.cpu() is x,
        x.type_as(y),
        x.type(m.float64),
        x.double(),
        x.int(),
        x.bool(),
        x.new_tensor([1, 2]),
    )


@program
def memory_is_shared_with_numpy(m):
    x = m.zeros(3)
    a = x.numpy()
    a[0] = 5
    x[1] = 6
    return x, a


@program
def legacy_constructor(m):
    return list(m.Tensor(2, 3).shape), m.Tensor([1, 2]), m.Tensor().shape == (0,)


@program
def attributes_and_hash(m):
    x = m.zeros(2)
    x.note = "mine"
    return x.note, x in {x: 1}, hash(x) == id(x), [x].index(x)


@program
def copies(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    x.note = [1]
    c, d = copy.copy(x), copy.deepcopy(x)
    d.data[0] = 9
    p = pickle.loads(pickle.dumps(x))
    return c, d, x, d.note == [1], d.note is x.note, c.data_ptr() == x.data_ptr(), p, p.note


@program
def copies_keep_sharing(m):
    base = m.zeros(4)
    pair = copy.deepcopy([base, base[1:3], base])
    pair[0][1] = 5
    return pair, pair[0] is pair[2]


@program
def pickles_keep_sharing(m):
    base = m.zeros(4)
    pair = pickle.loads(pickle.dumps([base, base[1:3], base.t() if False else base.view(2, 2).t()]))
    return pair, pair[2].stride()


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program):
    check(program)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int64", "uint8", "bool", "float16"]
)
def test_dlpack_both_ways(dtype):
    torch = pytest.importorskip("torch")
    x = tracejit.ones(3, dtype=getattr(tracejit, dtype))
    there = torch.from_dlpack(x)
    assert str(there.dtype) == f"torch.{dtype}"
    there[0] = 0
    assert x.tolist() == there.tolist()
    back = tracejit.from_dlpack(torch.arange(6).to(there.dtype).reshape(2, 3).t())
    assert (
        back.stride() == (1, 3)
        and back.tolist() == torch.arange(6).to(there.dtype).view(2, 3).t().tolist()
    )
    assert np.from_dlpack(x).dtype == x.dtype.numpy


def test_dlpack_refuses_what_requires_grad():
    with pytest.raises(BufferError, match="use tensor.detach"):
        tracejit.ones(1, requires_grad=True).__dlpack__()


def test_memory_lives_as_long_as_numpy_looks_at_it():
    x = tracejit.ones(1000)
    array, address = x[10:20].numpy(), x.data_ptr() + 40
    del x
    others = [tracejit.zeros(1000) for _ in range(50)]
    assert array.__array_interface__["data"][0] == address
    assert (array == 1).all() and len(others) == 50


def test_an_array_in_an_operator_becomes_a_tensor():
    a, x = np.array([1.0, 2.0], np.float32), tracejit.tensor([3.0, 4.0], requires_grad=True)
    results = [a * x, x * a, a + x, x - a, a / x, a @ x, x @ a, a > x, np.float64(2) * x, x**a]
    assert [r.tolist() for r in results[:4]] == [[3, 8], [3, 8], [4, 6], [2, 2]]
    assert all(type(r) is tracejit.Tensor for r in results)
    assert [r.requires_grad for r in results] == [True] * 7 + [False, True, True]
    assert (a * x).dtype is tracejit.float32
    a += x.detach()
    assert type(a) is np.ndarray and a.tolist() == [4, 6]


def test_numpy_makes_arrays_of_tensors():
    x = tracejit.tensor([0.0, 1.0])
    assert type(np.asarray(x)) is np.ndarray and np.array(x, np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.concatenate([x, x]), [0, 1, 0, 1])


def test_readonly_arrays():
    array = np.arange(3.0)
    array.setflags(write=False)
    with pytest.warns(UserWarning, match="not writable"):
        x = tracejit.from_numpy(array)
    with pytest.raises(ValueError, match="read-only"):
        x.add_(1)
    assert array.tolist() == [0, 1, 2] and x._version == 0


def test_bfloat16_through_numbers_and_pickles():
    x = tracejit.tensor([1.0, 2.5], dtype=tracejit.bfloat16)
    assert x.tolist() == [1.0, 2.5] and x[1].item() == 2.5
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_subclasses():
    class Mine(tracejit.Tensor):
        pass

    x = tracejit.Tensor._make_subclass(Mine, tracejit.ones(2), True)
    assert type(x) is Mine and x.requires_grad and x.is_leaf
    assert type(x * 2) is Mine and type(Mine([1.0])) is Mine
    assert type(copy.deepcopy(x)) is Mine
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_tensors_are_freed():
    x = tracejit.ones(3, requires_grad=True)
    y = (x * 2).exp()
    z = y[1:]
    z.mul_(2)
    dead = [weakref.ref(t) for t in (y, z, y.grad_fn)]
    gc.disable()
    try:
        del y, z
        assert [r() for r in dead] == [None] * 3  # no cycles
    finally:
        gc.enable()


def test_results_of_ops_never_share_memory_with_operands():
    """Unless the op is declared a view: whatever its NumPy form hands back."""
    forms = [lambda xp, a: a, lambda xp, a: a[:], lambda xp, a: a.T.T]
    for eager in forms:
        record = Op("handed_back", "movement", ("input",), infer=type_of, eager=eager)
        try:
            x = tracejit.zeros(2, 2)
            y = record(x)
            x.add_(1)
            assert y.sum().item() == 0
        finally:
            del REGISTRY["handed_back"]


def test_cuda_without_a_gpu_says_what_is_missing():
    try:
        import cupy

        pytest.skip(f"cupy {cupy.__version__} is installed")
    except ImportError:
        with pytest.raises(tracejit.DeviceUnavailable, match="pip install tracejit"):
            tracejit.ones(1).cuda()
