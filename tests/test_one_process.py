"""What programs import and ask before they use several processes, profilers or other runtimes."""

import importlib
import io

import pytest

import tracejit
from tracejit import distributed, nn, profiler

IMPORTED = """
autograd.function autograd.profiler autograd.variable backends.cudnn backends.cuda backends.mps
compiler distributed functional multiprocessing nn.parallel onnx profiler utils.data.distributed
""".split()


@pytest.mark.parametrize("name", IMPORTED)
def test_it_can_be_imported(name):
    module = importlib.import_module(f"tracejit.{name}")
    found = tracejit
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module


def test_a_group_is_needed():
    assert not distributed.is_initialized()
    for make in (tracejit.Stream, tracejit.Event):
        with pytest.raises(RuntimeError, match="in one stream"):
            make("cpu")
    for call in (
        distributed.get_rank, distributed.get_world_size, distributed.barrier,
        lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()


def test_one_device_runs_the_whole_batch():
    module, x = nn.Linear(2, 1), tracejit.ones(3, 2)
    assert nn.parallel.data_parallel(module, x).tolist() == module(x).tolist()
    assert nn.DataParallel(module)(x).tolist() == module(x).tolist()


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="not written as ONNX"):
        tracejit.onnx.export(nn.Linear(1, 1), tracejit.ones(1), "model.onnx")
    with pytest.raises(NotImplementedError, match="nothing is recorded"):
        profiler.profile(activities=[profiler.ProfilerActivity.CPU])
    with profiler.profile(enabled=False):
        pass


def test_marks_do_not_show_in_captured_functions():
    compiler = tracejit.compiler

    @compiler.disable
    def doubled(x):
        return x * 2

    @tracejit.script
    def f(x):
        with profiler.record_function("forward"):
            y = doubled(x)
        return y + compiler.is_compiling()

    for n in (1, 2, 3):
        assert f(tracejit.ones(n)).tolist() == [3.0] * n  # it is captured, and says so
    assert not f.report().breaks


def test_parts_of_a_dataset():
    sampler = tracejit.utils.data.DistributedSampler
    for drop_last, count in ((False, 12), (True, 8)):
        parts = [sampler(range(10), 4, rank, drop_last=drop_last) for rank in range(4)]
        drawn = [list(part) for part in parts]
        assert [len(part) for part in parts] == list(map(len, drawn)) == [count // 4] * 4
        assert len(set(sum(drawn, []))) == min(count, 10)
        before = list(parts[0])
        parts[0].set_epoch(1)
        assert list(parts[0]) != before
    assert list(sampler(range(3), 8, 7, shuffle=False)) == [1]
    with pytest.raises(ValueError, match=r"Invalid rank 2, rank should be in .* \[0, 1\]"):
        sampler(range(3), 2, 2)


def test_compiled_modules_are_saved_as_plain_ones():
    inside, outside = nn.Sequential(nn.Linear(2, 1)), nn.Sequential(nn.Linear(2, 1))
    inside.compile(mode="graph")
    x = tracejit.ones(3, 2)
    for module in (inside, tracejit.script(outside, mode="graph")):
        expected, file = module(x).tolist(), io.BytesIO()
        tracejit.save(module, file)
        with tracejit.serialization.safe_globals([nn.Sequential, nn.Linear]):
            found = tracejit.load(io.BytesIO(file.getvalue()), weights_only=False)
        assert type(found) is nn.Sequential and found(x).tolist() == expected
