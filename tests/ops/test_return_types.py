"""Results whose parts have names: what they are called, how they are shown, copied and pickled."""

import copy
import pickle

import pytest

import tracejit as tj

CALLS = {
    "max": lambda m, x: m.max(x, 0), "min": lambda m, x: x.min(1, keepdim=True),
    "median": lambda m, x: x.median(0), "mode": lambda m, x: x.mode(0),
    "kthvalue": lambda m, x: x.kthvalue(1), "sort": lambda m, x: x.sort(),
    "topk": lambda m, x: x.topk(1), "aminmax": lambda m, x: x.aminmax(),
    "cummax": lambda m, x: x.cummax(0), "frexp": lambda m, x: m.frexp(x),
    "slogdet": lambda m, x: m.slogdet(x), "linalg_eigh": lambda m, x: m.linalg.eigh(x),
    "linalg_inv_ex": lambda m, x: m.linalg.inv_ex(x),
    "linalg_lu_factor": lambda m, x: m.linalg.lu_factor(x),
    "histogram": lambda m, x: m.histogram(x, 2),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_shown_as_in_pytorch(name):
    torch = pytest.importorskip("torch")
    mine, theirs = (CALLS[name](m, m.tensor([[2.0, 0.0], [0.0, 4.0]])) for m in (tj, torch))
    assert repr(mine) == repr(theirs).replace("torch.", "tracejit.")
    assert type(mine) is getattr(tj.return_types, name)
    assert f"{mine}" == repr(mine)


def test_copied_and_pickled():
    found = tj.tensor([3.0, 1.0]).max(0)
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert type(again) is tj.return_types.max
        assert (again.values.item(), again.indices.item()) == (3.0, 0)


def test_shown_by_captured_functions(capsys):
    f = tj.script(lambda x: print(x.max(0)))
    for x in ([1.0, 2.0], [5.0, 4.0]):
        f(tj.tensor(x))
    assert capsys.readouterr().out == (
        "tracejit.return_types.max(\nvalues=tensor(2.),\nindices=tensor(1))\n"
        "tracejit.return_types.max(\nvalues=tensor(5.),\nindices=tensor(0))\n")
