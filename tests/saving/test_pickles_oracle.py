"""Python's own pickles: PyTorch's are read here, and storages in ours can be caught as in its."""

import io
import pickle
import pickletools
import subprocess
import sys

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


class Reading(pickle.Unpickler):
    """Reads PyTorch's names as `python -m tracejit run` does."""

    def find_class(self, module, name):
        return super().find_class(module.replace("torch", "tracejit", 1), name)


def views(lib):
    x = lib.arange(6.0)
    return [x, x[2:]]


def of_a_class(lib):
    x = lib.ones(2)
    x.note = "kept"
    return x


MADE = {
    **{kind: lambda lib, kind=kind: lib.ones(2, 3).to(getattr(lib, kind))[:, 1:]
       for kind in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64")},
    "empty": lambda lib: lib.empty(0, 3),
    "leaf": lambda lib: lib.ones(2, requires_grad=True),
    "parameter": lambda lib: lib.nn.Parameter(lib.arange(3.0), requires_grad=False),
    "attributes": of_a_class,
    "buffer": lambda lib: lib.nn.Buffer(lib.ones(2)),
    "sparse": lambda lib: lib.eye(2).to_sparse(),
    "compressed": lambda lib: lib.eye(2).to_sparse_csr(),
    "typed storage": lambda lib: lib.arange(3).storage(),
}


def same(ours, theirs):
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    sparse = getattr(theirs, "layout", torch.strided) is not torch.strided
    assert (ours.to_dense() if sparse else ours).tolist() == (
        theirs.to_dense() if sparse else theirs).tolist()
    for name in ("requires_grad", "shape", "note", "persistent"):
        assert getattr(ours, name, None) == getattr(theirs, name, None)
    if not sparse:
        assert type(ours).__name__ == type(theirs).__name__


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", MADE)
def test_pickles_of_pytorch(name, protocol):
    theirs = MADE[name](torch)
    same(Reading(io.BytesIO(pickle.dumps(theirs, protocol))).load(), theirs)


@pytest.mark.parametrize("name", MADE)
def test_our_own_pickles(name):
    same(pickle.loads(pickle.dumps(MADE[name](tracejit))), MADE[name](torch))


def test_a_network_of_pytorch_with_its_optimizer():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU())
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.arange(12.0).reshape(4, 3)).square().sum().backward()
    optimizer.step()
    data = pickle.dumps({"net": net, "state": optimizer.state_dict(), "function": torch.relu,
                         "layout": torch.strided, "where": torch.device("cpu")})
    found = Reading(io.BytesIO(data)).load()
    ours = found["net"](tracejit.arange(12.0).reshape(4, 3)).tolist()
    for row, right in zip(ours, net(torch.arange(12.0).reshape(4, 3)).tolist(), strict=True):
        assert row == pytest.approx(right, rel=1e-5)
    again = tracejit.optim.Adam(found["net"].parameters())
    again.load_state_dict(found["state"])
    moment = again.state_dict()["state"][0]["exp_avg"].tolist()
    assert moment == optimizer.state_dict()["state"][0]["exp_avg"].tolist()
    assert found["function"](tracejit.tensor([-1.0])).tolist() == [0.0]
    assert found["layout"] is tracejit.strided and found["where"] == tracejit.device("cpu")


def test_tensors_over_one_memory_stay_over_one():
    x, y = pickle.loads(pickle.dumps(views(tracejit)))
    x.fill_(7)
    assert y.tolist() == [7.0] * 4


class Catching(pickle.Unpickler):
    """Reads storages by itself, as packages do to bring them to a device."""

    def find_class(self, module, name):
        if (module, name) == ("tracejit.storage", "_load_from_bytes"):
            self.files += 1
            return lambda data: tracejit.load(io.BytesIO(data), map_location="cpu")
        return super().find_class(module, name)


def test_an_unpickler_reads_storages_by_itself():
    net = tracejit.nn.Linear(3, 2)
    reader = Catching(io.BytesIO(pickle.dumps(net)))
    reader.files = 0
    again = reader.load()
    assert reader.files > 0
    assert tracejit.equal(again.weight, net.weight) and tracejit.equal(again.bias, net.bias)


SCRIPT = """
import pickle, pickletools, torch
data = pickle.dumps(torch.ones(2))
words = [argument for _, argument, _ in pickletools.genops(data)]
print("torch.storage" in words and "_load_from_bytes" in words, pickle.loads(data).tolist())
"""


def test_scripts_under_run_name_torch(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for start in ([], ["-m", "tracejit", "run"]):
        done = subprocess.run([sys.executable, *start, script], capture_output=True, text=True)
        assert done.stdout == "True [1.0, 1.0]\n", done.stderr


@pytest.mark.parametrize("lib", [torch, tracejit])
def test_a_file_may_not_name_the_reader_of_storages(lib):
    """Files are loaded by names that run nothing; this one would run what its bytes say."""
    file = io.BytesIO()
    lib.save([lib.ones(2), lib.storage._load_from_bytes], file)
    with pytest.raises(pickle.UnpicklingError, match="storage._load_from_bytes"):
        lib.load(io.BytesIO(file.getvalue()))
    assert lib.load(io.BytesIO(file.getvalue()), weights_only=False)[0].tolist() == [1.0, 1.0]


def test_pickles_between_processes_hold_bytes_alone():
    from multiprocessing.reduction import ForkingPickler

    import tracejit.multiprocessing

    data = bytes(ForkingPickler.dumps([tracejit.ones(2), tracejit.nn.Parameter(tracejit.ones(2))]))
    assert "_load_from_bytes" not in str([a for _, a, _ in pickletools.genops(data)])
    assert [x.tolist() for x in pickle.loads(data)] == [[1.0, 1.0]] * 2
