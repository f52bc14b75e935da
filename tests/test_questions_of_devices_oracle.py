"""What programs ask of CUDA devices has PyTorch's answers where there is no device."""

import warnings
from types import SimpleNamespace

import pytest

import tracejit
from tracejit import cuda
from tracejit.cuda import memory

CALLS = """
c.is_initialized()
c.max_memory_allocated(), c.memory_allocated('cuda:3'), c.max_memory_allocated('cpu')
c.max_memory_reserved(), c.memory_reserved(), c.memory.memory_reserved(0)
c.memory_cached(), c.max_memory_cached()
c.memory_stats(), c.memory_stats('cpu')
c.empty_cache(), c.memory.empty_cache()
c.get_rng_state()
c.get_rng_state_all(), c.random.get_rng_state_all()
c.set_rng_state_all([]), c.set_rng_state(t.get_rng_state())
c.set_rng_state_all(c.get_rng_state_all())
c.seed(), c.seed_all()
c.initial_seed()
c.mem_get_info()
c.mem_get_info('cpu')
c.get_device_properties()
c.get_device_properties(0)
c.get_device_capability()
c.get_device_name()
c.init()
c.synchronize()
c.current_device()
c.get_arch_list()
c.is_tf32_supported()
c.device_of(t.ones(1)).__enter__()
c.OutOfMemoryError is t.OutOfMemoryError, c.OutOfMemoryError.__mro__
t.GradScaler is t.amp.GradScaler
t.ones(1).cuda()
t.xpu.is_available(), t.xpu.device_count(), t.xpu.is_initialized(), t.xpu.empty_cache()
t.xpu.manual_seed(3), t.xpu.manual_seed_all(3)
t._assert_async(t.tensor(True)), t._assert_async(t.ones(1, 1)), t._assert_async(t.tensor(3), 'no')
t._assert_async(t.tensor(False))
type(t.backends.cpu.get_cpu_capability())
t._assert_async(t.tensor(0.0), 'told')
t.get_device_module() is t.cpu, t.get_device_module('cpu') is t.cpu
t.get_device_module('cuda:1') is t.cuda, t.get_device_module(t.device('cuda')) is t.cuda
t.get_device_module(1)
""".strip().splitlines()


def shown(library, call):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = repr(eval(call, {"t": library, "c": library.cuda}))
        except AssertionError:
            found = "AssertionError"
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    return found.replace("tracejit", "torch"), [str(w.message) for w in told]


@pytest.mark.oracle
@pytest.mark.skipif(cuda.is_available(), reason="there is a device")
@pytest.mark.parametrize("call", CALLS)
def test_without_a_device_the_answers_are_pytorch_s(call):
    torch = pytest.importorskip("torch")
    assert shown(tracejit, call) == shown(torch, call)


@pytest.mark.skipif(cuda.is_available(), reason="there is a device")
def test_the_random_state_stays_as_it_is_without_a_device():
    before = tracejit.get_rng_state()
    cuda.seed()
    cuda.set_rng_state(tracejit.Generator().manual_seed(7).get_state())
    assert tracejit.equal(tracejit.get_rng_state(), before)
    with pytest.raises(tracejit.DeviceUnavailable):
        cuda.reset_peak_memory_stats()


class Device:
    def __init__(self, pool):
        self.pool = pool
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 1, getDevice=lambda: 0, setDevice=lambda number: None,
                memGetInfo=lambda: (50, 200),
                getDeviceProperties=lambda number: {
                    "name": b"stand-in", "major": 9, "minor": 0, "totalGlobalMem": 200,
                    "multiProcessorCount": 4},
            ),
            memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        )  # fmt: skip

    def get_default_memory_pool(self):
        return self.pool


class Pool:
    used, total = 10, 30

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.total

    def free_all_blocks(self):
        self.total = self.used


@pytest.fixture
def pool(monkeypatch):
    """A device of which only the pool and the driver's facts are there."""
    tracejit.script(lambda x: x + 1)(tracejit.ones(2))  # nothing imports the stand-in for good
    stand_in = Device(Pool())
    for module in (cuda, memory):
        monkeypatch.setattr(module, "array_module", lambda where: stand_in)
    monkeypatch.setattr("tracejit.core.memory.devices.array_module", lambda where: stand_in)
    monkeypatch.setattr(cuda, "device_count", lambda: 1)  # without CuPy there is none
    monkeypatch.setattr(memory, "_most", {})
    return stand_in.pool


@pytest.mark.filterwarnings("ignore")
def test_of_a_device_the_pool_and_the_driver_are_asked(pool):
    assert (cuda.memory_allocated(), cuda.memory_reserved(), cuda.mem_get_info()) == (
        10, 30, (50, 200))  # fmt: skip
    assert cuda.get_device_capability() == (9, 0) and cuda.get_arch_list() == ["sm_90"]
    assert cuda.get_device_name(0) == "stand-in"
    assert cuda.get_device_properties(0).total_memory == 200
    cuda.empty_cache()
    assert (cuda.memory_reserved(), cuda.max_memory_reserved()) == (10, 30)
    assert cuda.memory_stats()["reserved_bytes.all.peak"] == 30
    cuda.reset_peak_memory_stats()
    assert (cuda.max_memory_reserved(), cuda.max_memory_allocated()) == (10, 10)
    pool.total = 40
    assert cuda.max_memory_cached() == 40
    pool.total = 20
    cuda.reset_max_memory_allocated()
    assert cuda.max_memory_reserved() == 20


def test_random_states_of_devices_are_the_one_there_is(pool):
    cuda.manual_seed(3)
    states = cuda.get_rng_state_all()
    drawn = tracejit.rand(2)
    cuda.set_rng_state_all(states)
    assert len(states) == 1 and tracejit.equal(tracejit.rand(2), drawn)
    assert cuda.initial_seed() == 3
    cuda.seed()
    assert tracejit.initial_seed() != 3


def test_how_much_memory_is_used_is_asked_at_each_call(pool):
    @tracejit.script
    def doubled(x):
        return x * 2, cuda.memory_allocated()

    for pool.used in (10, 20, 30):
        assert doubled(tracejit.ones(1))[1] == pool.used
