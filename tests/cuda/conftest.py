"""One cache directory for the run: kernels of these tests do not mix with the user's."""

import os

import pytest

from tracejit import config

# Only a process with the simulator collects what needs it: test_simulator.py starts one.
collect_ignore = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["simulated"]


@pytest.fixture(autouse=True, scope="session")
def cache_directory(tmp_path_factory):
    with config.override(cache_dir=tmp_path_factory.mktemp("cache")):
        yield
