"""einops takes our tensors, and its caches do not keep a captured function from being replayed.

A package of the same name stands in for einops, with what matters here: backends that are found by
their base class, and a cache by shape in front of what rearranges.
"""

import importlib
import sys

import pytest

import tracejit as tj

FILES = {
    "__init__.py": "from .einops import merged\n",
    "_backends.py": """
import sys

class AbstractBackend:
    pass

def get_backend(tensor):
    for kind in AbstractBackend.__subclasses__():
        if kind.framework_name in sys.modules and kind().is_appropriate_type(tensor):
            return kind()
    raise RuntimeError("unknown")
""",
    "einops.py": """
from functools import lru_cache
from ._backends import get_backend

def sizes(shape):
    return [shape[0] * shape[1], *shape[2:]]

cached = lru_cache(sizes)

def merged(tensor):
    backend = get_backend(tensor)
    try:
        shape = cached(backend.shape(tensor))
    except TypeError:
        shape = sizes(backend.shape(tensor))
    return backend.reshape(tensor, shape)
""",
}


@pytest.fixture
def einops(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "einops"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "einops").mkdir()
    for name, text in FILES.items():
        (tmp_path / "einops" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("einops")
    for name in [name for name in sys.modules if name.partition(".")[0] == "einops"]:
        del sys.modules[name]


@pytest.fixture
def backend(einops):
    return sys.modules["einops._backends"].get_backend(tj.ones(1))


def test_tensors_are_known(einops):
    assert einops.merged(tj.arange(24).reshape(2, 3, 4)).shape == (6, 4)
    with pytest.raises(RuntimeError, match="unknown"):
        einops.merged("text")


def test_one_program_serves_all_shapes(einops):
    @tj.script(mode="graph", fullgraph=True)
    def f(x):
        return einops.merged(x).sum(0)

    for rows in (2, 3, 4, 5):
        x = tj.rand(rows, 3, 4)
        tj.testing.assert_close(f(x), x.sum((0, 1)))
    assert f.report().compiles == 1
    assert einops.merged(tj.ones(2, 3, 4)).shape == (6, 4)  # plain code gets plain sizes


def test_what_the_backend_does(backend):
    x = tj.arange(6.0).reshape(2, 3)
    assert backend.from_numpy(backend.to_numpy(x)).tolist() == x.tolist()
    assert backend.arange(1, 3).tolist() == [1, 2]
    assert backend.shape(x) == (2, 3)
    assert backend.transpose(x, [1, 0]).shape == (3, 2)
    assert backend.reduce(x, "max", (0, 1)).item() == 5
    assert backend.reduce(x + 1, "prod", (0, 1)).item() == 720
    assert backend.stack_on_zeroth_dimension([x, x]).shape == (2, 2, 3)
    assert backend.add_axes(x, 4, {0: 5, 2: 7}).shape == (5, 2, 7, 3)
    assert backend.tile(x, (2, 1)).shape == (4, 3)
    assert backend.concat([x, x], 1).shape == (2, 6)
    assert backend.is_float_type(x) and not backend.is_float_type(x.long())
    assert backend.einsum("ij,ij->", x, x).item() == 55
