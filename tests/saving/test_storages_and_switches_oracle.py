"""Saved storages, switches of saving and loading, and what files have to be able to do."""

import io
import mmap
import zipfile

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
LIBS = pytest.mark.parametrize("lib", [torch, tracejit])
NEW = pytest.mark.parametrize("new", [True, False])


def storages(lib):
    x = lib.arange(4.0)
    return x, x.storage(), x.storage()


@NEW
@pytest.mark.parametrize("reader", [torch, tracejit])
@pytest.mark.parametrize("writer", [torch, tracejit])
@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_come_back_over_the_same_memory(writer, reader, new, weights_only):
    file = io.BytesIO()
    writer.save(storages(writer), file, _use_new_zipfile_serialization=new)
    file.seek(0)
    x, one, two = reader.load(file, weights_only=weights_only)
    x.fill_(7)
    assert one.tolist() == two.tolist() == [7.0] * 4
    assert type(one).__name__ == "TypedStorage" and one.dtype is reader.float32


@LIBS
def test_bytes_come_back_as_numbers(lib):
    file = io.BytesIO()
    lib.save(lib.tensor([1.0]).untyped_storage(), file)
    file.seek(0)
    found = lib.load(file)
    assert type(found).__name__ == "TypedStorage" and found.dtype is lib.uint8
    assert found.tolist() == [0, 0, 128, 63]


@LIBS
def test_a_storage_and_a_tensor_of_another_type(lib):
    x = lib.ones(2)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        lib.save([x.storage(), x.view(lib.int32)], io.BytesIO())


@LIBS
@NEW
def test_what_is_empty_is_saved_as_any_type(lib, new):
    x, file = lib.tensor([]), io.BytesIO()
    storage = lib.TypedStorage(wrap_storage=x.untyped_storage(), dtype=lib.bool)
    lib.save([x, x.view(lib.int64), storage, x], file, _use_new_zipfile_serialization=new)
    file.seek(0)
    found = lib.load(file, weights_only=False)
    assert [y.dtype for y in found] == [lib.float32, lib.int64, lib.bool, lib.float32]
    assert [len(y) for y in found] == [0] * 4


@LIBS
@NEW
def test_a_file_that_is_open_still_is_written_out(lib, new, tmp_path):
    with open(tmp_path / "f", "wb") as file:
        lib.save(lib.ones(2), file, _use_new_zipfile_serialization=new)
        assert lib.load(tmp_path / "f").tolist() == [1, 1]


class Plain:
    """A file that has what loading needs, and no more."""

    def __init__(self, file):
        for name in ("read", "readline", "seek", "tell"):
            setattr(self, name, getattr(file, name))


@LIBS
@NEW
def test_a_file_that_does_not_say_that_it_can_be_sought(lib, new):
    file = io.BytesIO()
    lib.save(lib.ones(2), file, _use_new_zipfile_serialization=new)
    file.seek(0)
    assert lib.load(Plain(file)).tolist() == [1, 1]


def unmarked(lib):
    """A saved tensor whose file does not record its byte order."""
    file, made = io.BytesIO(), io.BytesIO()
    lib.save(lib.tensor([1, 256], dtype=lib.int16), file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if not name.endswith("byteorder"):
                new.writestr(name, old.read(name))
    made.seek(0)
    return made


@LIBS
def test_byte_order(lib):
    s = lib.serialization
    assert s.get_default_load_endianness() is None
    found = []
    try:
        for order in (s.LoadEndianness.LITTLE, s.LoadEndianness.BIG):
            s.set_default_load_endianness(order)
            found.append(lib.load(unmarked(lib)).tolist())
    finally:
        s.set_default_load_endianness(None)
    assert found == [[1, 256], [256, 1]]
    with pytest.raises(TypeError, match="Invalid argument type"):
        s.set_default_load_endianness("big")


@LIBS
def test_writes_to_mapped_files(lib, tmp_path):
    path, s = tmp_path / "f", lib.serialization
    lib.save(lib.zeros(3), path)
    lib.load(path, mmap=True).fill_(1)
    assert lib.load(path).tolist() == [0, 0, 0]
    with s.set_default_mmap_options(mmap.MAP_SHARED):
        assert s.get_default_mmap_options() == mmap.MAP_SHARED
        lib.load(path, mmap=True).fill_(2)
    assert s.get_default_mmap_options() == mmap.MAP_PRIVATE
    with open(path, "rb") as file:
        assert file.read().count(b"\0\0\0\x40" * 3) == 1
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        s.set_default_mmap_options(7)


@LIBS
def test_elements_left_out(lib, tmp_path):
    path = tmp_path / "f"
    with lib.serialization.skip_data():
        lib.save(lib.ones(3), path)
    assert lib.load(path).tolist() == [0, 0, 0]
    lib.save(lib.ones(3), path)
    with lib.serialization.skip_data():
        assert lib.load(path).shape == (3,)


@LIBS
def test_names(lib):
    assert issubclass(lib.serialization.SourceChangeWarning, Warning)
    assert lib.serialization.get_crc32_options() is True
    lib.serialization.set_crc32_options(True)


@LIBS
@pytest.mark.parametrize("weights_only", [True, False])
def test_texts_of_python_2(lib, weights_only):
    text = "\u017c".encode()
    old, new = io.BytesIO(), io.BytesIO()
    lib.save(1, old)
    with zipfile.ZipFile(old) as given, zipfile.ZipFile(new, "w") as made:
        for name in given.namelist():
            pickled = b"\x80\x02U\x02" + text + b"."
            made.writestr(name, pickled if name.endswith("data.pkl") else given.read(name))

    def loaded(**how):
        new.seek(0)
        return lib.load(new, weights_only=weights_only, **how)

    assert loaded() == loaded(encoding="utf-8") == "\u017c"
    assert loaded(encoding="latin1") == text.decode("latin1")
    assert loaded(encoding="bytes") == text
