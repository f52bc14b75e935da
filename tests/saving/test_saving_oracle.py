"""Files that PyTorch reads and writes: everything that both load comes back the same."""

import io
import warnings
from collections import Counter, OrderedDict

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

KINDS = ("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 "
         "complex128").split()  # fmt: skip


def described(x):
    """What is to be seen of an object, whichever library's tensors are in it."""
    if isinstance(x, (tracejit.nn.Parameter, torch.nn.Parameter)):
        return "Parameter", described(x.detach()), x.requires_grad, vars(x)
    if isinstance(x, (tracejit.Tensor, torch.Tensor)):
        return (repr(x.dtype).split(".")[1], tuple(x.shape), x.stride(), x.storage_offset(),
                x.requires_grad, x.tolist(), vars(x))
    if isinstance(x, dict):
        return type(x), [(k, described(v)) for k, v in x.items()], getattr(x, "__dict__", None)
    if type(x) in (list, tuple):
        return type(x), [described(y) for y in x]
    return repr(x).replace("tracejit", "torch")


def everything(lib):
    """One of each thing that can be saved, some of them twice."""
    x = lib.arange(6.0).reshape(2, 3)
    parameter, noted = lib.nn.Parameter(x), lib.nn.Parameter(x[:1].clone(), requires_grad=False)
    noted.mark = 3
    marked = lib.ones(2)
    marked.mark = [1]
    return {
        "x": x, "view": x.t(), "part": x[1:, ::2], "again": x, "parameter": parameter,
        "noted": noted, "marked": marked, "history": (x * 2).requires_grad_(),
        "expanded": lib.ones(3, 1).expand(3, 4), "empty": lib.zeros(0, 3), "scalar": lib.tensor(3),
        "kinds": [lib.ones(2).to(getattr(lib, kind)) for kind in KINDS],
        "dtype": lib.bfloat16, "device": lib.device("cpu"), "size": x.shape, "layout": x.layout,
        "ordered": OrderedDict(b=x[0], a=1), "counter": Counter("aab"), "set": {1, "a"},
        "tuple": (1, 2.5, True, None, ()), "bytes": b"a\xff", "none": b"", "array": bytearray(b"q"),
        "complex": 1j, "numbers": [10**30, -5, 255, 256, 2**40, -0.0, float("inf")],
        "text": "h\u00e9\n", 3: {"nested": [[{}]]},
    }  # fmt: skip


def saved(lib, obj, **how):
    file = io.BytesIO()
    lib.save(obj, file, **how)
    file.seek(0)
    return file


def loaded(lib, file, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lib.load(file, **how)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pytorch_reads_what_tracejit_writes(protocol):
    file = saved(tracejit, everything(tracejit), pickle_protocol=protocol)
    # PyTorch's own reader of weights knows protocol 2.
    found = loaded(torch, file, weights_only=protocol == 2)
    assert described(found) == described(everything(torch))
    check_sharing(found)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("archive", [True, False])
def test_tracejit_reads_what_pytorch_writes(protocol, archive):
    file = saved(torch, everything(torch), pickle_protocol=protocol,
                 _use_new_zipfile_serialization=archive)
    found = loaded(tracejit, file)
    assert described(found) == described(everything(torch))
    check_sharing(found)


@pytest.mark.parametrize("protocol", [2, 4])
def test_both_read_what_tracejit_writes_in_the_old_format(protocol, tmp_path):
    options = {"pickle_protocol": protocol, "_use_new_zipfile_serialization": False}
    file = saved(tracejit, everything(tracejit), **options)
    tracejit.save(everything(tracejit), tmp_path / "old.pt", **options)
    assert (tmp_path / "old.pt").read_bytes() == file.getvalue()
    for library in (tracejit, torch):
        for source in (io.BytesIO(file.getvalue()), str(tmp_path / "old.pt")):
            found = loaded(library, source, **({} if library is tracejit else
                                               {"weights_only": protocol == 2}))
            assert described(found) == described(everything(torch))
            check_sharing(found)


def test_tracejit_reads_what_it_writes(tmp_path):
    tracejit.save(everything(tracejit), tmp_path / "x.pt")
    for how in ({}, {"mmap": True}, {"weights_only": False}, {"map_location": "cpu"}):
        found = tracejit.load(tmp_path / "x.pt", **how)
        assert described(found) == described(everything(torch))
        check_sharing(found)
    assert described(torch.load(tmp_path / "x.pt", mmap=True)) == described(everything(torch))


def check_sharing(found):
    assert found["again"] is found["x"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["x"].fill_(7)
    assert set(found["view"].reshape(-1).tolist()) == {7.0} and found["part"].tolist() == [[7, 7]]
    assert found["ordered"]["b"].tolist() == [7, 7, 7]


def test_state_dicts_both_ways():
    def model(lib):
        return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))

    mine, theirs = model(tracejit), model(torch)
    mine.load_state_dict(loaded(tracejit, saved(torch, theirs.state_dict())))
    x = [[0.5, -1.0, 2.0]]
    expected = theirs(torch.tensor(x)).tolist()[0]
    assert mine(tracejit.tensor(x)).tolist()[0] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    again = model(torch)
    again.load_state_dict(loaded(torch, saved(tracejit, mine.state_dict()), weights_only=True))
    assert described(again.state_dict()["0.weight"]) == described(theirs.state_dict()["0.weight"])
    assert loaded(tracejit, saved(torch, theirs.state_dict()))._metadata[""] == {"version": 1}


def test_optimizer_states_both_ways():
    def trained(lib):
        weight = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
        optimizer = lib.optim.Adam([weight], lr=0.1)
        (weight * weight).sum().backward()
        optimizer.step()
        return optimizer

    mine, theirs = trained(tracejit), trained(torch)
    theirs.load_state_dict(loaded(torch, saved(tracejit, mine.state_dict()), weights_only=True))
    mine.load_state_dict(loaded(tracejit, saved(torch, theirs.state_dict())))
    exp = [o.state_dict()["state"][0]["exp_avg"].tolist() for o in (mine, theirs)]
    assert exp[0] == pytest.approx(exp[1])


def test_other_byte_orders():
    import sys
    import zipfile

    file = saved(torch, {"x": torch.tensor([1.0, 256.0]), "c": torch.tensor([1j])})
    swapped = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(swapped, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("byteorder"):
                data = b"big" if sys.byteorder == "little" else b"little"
            elif "/data/" in name:
                data = b"".join(data[k : k + 4][::-1] for k in range(0, len(data), 4))
            new.writestr(name, data)
    swapped.seek(0)
    found = tracejit.load(swapped)
    assert found["x"].tolist() == [1, 256] and found["c"].tolist() == [1j]


class Point:
    pass


MESSAGES = """
lib.save(1, 3)
lib.save(1, None)
lib.save(1, "/no/such/folder/x.pt")
lib.load("/no/such/file.pt")
lib.load(3)
lib.load(None)
lib.load(io.BytesIO(saved(lib, Point()).getvalue()))
lib.load(io.BytesIO(saved(lib, {"f": frozenset([1])}).getvalue()))
lib.load(io.BytesIO(saved(lib, len).getvalue()))
sorted(lib.serialization.get_unsafe_globals_in_checkpoint(saved(lib, [Point(), len, 2j])))
lib.load(saved(lib, 1), mmap=True)
""".strip().splitlines()


@pytest.mark.parametrize("expression", MESSAGES)
def test_messages(expression):
    def outcome(lib):
        try:
            return repr(eval(expression, {**globals(), "lib": lib}))
        except Exception as error:
            text = str(error).replace("torch", "lib").replace("tracejit", "lib")
            if "WeightsUnpickler" in text:  # the advice around it is PyTorch's own
                text = next(line for line in text.splitlines() if "WeightsUnpickler" in line)
            return type(error), text.replace("lib.load from a file", "load from a file")

    assert outcome(tracejit) == outcome(torch)


def test_a_reader_of_records_finds_what_pytorchs_finds():
    ours, theirs = io.BytesIO(), io.BytesIO()
    tracejit.save({"a": tracejit.ones(3), "b": tracejit.arange(4)}, ours)
    torch.save({"a": torch.ones(3), "b": torch.arange(4)}, theirs)
    for file in (ours, theirs):
        file.seek(0)
        wanted = torch.PyTorchFileReader(file)
        file.seek(0)
        got = tracejit.PyTorchFileReader(file)
        assert got.get_all_records() == wanted.get_all_records()
        for name in wanted.get_all_records():
            assert got.has_record(name)
            assert got.get_record(name) == wanted.get_record(name)
            assert got.get_record_size(name) == wanted.get_record_size(name)
        assert not got.has_record("data/7")
        one, other = [reader.get_storage_from_record("data/1", 32, storages) for reader, storages
                      in ((got, tracejit.UntypedStorage), (wanted, torch.UntypedStorage))]
        assert (one.shape, one.dtype.name) == (other.shape, str(other.dtype)[6:])
        assert list(one._typed_storage()._untyped_storage) == list(
            other._typed_storage()._untyped_storage)
        floats = got.get_storage_from_record("data/0", 3, tracejit.float32)
        assert floats.dtype is tracejit.float32 and floats.untyped_storage().nbytes() == 12


def test_a_reader_of_records_refuses_what_is_no_whole_file(tmp_path):
    file = tmp_path / "saved.pt"
    tracejit.save(tracejit.ones(100), file)
    assert tracejit.PyTorchFileReader(str(file)).get_record("version") == b"3\n"
    with pytest.raises(RuntimeError, match="no entry 'nothing'"):
        tracejit.PyTorchFileReader(file).get_record("nothing")
    with pytest.raises(RuntimeError, match="bytes instead of"):
        tracejit.PyTorchFileReader(file).get_storage_from_record("data/0", 7, tracejit.float32)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(RuntimeError, match="damaged"):
        tracejit.PyTorchFileReader(file)
