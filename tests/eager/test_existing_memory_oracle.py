"""Tensors over memory that is there already: who shares it, who requires grad, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

ASARRAY = """
bytearray(b"abcdefgh")
bytearray(b"abcdefgh"), dtype=uint8
bytearray(b"abcdefgh"), dtype=uint8, copy=True
bytearray(b"abc")
memoryview(bytearray(8)), dtype=int64
np.arange(3.0)
np.arange(3.0), copy=True
np.arange(3.0), copy=False
np.arange(3.0), dtype=float32, copy=False
np.arange(3.0)[::-1]
np.float64(2.5)
np.float64(2.5), copy=False
[1, 2], copy=False
[1.5, 2], requires_grad=True
leaf
leaf, requires_grad=False
leaf, copy=True
leaf, copy=True, requires_grad=False
leaf, dtype=int64
leaf, dtype=float64, copy=False
inner
inner, requires_grad=True
inner, requires_grad=False
plain, requires_grad=True
plain, copy=True
plain, dtype=int64
capsule
""".strip().split("\n")


def seen(library, call):
    names = {name: getattr(library, name) for name in ("uint8", "int64", "float32", "float64")}
    leaf = library.arange(3.0, requires_grad=True)
    names |= {"np": np, "leaf": leaf, "inner": leaf * 2, "plain": library.arange(3.0),
              "capsule": library.utils.dlpack.to_dlpack(library.arange(3.0))}
    (obj, *_), options = eval(f"(lambda *a, **k: (a, k))({call})", names)
    try:
        made = library.asarray(obj, **options)
    except (ValueError, TypeError, RuntimeError) as error:
        return type(error), str(error).partition(" (")[0]
    result = made.tolist(), str(made.dtype).split(".")[1], made is obj
    gradient = made.requires_grad, made.is_leaf, leaf.requires_grad
    made.detach().fill_(5)
    written = obj.detach().tolist() if hasattr(obj, "detach") else None
    if isinstance(obj, (bytearray, np.ndarray)):
        written = bytes(memoryview(obj))
    return result, gradient, written


@pytest.mark.parametrize("call", ASARRAY)
def test_asarray(call):
    assert seen(tracejit, call) == seen(torch, call)


def through_a_file(library, path, *args):
    try:
        made = library.from_file(str(path), *args, dtype=library.int16)
    except RuntimeError as error:
        return str(error)
    made[0] = 77
    shown = made.tolist()
    del made
    return shown, path.read_bytes()


@pytest.mark.parametrize("args", [(True, 3), (True, 1), (False, 2), (None, 2), (False, 5)])
@pytest.mark.parametrize("there", [True, False])
def test_from_file(tmp_path, args, there):
    path = tmp_path / "elements"
    results = []
    for library in (tracejit, torch):
        path.unlink(missing_ok=True)
        if there:
            path.write_bytes(bytes(range(4)))
        results.append(through_a_file(library, path, *args))
    assert results[0] == results[1]
