"""What only a GPU shows: the driver loads the kernels, large grids, streams, memory, bits."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tracejit
from tests.cuda.programs import PROGRAMS, numbers
from tracejit.jit.runtime import cuda_kernels

ROOT = Path(__file__).resolve().parents[2]


def on_device(array):
    return tracejit.tensor(array, device="cuda")


def test_names():
    assert tracejit.cuda.is_available() and tracejit.cuda.device_count() >= 1
    assert tracejit.cuda.get_device_name(0)
    assert tracejit.cuda.get_device_capability() >= (7, 0) and tracejit.cuda.is_initialized()
    free, total = tracejit.cuda.mem_get_info()
    assert 0 < free <= total == tracejit.cuda.get_device_properties(0).total_memory
    x = on_device(numbers(1000))
    assert tracejit.cuda.max_memory_allocated() >= tracejit.cuda.memory_allocated() >= x.nbytes
    tracejit.cuda.synchronize()
    with tracejit.cuda.device(0):
        assert tracejit.cuda.current_device() == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_change_from_run_to_run(name):
    for first, again in zip(PROGRAMS[name]("cuda"), PROGRAMS[name]("cuda")):
        np.testing.assert_array_equal(first, again)


def test_random_numbers_have_the_bits_of_the_cpu():
    def draws(device):
        tracejit.manual_seed(11)
        return [x.cpu().numpy() for x in drawn(tracejit.zeros(1, device=device))]

    @tracejit.script
    def drawn(x):
        return (tracejit.rand(100_003, device=x.device), tracejit.randn(100_003, device=x.device),
                tracejit.randn(1001, dtype=tracejit.float64, device=x.device))  # fmt: skip

    for on_cpu, on_gpu in zip(draws("cpu"), draws("cuda")):
        np.testing.assert_array_equal(on_cpu, on_gpu)


def test_eager_numerics_have_the_bits_of_the_cpu():
    """Arithmetic that IEEE fixes, uncontracted."""
    f = tracejit.script(lambda x, y: (x * y + x - y / x).sqrt().abs(), numerics="eager")
    x, y = np.abs(numbers(100_003)) + 1, np.abs(numbers(100_003, seed=1))
    want = f(tracejit.tensor(x), tracejit.tensor(y)).numpy()
    np.testing.assert_array_equal(f(on_device(x), on_device(y)).cpu().numpy(), want)


def test_more_rows_than_a_grid_has_blocks():
    x = numbers(70_001, 5)
    f = tracejit.script(lambda x: (x.softmax(1), x.sum(0), x.sum(), (x * 2)))
    got = f(on_device(x))
    wide = x.astype("f8")
    parts = np.exp(wide - wide.max(1, keepdims=True))
    wanted = (parts / parts.sum(1, keepdims=True), wide.sum(0), wide.sum(), wide * 2)
    for g, want, limit in zip(got, wanted, (1e-6, 2e-2, 2e-2, 0)):
        np.testing.assert_allclose(g.cpu().numpy(), want, rtol=1e-5, atol=limit)


def test_more_elements_than_a_grid_has_threads():
    count = cuda_kernels.MOST_BLOCKS * 256 + 12_345
    x = tracejit.ones(count, device="cuda")
    f = tracejit.script(lambda x: (x + 1).sum())
    assert f(x).item() == pytest.approx(2 * count, rel=1e-6)
    x = tracejit.script(lambda x: x + 1)(x)
    assert x.amin().item() == x.amax().item() == 2


def test_products_of_every_layout():
    f = tracejit.script(lambda a, b: a @ b)
    for m, k, n in ((1, 1, 1), (1, 7, 5), (6, 1, 4), (130, 70, 33), (3, 0, 2)):
        a, b = numbers(m, k), numbers(k, n, seed=1)
        at, bt = on_device(a.T.copy()).t(), on_device(b.T.copy()).t()
        for left in (on_device(a), at):
            for right in (on_device(b), bt):
                found = f(left, right).cpu().numpy()
                np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-4)


def test_kernels_are_found_on_disk(tmp_path):
    """A second process compiles none."""
    run = ("from tests.cuda.programs import PROGRAMS; from tracejit.jit.runtime import cache; "
           "PROGRAMS['pointwise']('cuda'); print(cache.counts['compiled'], cache.counts['loaded'])")
    environment = {**os.environ, "TRACEJIT_CACHE_DIR": str(tmp_path)}
    said = [subprocess.run([sys.executable, "-c", run], cwd=ROOT, env=environment, text=True,
                           capture_output=True, check=True).stdout.split() for _ in range(2)]
    assert said[0][0] != "0" and said[1][0] == "0" and said[1][1] == said[0][0], said


def test_another_stream(gpu):
    f = tracejit.script(lambda x: x.softmax(1).sum(0))
    x = on_device(numbers(300, 40))
    want = f(x).cpu().numpy()
    with gpu.cuda.Stream(non_blocking=True) as stream:
        found = f(x)
        stream.synchronize()
    np.testing.assert_array_equal(found.cpu().numpy(), want)


def test_memory_is_given_back(gpu):
    f = tracejit.script(lambda x: (x @ x).softmax(1) * 2)
    x = on_device(numbers(256, 256))
    for _ in range(3):
        f(x)
    before = gpu.get_default_memory_pool().used_bytes()
    for _ in range(200):
        f(x)
    assert gpu.get_default_memory_pool().used_bytes() <= before + x.numel() * 4
