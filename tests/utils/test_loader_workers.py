"""Worker processes of the loader: order, seeds, errors, ends."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import tracejit
from tracejit.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)

ROOT = Path(__file__).resolve().parents[2]


class Numbers(Dataset):
    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return tracejit.tensor([index, 2 * index])


class Slow(Numbers):
    """Early samples take longest."""

    def __getitem__(self, index):
        time.sleep(0.05 * (self.count - index) if index < 3 else 0)
        return index


class Draws(Numbers):
    def __getitem__(self, index):
        info = get_worker_info()
        return (tracejit.rand(1).item(), random.random(), np.random.rand(),
                info.seed - info.id, info.id, tracejit.get_num_threads())


class Dying(Numbers):
    def __getitem__(self, index):
        if index == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Sleeping(Numbers):
    def __getitem__(self, index):
        time.sleep(20)


class Parts(IterableDataset):
    """Each worker has its part, of a length of its own."""

    def __iter__(self):
        info = get_worker_info()
        return iter(range(100 * info.id, 100 * info.id + 3 + 2 * info.id))


def values(loader):
    return [batch.tolist() for batch in loader]


@pytest.fixture(autouse=True)
def no_processes_stay():
    yield
    for seconds in (1, 4):
        until = time.monotonic() + seconds
        while multiprocessing.active_children() and time.monotonic() < until:
            time.sleep(0.01)
        if multiprocessing.active_children():
            gc.collect()  # of what an exception's frames hold
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("prefetch", [1, 4])
def test_order_is_the_samplers(workers, prefetch):
    loader = DataLoader(Numbers(), 3, num_workers=workers, prefetch_factor=prefetch)
    assert values(loader) == values(DataLoader(Numbers(), 3))
    assert values(DataLoader(Slow(), 1, num_workers=workers)) == [[k] for k in range(10)]


def test_order_of_a_generator():
    def orders(workers, seed):
        generator = tracejit.Generator().manual_seed(seed)
        loader = DataLoader(Numbers(), 3, shuffle=True, num_workers=workers, generator=generator)
        return [values(loader), values(loader)]

    assert orders(0, 1) == orders(2, 1) != orders(2, 2)
    first, second = orders(0, 1)
    assert first != second
    tracejit.manual_seed(3)
    once = values(DataLoader(Numbers(), shuffle=True))
    tracejit.manual_seed(3)
    assert values(DataLoader(Numbers(), shuffle=True, num_workers=2)) == once


def test_batches_as_they_are_finished():
    found = values(DataLoader(Slow(), 1, num_workers=2, in_order=False))
    assert sorted(found) == [[k] for k in range(10)] and found[0] != [0]


def test_seeds():
    def draws(seed, workers=2):
        generator = tracejit.Generator().manual_seed(seed)
        return list(DataLoader(Draws(4), None, num_workers=workers, generator=generator))

    first = draws(0)
    assert first == draws(0) != draws(1)
    for kind in range(3):
        assert len({sample[kind] for sample in first}) == 4
    assert len({sample[3] for sample in first}) == 1
    assert [sample[4] for sample in first] == [0, 1, 0, 1]
    assert {sample[5] for sample in first} == {1}


def test_streams_in_parts():
    assert values(DataLoader(Parts(), 2, num_workers=2)) == [[0, 1], [100, 101], [2], [102, 103],
                                                             [104]]
    assert values(DataLoader(Parts(), 2, num_workers=2, drop_last=True)) == [
        [0, 1], [100, 101], [102, 103]]


@pytest.mark.parametrize("persistent", [False, True])
def test_several_passes(persistent):
    class Told(Numbers):
        def __getitem__(self, index):
            return os.getpid()

    loader = DataLoader(Told(6), None, num_workers=2, persistent_workers=persistent)
    passes = [set(loader) for _ in range(3)]
    assert all(len(pids) == 2 for pids in passes)
    assert len(set.union(*passes)) == (2 if persistent else 6)
    unfinished = iter(loader)
    next(unfinished)
    assert len(list(loader)) == 6
    if persistent:
        with pytest.raises(RuntimeError, match="another pass over this DataLoader has begun"):
            next(unfinished)
        del loader, unfinished
        assert multiprocessing.active_children() == []


def test_a_persistent_pass_begins_anew():
    loader = DataLoader(Numbers(8), 2, num_workers=2, persistent_workers=True)
    expected = values(loader)
    for _ in range(3):
        begun = iter(loader)
        next(begun)
        assert values(loader) == expected
    parts = DataLoader(Parts(), None, num_workers=2, persistent_workers=True)
    assert list(parts) == list(parts)


def test_tensors_arrive_as_they_were_sent():
    base = tracejit.arange(12.0).reshape(3, 4)
    sent = {"view": base.t()[1:], "base": base, "empty": tracejit.zeros(0, 2), "none": None,
            "half": tracejit.ones(2).bfloat16(), "array": np.arange(3), "flags": base > 5,
            "leaf": tracejit.nn.Parameter(tracejit.ones(1)), "expanded": base[:1].expand(5, 4)}

    class Fixed(Numbers):
        def __getitem__(self, index):
            return sent

    (found,) = DataLoader(Fixed(1), None, num_workers=1, collate_fn=lambda x: x)
    for name, x in sent.items():
        y = found[name]
        assert type(y) is type(x)
        if x is not None:
            assert y.tolist() == x.tolist() and y.dtype == x.dtype and y.shape == x.shape
    assert found["view"].stride() == sent["view"].stride() and found["leaf"].requires_grad
    found["base"].fill_(7)
    assert set(found["view"].reshape(-1).tolist()) == {7.0} and base[0, 1].item() == 1


def test_errors_carry_the_text_of_the_traceback():
    class Custom(Exception):
        def __init__(self, one, two):
            super().__init__(one, two)

    class Failing(Numbers):
        def __getitem__(self, index):
            if index == 1:
                raise Custom(1, 2)
            return lambda: None if index == 2 else index

    loader = iter(DataLoader(Failing(4), None, num_workers=1, collate_fn=lambda x: x))
    with pytest.raises((AttributeError, RuntimeError), match="(?s)worker process 0.*Original"):
        next(loader)  # a lambda cannot be sent
    with pytest.raises(RuntimeError, match="(?s)Caught Custom in DataLoader.*in __getitem__"):
        next(loader)


def test_a_worker_that_dies():
    loader = iter(DataLoader(Dying(), None, num_workers=2))
    with pytest.raises(RuntimeError, match=r"worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(loader)
    assert list(loader) == []


def test_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out after 0.3 seconds"):
        list(DataLoader(Sleeping(), num_workers=1, timeout=0.3))
    assert time.monotonic() - start < 15


def test_an_abandoned_pass_ends_its_workers():
    class Large(Numbers):
        def __getitem__(self, index):
            return tracejit.zeros(1 << 18)

    loader = iter(DataLoader(Large(100), 4, num_workers=2))
    next(loader)
    start = time.monotonic()
    del loader  # workers wait for their pipes to be read
    assert time.monotonic() - start < 4


def run(tmp_path, code):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    return subprocess.Popen([sys.executable, str(script)], cwd=ROOT, text=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


SCRIPT = """
    import os, sys, time
    import tracejit
    from tracejit.utils.data import DataLoader, Dataset

    class Pids(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return index, os.getpid()

    if __name__ == "__main__":
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_start_methods(method, tmp_path):
    done = run(tmp_path, SCRIPT + f"""
        loader = DataLoader(Pids(), 2, num_workers=2, multiprocessing_context={method!r})
        print([index.tolist() for index, pid in loader])
    """)
    out, err = done.communicate(timeout=60)
    assert out.strip() == "[[0, 1], [2, 3], [4, 5], [6, 7]]", err
    # Under load the tracker of semaphores may hear too late of one that is gone: no leak.
    leaked = "leaked" in err and "No such file or directory" not in err
    assert "Traceback" not in err and not leaked, err


def test_workers_end_with_the_process(tmp_path):
    """Killed, so that it cannot say goodbye."""
    process = run(tmp_path, SCRIPT + """
        import tracejit.utils.data.worker as worker
        worker.PARENT_CHECK = 0.2
        loader = iter(DataLoader(Pids(), 2, num_workers=2))
        print(*{pid for pids in loader for pid in pids[1].tolist()}, flush=True) \\
            if False else print(*[next(loader)[1][0].item() for _ in range(2)], flush=True)
        time.sleep(60)
    """)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    process.kill()
    process.communicate(timeout=20)
    until = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("how", ["return", "raise ValueError", "sys.exit(3)"])
def test_leaving_in_the_middle_is_quiet(how, tmp_path):
    process = run(tmp_path, SCRIPT + f"""
        def work():
            loader = DataLoader(Pids(), 1, num_workers=2, persistent_workers=True)
            for batch in loader:
                {how}
        work()
    """)
    out, err = process.communicate(timeout=30)
    assert process.returncode == {"return": 0, "raise ValueError": 1, "sys.exit(3)": 3}[how]
    assert err.count("Traceback") == (how == "raise ValueError"), err


def test_a_captured_function_that_loops_over_a_loader():
    data = TensorDataset(tracejit.arange(6.0))
    loader = DataLoader(data, 2)

    @tracejit.script
    def total(x):
        for (batch,) in loader:
            x = x + batch.sum()
        return x

    for _ in range(3):
        assert total(tracejit.tensor(0.0)).item() == 15
    data.tensors = (tracejit.ones(4),)
    assert total(tracejit.tensor(0.0)).item() == 4
    assert any("DataLoader" in b for b in map(str, total.report().breaks))


def test_a_captured_function_that_takes_samples():
    data, other = TensorDataset(tracejit.arange(6.0)), TensorDataset(tracejit.arange(6.0) + 10)
    part = Subset(ConcatDataset([data, other]), [3, 7])

    @tracejit.script
    def sample(x):
        return x + data[1][0]

    @tracejit.script
    def of_part(x):
        return x + part[1][0]

    x = tracejit.tensor(0.0)
    assert [sample(x).item() for _ in range(3)] == [1, 1, 1] and sample.report().breaks == []
    assert [of_part(x).item() for _ in range(3)] == [11, 11, 11]
    data.tensors = (tracejit.ones(4) * 7,)
    assert sample(x).item() == 7
    part.indices[1] = 8
    assert of_part(x).item() == 12
    part.dataset.datasets[1] = other = TensorDataset(tracejit.arange(6.0) + 20)
    assert of_part(x).item() == 22 and of_part(x).item() == 22
