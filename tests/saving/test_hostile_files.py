"""Damaged, truncated and hostile files: each is refused with an error that says why; none runs."""

import io
import pickle
import random
import struct
import zipfile
from collections import Counter, OrderedDict
from pickle import UnpicklingError

import pytest

import tracejit

REFUSALS = (UnpicklingError, RuntimeError, EOFError)
FORBIDDEN = """
os.system posix.system nt.system subprocess.Popen subprocess.check_output builtins.eval
builtins.exec __builtin__.eval builtins.__import__ builtins.getattr builtins.setattr builtins.open
builtins.compile builtins.globals builtins.object builtins.type importlib.import_module
runpy.run_path shutil.rmtree pty.spawn socket.socket ctypes.CDLL pickle.loads _pickle.loads
functools.partial operator.attrgetter operator.methodcaller types.CodeType types.FunctionType
collections.namedtuple copyreg._reconstructor numpy.load numpy.core.multiarray._reconstruct
torch.load torch.hub.load torch.jit.load torch._utils._import_dotted_name torch.nn.Linear
torch.nn.modules.linear.Linear torch._utils._rebuild_qtensor torch.uint16 torch.utils.cpp_extension
tracejit.load tracejit.serialization.add_safe_globals tracejit.saving.rebuilding.CALLS
_codecs.decode codecs.encode webbrowser.open sys.exit os._exit builtins.frozenset builtins.range
""".split()


def archive(data, storages=(), root="archive", **entries):
    """A file around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(f"{root}/data.pkl", data)
        for number, storage in enumerate(storages):
            made.writestr(f"{root}/data/{number}", storage)
        made.writestr(f"{root}/version", "3\n")
        for name, content in entries.items():
            made.writestr(f"{root}/{name}", content)
    return file.getvalue()


def good_file():
    file = io.BytesIO()
    x = tracejit.arange(40.0).reshape(5, 8)
    state = OrderedDict(weight=tracejit.nn.Parameter(x), view=x.t(), step=tracejit.tensor(3))
    tracejit.save({"state": state, "list": [1, 2.5, "text", b"bytes", None], "c": Counter("ab"),
                   "size": x.shape, "set": {1, 2}, "kind": tracejit.int64}, file)
    return file.getvalue()


def outcome(data):
    """The refusal of a file, or None where it was loaded; other exceptions are failures."""
    try:
        tracejit.load(io.BytesIO(data))
    except REFUSALS as error:
        assert str(error), "an error without a word"
        return error
    return None


def text(value):
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def test_truncated_files():
    data = good_file()
    for length in range(0, len(data), max(1, len(data) // 150)):
        assert outcome(data[:length]) is not None, length


def test_damaged_files():
    """A byte of the file changes: the checksums, or what the archive says of itself, tell."""
    data, chance, refused = good_file(), random.Random(0), 0
    for _ in range(400):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        refused += outcome(bytes(damaged)) is not None
    assert refused >= 150  # the others hit padding, dates and the like


def test_damaged_elements_are_noticed():
    data = good_file()
    start = data.index(struct.pack("<f", 37.0))
    damaged = data[:start] + b"\x01" + data[start + 1 :]
    assert "CRC" in str(outcome(damaged))


@pytest.mark.parametrize("seed", range(6))
def test_damaged_pickles(seed):
    """With the right checksums: whatever the pickle says, it is data or an error."""
    file = zipfile.ZipFile(io.BytesIO(good_file()))
    pickled = file.read("archive/data.pkl")
    storages = [file.read(f"archive/data/{k}") for k in range(2)]
    chance, refused = random.Random(seed), 0
    for _ in range(150):
        damaged = bytearray(pickled)
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(len(damaged))
            change = chance.randrange(4)
            if change == 0:
                damaged[at] = chance.randrange(256)
            elif change == 1:
                del damaged[at : at + chance.randrange(1, 9)]
            elif change == 2:
                damaged[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(5)))
            else:
                other = chance.randrange(len(damaged))
                damaged[at:at] = damaged[other : other + 12]
        refused += outcome(archive(bytes(damaged), storages)) is not None
    assert refused >= 60


def forms(name):
    """Pickles that would call, make, or set something on what a name stands for."""
    module, _, attribute = name.rpartition(".")
    named = pickle.GLOBAL + f"{module}\n{attribute}\n".encode()
    stacked = text(module) + text(attribute) + pickle.STACK_GLOBAL
    argument = text("touch hacked") + pickle.TUPLE1
    yield named + argument + pickle.REDUCE
    yield stacked + argument + pickle.REDUCE
    yield named + argument + pickle.NEWOBJ
    yield pickle.MARK + named + text("touch hacked") + pickle.OBJ
    yield pickle.MARK + text("touch hacked") + pickle.INST + f"{module}\n{attribute}\n".encode()
    yield named + pickle.EMPTY_DICT + pickle.BUILD


@pytest.mark.parametrize("name", FORBIDDEN)
def test_names_are_refused(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for form in forms(name):
        for data in (archive(b"\x80\x02" + form + b"."), b"\x80\x02" + form + b"."):
            error = outcome(data)
            assert isinstance(error, UnpicklingError)
            shown = name.replace("__builtin__", "builtins").removeprefix("builtins.")
            assert shown in str(error) or "Unsupported operand" in str(error)
    assert list(tmp_path.iterdir()) == []


def made_by(function, *arguments):
    """A pickle that calls a name of PyTorch's with arguments; bytes stand for themselves."""
    parts = [a if isinstance(a, bytes) else pickle.dumps(a, 2)[2:-1] for a in arguments]
    module, _, name = function.rpartition(".")
    return (pickle.GLOBAL + f"{module}\n{name}\n".encode() + pickle.MARK + b"".join(parts)
            + pickle.TUPLE + pickle.REDUCE)


def storage(count=6, cls="FloatStorage", key="0", place="cpu"):
    return (pickle.MARK + text("storage") + pickle.GLOBAL + f"torch\n{cls}\n".encode() + text(key)
            + text(place) + pickle.dumps(count, 2)[2:-1] + pickle.TUPLE + pickle.BINPERSID)


def hooks():
    return pickle.GLOBAL + b"collections\nOrderedDict\n" + pickle.EMPTY_TUPLE + pickle.REDUCE


V2 = "torch._utils._rebuild_tensor_v2"
BAD_TENSORS = [
    (storage(), 0, (7,), (1,), False), (storage(), 5, (2,), (1,), False),
    (storage(), 0, (2, 3), (4, 1), False), (storage(), -1, (2,), (1,), False),
    (storage(), 0, (-2,), (1,), False), (storage(), 0, (2,), (-1,), False),
    (storage(), 0, (2, 2), (1,), False), (storage(), 0, (1 << 70,), (0,), False),
    (storage(), 0, (1 << 40, 1 << 40), (0, 0), False), (storage(), 0, (1,) * 65, (0,) * 65, False),
    (storage(), 0, [2], [1], False), (storage(), 0, (2.0,), (1,), False),
    (storage(), 0, (True,), (1,), False), (storage(), "0", (2,), (1,), False),
    (storage(), 1 << 80, (0,), (1,), False), (storage(), 0, (2,), (1 << 62,), False),
    (storage(), 0, (2,), (1,), 1), (storage(), 0, (2,), (1,), None), (3, 0, (2,), (1,), False),
    ("storage", 0, (2,), (1,), False), (storage(7), 0, (2,), (1,), False),
    (storage(-1), 0, (0,), (1,), False), (storage(1 << 62), 0, (2,), (1,), False),
    (storage(3, "DoubleStorage", key="1"), 0, (2,), (1,), False),
    (storage(6, "UntypedStorage"), 0, (2,), (1,), False),
    (storage(6, key="../0"), 0, (2,), (1,), False), (storage(6, key="9"), 0, (2,), (1,), False),
    (storage(place="nowhere"), 0, (2,), (1,), False),
    (storage(place="cpu:7"), 0, (2,), (1,), False),
    (storage(6, "IntStorage"), 0, (2,), (1,), True), (storage(),), (),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD_TENSORS)))
def test_tensors_that_cannot_be_are_refused(number):
    arguments = BAD_TENSORS[number]
    data = made_by(V2, *arguments, *([hooks()] if len(arguments) == 5 else []))
    assert outcome(archive(b"\x80\x02" + data + b".", [bytes(24)])) is not None


def test_the_tensor_of_these_tests_can_be():
    data = made_by(V2, storage(), 1, (2, 2), (2, 1), True, hooks())
    file = io.BytesIO(archive(b"\x80\x02" + data + b".", [bytes(24)]))
    assert tracejit.load(file).shape == (2, 2)


NESTED = pickle.EMPTY_TUPLE + pickle.TUPLE1 * 200_000
HOSTILE = {
    "a key nested without end": pickle.EMPTY_DICT + NESTED + b"N" + pickle.SETITEM,
    "a set of keys nested without end":
        pickle.EMPTY_SET + pickle.MARK + NESTED + pickle.ADDITEMS,
    "a text longer than the file": pickle.BINUNICODE + b"\xff\xff\xff\x7fabc",
    "bytes longer than memory": pickle.BINBYTES8 + b"\xff" * 7 + b"\x7f",
    "a negative length": pickle.BINSTRING + b"\xff\xff\xff\xff",
    "a memo that is not there": pickle.BINGET + b"\x05",
    "nothing": b"",
    "no mark": pickle.NONE + pickle.TUPLE,
    "an unhashable key": pickle.EMPTY_DICT + pickle.EMPTY_LIST + pickle.NONE + pickle.SETITEM,
    "items of a list": pickle.EMPTY_LIST + pickle.NONE + pickle.NONE + pickle.SETITEM,
    "an item appended to a dict": pickle.EMPTY_DICT + pickle.NONE + pickle.APPEND,
    "a name without end": pickle.GLOBAL + b"x" * 5000,
    "a call of a number": pickle.BININT1 + b"\x01" + pickle.EMPTY_TUPLE + pickle.REDUCE,
    "arguments that are no tuple": pickle.GLOBAL + b"torch\nSize\n" + pickle.EMPTY_LIST + b"R",
    "state for a list": pickle.EMPTY_LIST + pickle.EMPTY_DICT + pickle.BUILD,
    "state that hides a method": hooks() + pickle.dumps({"items": 1}, 2)[2:-1] + pickle.BUILD,
    "state for a function": pickle.GLOBAL + b"torch._utils\n_rebuild_tensor_v2\n"
        + pickle.dumps({"x": 1}, 2)[2:-1] + pickle.BUILD,
    "state for a class": pickle.GLOBAL + b"torch\nTensor\n" + pickle.dumps({"x": 1}, 2)[2:-1]
        + pickle.BUILD,
    "bytes of any size": made_by("builtins.bytearray", 1 << 60),
    "bytes in a codec that unpacks": made_by("_codecs.encode", "x", "zip"),
    "a device that is none": made_by("torch.device", "nowhere"),
    "a size of texts": made_by("torch.Size", ("a",)),
    "a parameter of a number": made_by("torch._utils._rebuild_parameter", 3, True, hooks()),
    "a tensor of another class": made_by("torch._tensor._rebuild_from_type_v2",
        pickle.GLOBAL + b"torch._utils\n_rebuild_tensor_v2\n",
        pickle.GLOBAL + b"builtins\nset\n", (), {}),
    "an extension code": pickle.EXT1 + b"\x01",
    "an old-style text": pickle.STRING + b"'a'\n",
    "a persistent id in text": pickle.PERSID + b"0\n",
    "a persistent id that is none": pickle.BININT1 + b"\x01" + pickle.BINPERSID,
    "an old protocol": pickle.PROTO + b"\x01" + pickle.NONE,
    "a protocol to come": pickle.PROTO + b"\x63" + pickle.NONE,
    "a sparse layout": made_by("torch.serialization._get_layout", "torch.sparse_coo"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_pickles_are_refused(what):
    assert outcome(archive(b"\x80\x02" + HOSTILE[what] + b".")) is not None


def test_archives_that_cannot_be():
    compressed = io.BytesIO()
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("archive/data.pkl", pickle.dumps([0] * 100_000, 2))
    assert "compressed" in str(outcome(compressed.getvalue()))
    assert "TorchScript" in str(outcome(archive(b"\x80\x02N.", **{"constants.pkl": b""})))
    assert "byte order" in str(outcome(archive(b"\x80\x02N.", byteorder=b"middle")))
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    assert outcome(empty.getvalue()) is not None
    with_other_entries = io.BytesIO()
    with zipfile.ZipFile(with_other_entries, "w") as made:
        made.writestr("a/b", b"")
    assert "data.pkl" in str(outcome(with_other_entries.getvalue()))


def test_old_files_that_cannot_be():
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save([torch.arange(5), torch.ones(2, 2)], file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    for length in range(0, len(data) - 1, 7):
        assert outcome(data[:length]) is not None
    chance = random.Random(1)
    for _ in range(150):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        outcome(bytes(damaged))
    for other in (b"ustar", b"not a file of any kind", bytes(600), pickle.dumps([1]),
                  b"\x80\x02K\x01."):
        assert outcome(other) is not None


class Point:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)


def test_classes_that_the_user_allows():
    file, slotted = io.BytesIO(), Slotted()
    slotted.x = 2
    tracejit.save([Point(1), slotted], file)
    data = file.getvalue()
    names = [f"{Point.__module__}.{cls.__name__}" for cls in (Point, Slotted)]
    listed = tracejit.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert set(listed) >= set(names)
    assert names[0] in str(outcome(data))
    with tracejit.serialization.safe_globals([Point]):
        assert names[1] in str(outcome(data))
        assert tracejit.serialization.get_safe_globals() == [Point]
        with tracejit.serialization.safe_globals([(Slotted, names[1])]):
            found = tracejit.load(io.BytesIO(data))
    assert found[0].x == 1 and found[1].x == 2 and outcome(data) is not None
    tracejit.serialization.add_safe_globals([Point])
    tracejit.serialization.clear_safe_globals()
    assert tracejit.serialization.get_safe_globals() == []


def test_where_tensors_go():
    data = archive(b"\x80\x02" + made_by(V2, storage(place="cuda:3"), 0, (2,), (1,), False, hooks())
                   + b".", [bytes(24)])
    load = lambda where: tracejit.load(io.BytesIO(data), map_location=where)  # noqa: E731
    if not tracejit.cuda.is_available():
        assert "map_location=tracejit.device('cpu')" in str(outcome(data))
    seen = []
    for where in ("cpu", tracejit.device("cpu"), {"cuda:3": "cpu"}, lambda s, place: s):
        assert load(where).device.type == "cpu"
    load(lambda s, place: seen.append((s.nbytes(), place)) or s)
    assert seen == [(24, "cuda:3")]
    with pytest.raises(TypeError, match="map_location"):
        load(3)
    with pytest.raises(ZeroDivisionError):  # the caller's own error is no damage
        load(lambda s, place: 1 / 0)
    if not tracejit.cuda.is_available():
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            load(None)


def test_a_captured_function_that_loads_is_not_replayed(tmp_path):
    tracejit.save(tracejit.ones(1), tmp_path / "x.pt")

    @tracejit.script
    def add(x):
        return x + tracejit.load(tmp_path / "x.pt")

    @tracejit.script
    def keep(x):
        y = x * 2
        tracejit.save(y, tmp_path / "y.pt")
        return y

    assert [add(tracejit.ones(1)).item() for _ in range(3)] == [2, 2, 2]
    tracejit.save(tracejit.ones(1) * 5, tmp_path / "x.pt")
    assert add(tracejit.ones(1)).item() == 6
    for k in range(3):
        keep(tracejit.full((2,), float(k)))
        assert tracejit.load(tmp_path / "y.pt").tolist() == [2 * k, 2 * k]
