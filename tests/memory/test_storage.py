"""Storages: recycled only when nothing else refers to the block; over arrays without a copy."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.capture.test_interrupts import Interrupt
from tracejit.core import memory
from tracejit.core.memory import allocator
from tracejit.core.memory.allocator import size_class

SIZE = 3000


def view(storage, dtype=np.float32):
    return np.ndarray((SIZE // 4,), dtype, buffer=storage.block)


def recycled(keep) -> bool:
    """Whether a dead Storage's block is handed out again, while `keep(storage)` is held."""
    memory.empty_cache()
    storage = memory.allocate(SIZE)
    block = id(storage.block)
    held = keep(storage)
    del storage
    fresh = memory.allocate(SIZE)
    answer = id(fresh.block) == block
    del held
    return answer


def test_a_dead_block_is_used_again():
    assert recycled(lambda s: None)


@pytest.mark.parametrize(
    "keep",
    [
        view,
        lambda s: view(s)[1:][::2],
        lambda s: view(s).reshape(-1, 2).T[0:1],
        lambda s: memoryview(view(s)),
        lambda s: memoryview(s.block)[4:8],
        lambda s: np.from_dlpack(view(s)),
        lambda s: view(s).__dlpack__(),
        lambda s: np.frombuffer(s.block, np.uint8, count=2),
        lambda s: np.asarray(memoryview(view(s)))[2:3],
        lambda s: view(s).view(np.int32),
        lambda s: s.block,
        lambda s: iter(view(s)),
        lambda s: view(s).flat,
    ],
)
def test_a_block_with_a_view_is_never_used_again(keep):
    assert not recycled(keep)


def test_after_the_view_the_block_is_dropped_not_pooled():
    memory.empty_cache()
    storage = memory.allocate(SIZE)
    held = view(storage)
    del storage
    del held
    assert memory.stats().reserved == memory.stats().allocated


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1000, 1024, 1025, 1 << 18, (1 << 22) + 5])
def test_blocks_are_aligned_and_large_enough(nbytes):
    storage = memory.allocate(nbytes)
    assert storage.ptr % 64 == 0
    assert storage.nbytes == nbytes
    assert storage.block.nbytes >= nbytes
    assert storage.ptr == storage.block.ctypes.data
    storage.block[:] = 7
    assert int(storage.block.astype(np.int64).sum()) == 7 * storage.block.nbytes


@pytest.mark.parametrize("nbytes", [*range(0, 5000, 37), 10**6, 10**9 + 1])
def test_size_classes_waste_at_most_an_eighth(nbytes):
    size = size_class(nbytes)
    assert nbytes <= size <= max(nbytes * 1.125, nbytes + 63, 64)
    assert size % 64 == 0


def test_negative_sizes_are_refused():
    with pytest.raises(ValueError, match="-1"):
        memory.allocate(-1)


def test_too_much_memory_is_a_memory_error():
    with pytest.raises(MemoryError, match="you tried to allocate"):
        memory.allocate(1 << 60)


def test_statistics():
    memory.empty_cache()
    memory.reset_peak()
    before = memory.stats()
    storage = memory.allocate(1 << 20)
    during = memory.stats()
    assert during.allocated == before.allocated + (1 << 20)
    assert during.peak == before.peak + (1 << 20)
    del storage
    after = memory.stats()
    assert after.allocated == before.allocated
    assert after.reserved == before.allocated + (1 << 20)
    memory.empty_cache()
    assert memory.stats().reserved == memory.stats().allocated


def test_the_pool_is_bounded_and_drops_what_was_unused_longest():
    memory.empty_cache()
    limit = memory.allocator._counts.limit
    memory.set_cache_limit(10 << 20)
    try:
        for size in (1 << 20, 2 << 20, 3 << 20, 4 << 20, 5 << 20):
            memory.allocate(size)
            assert memory.stats().reserved - memory.stats().allocated <= 10 << 20
        free = {b.size for b in memory.allocator._buckets.values() if b.free}
        assert 5 << 20 in free and 1 << 20 not in free
    finally:
        memory.set_cache_limit(limit)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in `__del__`
def test_ctrl_c_leaves_what_waits_in_the_pool_counted_right():
    sent, n = True, 0
    while sent:
        with Interrupt(n, "allocator.py") as interrupt:
            try:
                memory.allocate(96), memory.allocate(96)
                memory.empty_cache()
                memory.allocate(1 << 19)
            except KeyboardInterrupt:
                pass
        sent, n = interrupt.sent, n + 1
        waiting = sum(len(b.free) * b.size for b in allocator._buckets.values())
        found = memory.stats()
        assert found.reserved - found.allocated == waiting, n
    assert n > 20


def test_threads_and_collector_do_not_corrupt_the_pool():
    gc.collect()
    memory.empty_cache()
    live = memory.stats().allocated
    failures = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(2000):
            cycle = [memory.allocate(int(generator.integers(1, 4000)))]
            mark = cycle[0].ptr & 0xFF
            cycle[0].block[:] = mark
            cycle.append(cycle)  # freed by the collector, in whichever thread it runs
            if not (cycle[0].block == mark).all():
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    gc.collect()
    assert not failures
    assert memory.stats().allocated == live
    memory.empty_cache()
    assert memory.stats().reserved == live


def test_storages_alive_at_exit_say_nothing():
    code = (
        "from tracejit.core import memory\nimport builtins\n"
        "builtins.kept = [memory.allocate(10 ** k) for k in range(8)]\n"
        "cycle = [memory.allocate(8)]; cycle.append(cycle)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


ARRAY = np.arange(24, dtype=np.float64).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [
        ARRAY, ARRAY.T, ARRAY[:, ::-1], ARRAY[::-1, :, ::-2], ARRAY[1, 1, 1:2], ARRAY[:0],
        ARRAY[:, :0, 1], np.broadcast_to(ARRAY[0, 0], (5, 4)), np.asfortranarray(ARRAY),
        np.array(3.5, np.float16), np.array([True, False]),
    ],
)  # fmt: skip
def test_a_storage_over_an_array(array):
    storage = memory.storage_of_array(array)
    offset = memory.address(array) - storage.ptr
    again = np.ndarray(array.shape, array.dtype, storage.block, offset, array.strides) \
        if array.size else array
    assert np.array_equal(again, array)
    assert array.size == 0 or np.shares_memory(again, array)
    assert storage.readonly is not array.flags.writeable
    low, high = np.lib.array_utils.byte_bounds(array)
    assert array.size == 0 or storage.nbytes == high - low


def test_a_storage_keeps_its_array_and_writes_through():
    array = np.zeros((4, 6), np.float32)
    storage = memory.storage_of_array(array[:, ::2])
    references = sys.getrefcount(array)
    storage.block.view(np.float32)[0] = 5
    assert array[0, 0] == 5
    del storage
    assert sys.getrefcount(array) == references - 1


def test_versions_and_devices():
    storage = memory.allocate(8)
    assert storage.version == 0
    assert storage.device == memory.device("cpu")
