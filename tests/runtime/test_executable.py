"""Programs run right: natively and as Python, at every size, with any number of threads."""

import threading

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.programs import (
    ADD,
    ADD_ONE,
    ADD_ONE_IN_PLACE,
    GELU,
    ROW_SUM,
    TAKE,
    buffer,
    chain,
    matmul,
    run,
    single,
)
from tracejit import config
from tracejit.core import memory
from tracejit.core.ops import types
from tracejit.jit.ir.graph import Graph, Location
from tracejit.jit.ir.sizes import ShapeEnv
from tracejit.jit.lowering.program import Instruction, Program
from tracejit.jit.runtime import frames, runner
from tracejit.jit.runtime.executable import Executable, ProgramError

MODES = ["compiled", "python"]


def gelu(x):
    x = x.astype(np.float64)
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@pytest.fixture
def threads():
    yield memory.set_num_threads
    memory.set_num_threads(None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_elementwise(mode, n):
    x = np.linspace(-3, 3, n, dtype=np.float32)
    executable = Executable(chain([GELU], n, chunk=16), mode)
    out = run(executable, executable.bind({}), x)
    np.testing.assert_allclose(out[:n], gelu(x), rtol=2e-6, atol=1e-7)


def test_one_program_serves_every_size():
    n = ShapeEnv().symbol(4, "s0")
    executable = Executable(chain([ADD_ONE, ADD_ONE], n))
    for size in (0, 1, 5, 4097, 100_000):
        x = np.arange(size, dtype=np.float32)
        assert (run(executable, executable.bind({"s0": size}), x, shape=(size,)) == x + 2).all()
    with pytest.raises(KeyError):
        executable.bind({})


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_scratch(mode):
    rows, columns = 7, 19
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    program = single(ROW_SUM, [rows * columns, rows], 1, (columns,), rows, 2)
    executable = Executable(program, mode)
    out = run(executable, executable.bind({}), x)
    np.testing.assert_allclose(out, x.sum(1, dtype=np.float64), rtol=1e-5, atol=1e-6)


def big_program(n=1 << 18):
    program = chain([GELU, ADD_ONE, GELU, ADD_ONE], n, chunk=1 << 13)
    program.buffers += [buffer(512, "output", 1)]
    program.kernels[ROW_SUM.digest] = ROW_SUM
    program.instructions.append(Instruction(ROW_SUM, (4, 5), 1, (n // 512,), 512, 32))
    program.outputs.append(5)
    return program


def test_threads_do_not_change_bits(threads):
    x = np.random.default_rng(1).standard_normal(1 << 18, dtype=np.float32)
    executable = Executable(big_program())
    found = []
    for count in (1, 2, 3, 5):
        threads(count)
        binding = executable.bind({})
        assert binding.shared
        for _ in range(20):
            storages = executable.run(binding, [x.ctypes.data])
            found.append([s.block[: s.nbytes].tobytes() for s in storages])
    assert len(executable.runner.workers) >= 4
    assert all(each == found[0] for each in found)
    np.testing.assert_allclose(
        np.frombuffer(found[0][1], np.float32)[:3],
        (gelu(gelu(x) + 1) + 1).reshape(512, -1).sum(1)[:3], rtol=1e-4,
    )  # fmt: skip


def test_many_python_threads_share_one_binding(threads):
    threads(2)
    executable = Executable(big_program())
    binding = executable.bind({})
    inputs = [np.full(1 << 18, seed, np.float32) for seed in range(4)]
    want = [run(executable, binding, x).copy() for x in inputs]
    wrong = []

    def work(seed):
        for _ in range(25):
            if not (run(executable, binding, inputs[seed]) == want[seed]).all():
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong
    assert len({float(w[0]) for w in want}) == 4


@pytest.mark.parametrize("mode", MODES)
def test_temporaries_share_memory_when_their_lives_do_not_meet(mode):
    n = 1000
    executable = Executable(chain([ADD_ONE] * 9, n), mode)
    binding = executable.bind({})
    assert binding.arena_bytes == 2 * 4032, "a chain of any length needs two"
    assert binding.peak_bytes == binding.arena_bytes + 4 * n
    assert (run(executable, binding, np.zeros(n, np.float32)) == 9).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_value_that_is_read_late_keeps_its_place(mode):
    n = 64
    program = chain([ADD_ONE] * 5, n)
    program.kernels[ADD.digest] = ADD
    program.buffers.append(buffer(n, "output", 1))
    program.instructions.append(Instruction(ADD, (1, 5, 6), 1, (n,), n, n))
    program.outputs = [6]
    program.buffers[5].role = "temporary"
    executable = Executable(program, mode)
    out = run(executable, executable.bind({}), np.zeros(n, np.float32))
    assert (out == 1 + 5).all()


@pytest.mark.parametrize("mode", MODES)
def test_in_place_and_returned_inputs(mode):
    n = 50
    program = Program(Graph(), {ADD_ONE_IN_PLACE.digest: ADD_ONE_IN_PLACE})
    program.buffers = [buffer(n, "input", 0), buffer(n, "output", 1)]
    program.kernels[ADD_ONE.digest] = ADD_ONE
    program.instructions = [
        Instruction(ADD_ONE_IN_PLACE, (0,), 1, (n,), n, n),
        Instruction(ADD_ONE, (0, 1), 1, (n,), n, n),
    ]
    program.inputs, program.outputs = [0], [0, 1, 1]
    executable = Executable(program, mode)
    x = np.zeros(n, np.float32)
    first, second, third = executable.run(executable.bind({}), [x.ctypes.data])
    assert first is None and second is third
    assert (x == 1).all()
    assert (np.ndarray((n,), np.float32, buffer=second.block) == 2).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_check_names_value_and_line(mode):
    dtypes = [types.float32, types.int64, types.float32]
    program = single(TAKE, [4, 3, 3], 1, (4,), 3, 3, dtypes)
    program.instructions[0].locations = (Location("model.py", 12, "y = x[i]\n"),)
    executable = Executable(program, mode)
    binding = executable.bind({})
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(ProgramError, match=r"range for 4 rows, got 9 \(model.py:12: y = x\[i\]\)"):
        run(executable, binding, x, np.array([0, 9, 1]))
    assert (run(executable, binding, x, np.array([3, 0, 1])) == [3, 0, 1]).all(), "status is clean"


def test_a_failure_stops_a_shared_program(threads):
    threads(2)
    n = 1 << 17
    dtypes = [types.float32, types.int64, types.float32]
    program = single(TAKE, [4, n, n], 1, (4,), n, 1 << 10, dtypes)
    program.buffers.append(buffer(n, "output", 1))
    program.kernels[ADD_ONE.digest] = ADD_ONE
    program.instructions.append(Instruction(ADD_ONE, (2, 3), 1, (n,), n, 1 << 10))
    program.outputs = [2, 3]
    executable = Executable(program)
    binding = executable.bind({})
    assert binding.shared
    x, bad = np.arange(4, dtype=np.float32), np.zeros(n, np.int64)
    bad[n // 2] = -5
    for _ in range(30):
        with pytest.raises(ProgramError, match="got -5") as caught:
            run(executable, binding, x, bad)
        assert caught.value.value == -5
        good = run(executable, binding, x, np.ones(n, np.int64), output=1)
        assert (good == 2).all()


MATRICES = [
    (4, 5, 6, 1), (1, 7, 5, 1), (7, 1, 5, 1), (1, 1, 1, 1), (3, 4, 0, 1), (0, 4, 3, 1),
    (4, 0, 3, 1),
    (3, 4, 5, 6), (3, 4, 0, 2), (3, 4, 5, 0), (300, 64, 256, 1), (40, 1030, 256, 1),
    (512, 384, 256, 1), (96, 64, 64, 40),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [types.float32, types.float64])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "batch"), MATRICES)
def test_products(mode, dtype, trans_a, trans_b, m, n, k, batch, threads):
    threads(2)
    generator = np.random.default_rng(2)
    a = generator.standard_normal((batch, k, m) if trans_a else (batch, m, k)).astype(dtype.numpy)
    b = generator.standard_normal((batch, n, k) if trans_b else (batch, k, n)).astype(dtype.numpy)
    executable = Executable(matmul(trans_a, trans_b, m, n, k, batch, dtype), mode)
    memory.empty_cache()
    dirty = memory.allocate(batch * m * n * dtype.itemsize)
    dirty.block[:] = 255  # the output starts as NaN
    del dirty
    out = run(executable, executable.bind({}), a, b, dtype=dtype.numpy, shape=(batch, m, n))
    want = (a.swapaxes(1, 2) if trans_a else a).astype(np.float64) @ (
        b.swapaxes(1, 2) if trans_b else b
    )
    tolerance = 1e-4 if dtype is types.float32 else 1e-11
    np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)


def test_products_have_the_same_bits_on_any_number_of_threads(threads):
    a = np.random.default_rng(3).standard_normal((512, 256), dtype=np.float32)
    b = np.random.default_rng(4).standard_normal((256, 384), dtype=np.float32)
    executable = Executable(matmul(False, False, 512, 384, 256))
    found = []
    for count in (1, 2, 4):
        threads(count)
        binding = executable.bind({})
        assert binding.steps[0].chunk < 512, "split in chunks"
        found += [run(executable, binding, a, b).tobytes() for _ in range(5)]
    assert len(set(found)) == 1


def test_other_modes_are_refused():
    with pytest.raises(ValueError, match="eager"):
        Executable(chain([ADD_ONE], 4), "eager")


def test_outputs_are_fresh_and_recycled():
    executable = Executable(chain([ADD_ONE], 1000))
    binding, x = executable.bind({}), np.zeros(1000, np.float32)
    memory.empty_cache()
    first = run(executable, binding, x)
    second = run(executable, binding, x + 1)
    assert (first == 1).all() and (second == 2).all()
    address = second.ctypes.data
    del second
    # Its view died after its Storage: such a block is dropped, and the next run takes another.
    storage = executable.run(binding, [x.ctypes.data])[0]
    ptr = storage.ptr
    del storage
    assert executable.run(binding, [x.ctypes.data])[0].ptr == ptr
    assert address is not None


@pytest.mark.parametrize(("n", "shared", "wakes"), [
    (1 << 12, False, False), (1 << 17, True, False), (1 << 20, True, True),
])  # fmt: skip
def test_workers_are_woken_only_for_work_that_is_worth_it(n, shared, wakes):
    binding = Executable(chain([ADD_ONE], n)).bind({})
    assert (binding.shared, binding.wakes) == (shared, wakes)


def test_calls_on_the_short_path_use_the_threads_allowed_now(threads):
    """The frames of shared programs hold a number of threads, which follows every change."""
    f = tj.script(lambda x: (x * 2 + 1).sum(1))
    x = tj.rand(600, 600)
    expected = (x * 2 + 1).sum(1).numpy()

    def helpers():
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-5)
        return {frame._job_words[0][runner.HELPERS] for frame in frames._sharing
                if frame.native.binding.output_bytes == [2400]}  # fmt: skip

    threads(2)
    for _ in range(3):
        assert helpers() == {1}
    threads(1)
    assert helpers() == {0}
    threads(3)
    assert helpers() == {2}
    threads(None)
    with config.override(num_threads=1):
        assert helpers() == {0}
    assert helpers() == {tj.get_num_threads() - 1}
