"""Writes to some elements of expanded tensors: PyTorch's values, warnings and gradients."""

from __future__ import annotations

import warnings

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

WRITES = """
y[m] = 1.0
y[m] = lib.tensor(2.0)
y[m] = lib.tensor([1.0, 2.0, 3.0])
y[:2][m[:2]] = 1.0
y[m] += 1
y[i] = v[:2]
y[i, :] = v[:2]
y[:, i] = v[:, :2]
z[i] = v[:2]
z[:, i] = v[:, :2]
z[:, i] = 1.0
z[m] = lib.tensor([5.0, 6.0, 7.0])
z[m] = 9.0
y[[]] = 1.0
y.masked_fill_(m, 1.0)
y.masked_fill_(mask=m, value=lib.tensor(3.0))
z.masked_fill_(m[0], 1.0)
y.index_fill_(1, i, 1.0)
y.index_fill_(0, i, 1.0)
z.index_fill_(axis=0, index=i, value=1.0)
y.index_put_((i,), lib.tensor(1.0))
y.index_put_((i,), v[:2])
y.index_put_((i, i), lib.tensor([1.0, 2.0]), accumulate=True)
y.index_put_((i,), v[:2], accumulate=True)
y[0] = 1.0
y.index_fill_(1, i + 2, 1.0)
y[:, i + 2] = 1.0
y.scatter_(0, i[None], 1.0)
y.add_(1)
""".strip().splitlines()


def _written(lib, write, run=lambda f: f):
    rooms = {"lib": lib}
    exec(f"def f(y, z, m, i, v):\n    {write}\n    return y * 1, z * 1", rooms)
    y = lib.arange(3.0).reshape(3, 1).expand(3, 4)
    z = lib.arange(4.0).reshape(1, 4).expand(3, 4)
    m = lib.tensor([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]) > 0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            got = run(rooms["f"])(y, z, m, lib.tensor([0, 2]), lib.arange(12.0).reshape(3, 4))
        except (RuntimeError, IndexError) as error:
            return type(error)
    texts = [str(w.message).split(" (Trig")[0] for w in told if "expanded" in str(w.message)]
    return [x.tolist() for x in (y, z, *got)], texts


@pytest.mark.parametrize("write", WRITES)
def test_some_elements_of_an_expanded_tensor_are_written(write):
    expected = _written(torch, write)
    assert _written(tracejit, write) == expected
    assert _written(tracejit, write, tracejit.script) == expected


@pytest.mark.parametrize("write", ["y[m] = b", "y.masked_fill_(m, b)", "y[:, i] = b",
                                   "y.index_fill_(0, i, b)"])
@pytest.mark.parametrize("lib", [torch, tracejit])
def test_gradients_do_not_go_back_through_such_a_write(write, lib):
    b = lib.tensor(2.0, requires_grad=True)
    y = (lib.arange(3.0).reshape(3, 1).requires_grad_() * 3).expand(3, 4)
    mask = lib.tensor([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]) > 0
    exec(write, {"y": y, "b": b, "i": lib.tensor([0, 2]), "m": mask})
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        y.sum().backward()
