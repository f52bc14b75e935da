"""One cache directory for the run: kernels of these tests do not mix with the user's."""

import pytest

from tracejit import config


@pytest.fixture(autouse=True, scope="session")
def cache_directory(tmp_path_factory):
    with config.override(cache_dir=tmp_path_factory.mktemp("cache")):
        yield
