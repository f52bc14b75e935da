"""Tests of this folder need a GPU and the extra 'cuda': `make test-gpu`. Without one they fail."""

from pathlib import Path

import pytest

from tracejit import config
from tracejit.core.memory import DeviceUnavailable, array_module, device

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in Path(item.fspath).parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True, scope="session")
def gpu(tmp_path_factory):
    """CuPy on the first device; a cache directory for the run."""
    try:
        cupy = array_module(device("cuda:0"))
    except DeviceUnavailable as error:
        pytest.fail(f"these tests need a GPU: {error}")
    with config.override(cache_dir=tmp_path_factory.mktemp("cache"), verify_passes=True):
        yield cupy


@pytest.fixture
def launched(monkeypatch):
    """Counts of what ran on the device since the test began: kernels by kind, host calls by op."""
    from tests.cuda.launches import counted
    from tracejit.jit.runtime import cuda_kernels

    return counted(monkeypatch, cuda_kernels.DriverKernel)
