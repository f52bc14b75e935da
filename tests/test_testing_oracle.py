"""assert_close and assert_allclose say what PyTorch's say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tracejit
import tracejit.testing

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
NAN = float("nan")

def sparse(t, places, values):
    return t.sparse_coo_tensor(t.tensor(places), t.tensor(values), (2, 2))


CALLS = {
    "sparse": lambda t, ac: ac(sparse(t, [[0, 1], [1, 0]], [1.0, 2.0]),
                               sparse(t, [[0, 1], [1, 0]], [1.0, 2.0])),
    "sparse_twice": lambda t, ac: ac(sparse(t, [[0, 0], [1, 1]], [1.0, 2.0]),
                                     sparse(t, [[0], [1]], [3.0]).coalesce()),
    "sparse_coalesced": lambda t, ac: ac(sparse(t, [[1, 0], [1, 0]], [1.0, 2.0]),
                                         sparse(t, [[0, 1], [0, 1]], [2.0, 1.0]).coalesce()),
    "sparse_values": lambda t, ac: ac(sparse(t, [[0, 1], [1, 0]], [1.0, 2.0]),
                                      sparse(t, [[0, 1], [1, 0]], [1.0, 2.5])),
    "sparse_places": lambda t, ac: ac(sparse(t, [[0, 1], [1, 0]], [1.0, 2.0]),
                                      sparse(t, [[0, 1], [1, 1]], [1.0, 2.0]), rtol=1, atol=1),
    "sparse_counts": lambda t, ac: ac(sparse(t, [[0, 1], [1, 0]], [1.0, 2.0]),
                                      sparse(t, [[0], [1]], [1.0])),
    "meta": lambda t, ac: ac(t.empty(2, device="meta"), t.empty(2, device="meta")),
    "bytes": lambda t, ac: ac(t.tensor([1, 250]).byte(), t.tensor([3, 0]).byte(), rtol=0, atol=3),
    "close": lambda t, ac: ac(t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0 + 1e-6])),
    "far": lambda t, ac: ac(t.tensor([1.0, 2.0]), t.tensor([1.0, 2.1])),
    "0-dim": lambda t, ac: ac(t.tensor(1.0), t.tensor(2.0)),
    "integers": lambda t, ac: ac(t.tensor([1, 2]), t.tensor([1, 3])),
    "within": lambda t, ac: ac(t.tensor([1, 2, 3]), t.tensor([1, 5, 9]), rtol=0, atol=1),
    "dtype": lambda t, ac: ac(t.tensor([1.0]), t.tensor([1.0]).double()),
    "dtype_unchecked": lambda t, ac: ac(
        t.tensor([1.0]), t.tensor([1.1]).double(), check_dtype=False),
    "shape": lambda t, ac: ac(t.tensor([1.0]), t.tensor([1.0, 2.0])),
    "floats": lambda t, ac: ac(1.0, 2.0), "numbers": lambda t, ac: ac(1, 1.0),
    "exact": lambda t, ac: ac(2, 3, rtol=0, atol=0), "zero": lambda t, ac: ac(1.0, 0.0),
    "list": lambda t, ac: ac([t.tensor(1.0), t.tensor(2.0)], [t.tensor(1.0), t.tensor(3.0)]),
    "list_and_tuple": lambda t, ac: ac([1.0, 2.0], (1.0, 2.0)),
    "dict": lambda t, ac: ac({"x": [1.0, t.tensor([2.0])]}, {"x": [1.0, t.tensor([3.0])]}),
    "keys": lambda t, ac: ac({"a": 1}, {"b": 1}), "lengths": lambda t, ac: ac([1], [1, 2]),
    "texts": lambda t, ac: ac("a", "b"), "number_and_text": lambda t, ac: ac([3], ["a"]),
    "booleans": lambda t, ac: ac(True, False), "none": lambda t, ac: ac(None, 1),
    "nones": lambda t, ac: ac(None, None),
    "nan": lambda t, ac: ac(t.tensor([NAN]), t.tensor([NAN])),
    "equal_nan": lambda t, ac: ac(t.tensor([NAN]), t.tensor([NAN]), equal_nan=True),
    "one_nan": lambda t, ac: ac(t.tensor([1.0]), t.tensor([NAN]), equal_nan=True),
    "float_nan": lambda t, ac: ac(NAN, NAN),
    "infinite": lambda t, ac: ac(t.tensor([float("inf"), 1.0]), t.tensor([1.0, 1.0])),
    "one_tolerance": lambda t, ac: ac(t.tensor([1.0]), t.tensor([2.0]), rtol=1e-3),
    "other_tolerance": lambda t, ac: ac(t.tensor([1.0]), t.tensor([2.0]), atol=1e-3),
    "message": lambda t, ac: ac(t.tensor([1.0]), t.tensor([2.0]), msg="boo"),
    "message_of": lambda t, ac: ac(t.tensor([1.0]), t.tensor([2.0]), msg=lambda m: "pre " + m),
    "matrix": lambda t, ac: ac(t.tensor([[1.0, 2.0], [3.0, 4.0]]), t.tensor([[1.0, 2], [3, 5]])),
    "bools": lambda t, ac: ac(t.tensor([True]), t.tensor([False])),
    "complex": lambda t, ac: ac(t.tensor([1.0 + 1j]), t.tensor([1.0 + 2j])),
    "tensor_and_number": lambda t, ac: ac(t.tensor([1.0]), 1.0),
    "strides": lambda t, ac: ac(
        t.tensor([1.0, 2.0, 3.0, 4.0])[::2], t.tensor([1.0, 3.0]), check_stride=True),
    "halves": lambda t, ac: ac(t.tensor([1.0]).half(), t.tensor([1.01]).half()),
    "arrays": lambda t, ac: ac(np.ones(2), np.ones(2) * 2),
    "empty": lambda t, ac: ac(t.tensor([]), t.tensor([])),
    "gradients": lambda t, ac: ac(t.ones(2, requires_grad=True), t.ones(2)),
}  # fmt: skip
OLDER = {
    "close": lambda t, ac: ac(t.tensor([1.0]), t.tensor([1.00005])),
    "far": lambda t, ac: ac(t.tensor([1.0]), t.tensor([2.0])),
    "lists": lambda t, ac: ac([1.0], [1.1]), "message": lambda t, ac: ac([1.0], [2.0], msg="boo"),
    "dtypes": lambda t, ac: ac(t.tensor([1.0]).double(), t.tensor([1.0])),
}  # fmt: skip


def outcome(t, call, function):
    try:
        call(t, getattr(t.testing, function))
    except (AssertionError, TypeError, ValueError) as error:
        text = str(error).replace("tracejit.core.eager.tensor.", "torch.")
        return type(error), text.replace("tracejit.", "torch.")
    return None


@pytest.mark.parametrize("name", CALLS)
def test_assert_close(name):
    mine, theirs = (outcome(t, CALLS[name], "assert_close") for t in (tracejit, torch))
    assert mine == theirs


@pytest.mark.parametrize("name", OLDER)
def test_assert_allclose(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = (outcome(t, OLDER[name], "assert_allclose") for t in (tracejit, torch))
    assert mine == theirs
    with pytest.warns(FutureWarning, match="is deprecated since 1.12"):
        tracejit.testing.assert_allclose([1.0], [1.0])
