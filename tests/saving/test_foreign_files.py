"""What `load` says of files that it did not write, and memory that is a file."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

import tracejit as tj
from tracejit.saving import foreign


def zipped(names, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name in names:
            archive.writestr(name, "content " * 20)
    return file.getvalue()


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(__file__, "x.py")
    return file.getvalue()


def numpy_archive():
    file = io.BytesIO()
    np.savez(file, a=np.ones(2), b=np.zeros(3))
    return file.getvalue()


def numpy_array():
    file = io.BytesIO()
    np.save(file, np.ones(2))
    return file.getvalue()


def safetensors():
    header = json.dumps({"x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).encode()
    return len(header).to_bytes(8, "little") + header


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
SCRIPT = ["m/data.pkl", "m/code/__torch__.py", "m/constants.pkl", "m/version"]
FOREIGN = {
    "TorchScript": zipped(SCRIPT),
    "TorchScript archive, as torch.jit.save": zipped(SCRIPT, zipfile.ZIP_DEFLATED),
    "HDF5": b"\x89HDF\r\n\x1a\n" + b"\0" * 90,
    "page of HTML": b"\n <!DOCTYPE html>\n<html><body>Sign in</body></html>",
    "git lfs pull": POINTER,
    "plain pickle": pickle.dumps({"weights": [1.0, 2.0]}),
    "pickle.load reads": pickle.dumps(os.getcwd, protocol=2),
    "an ONNX model": b"\x08\x07\x12\x07pytorch\x1a\x052.1.0:\x99\x01",
    "NumPy array": numpy_array(),
    "(.npz)": numpy_archive(),
    "zip archive with other things": zipped(["a/b.txt", "c.txt"]),
    "gzip.open": gzip.compress(b"x" * 99),
    "bz2.open": bz2.compress(b"x" * 99),
    "lzma.open": lzma.compress(b"x" * 99),
    "tar archive": tarred(),
    "safetensors": safetensors(),
    "PNG image": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
    "JPEG image": b"\xff\xd8\xff\xe0" + b"\0" * 40,
    "JSON text": b'{"a": [1, 2]}',
    "GGUF": b"GGUF\x03\0\0\0",
    "Excel": zipped(["xl/workbook.xml", "[Content_Types].xml"]),
}


@pytest.mark.parametrize("words", FOREIGN)
@pytest.mark.parametrize("weights_only", [True, False])
def test_load_says_what_a_file_is(words, weights_only, tmp_path):
    path = tmp_path / "file.pt"
    path.write_bytes(FOREIGN[words])
    for given in (path, io.BytesIO(FOREIGN[words])):
        with pytest.raises((pickle.UnpicklingError, RuntimeError)) as raised:
            tj.load(given, weights_only=weights_only)
        assert words in str(raised.value)


def test_an_empty_file_is_said_to_be_empty():
    with pytest.raises(EOFError, match="empty"):
        tj.load(io.BytesIO())


@pytest.mark.parametrize("zipped_format", [True, False])
def test_what_save_wrote_is_nothing_foreign(zipped_format):
    for value in ({"a": tj.ones(3), "b": [1, "x"]}, tj.zeros(0), "text", None, {}):
        file = io.BytesIO(b"before")
        file.seek(6)
        tj.save(value, file, _use_new_zipfile_serialization=zipped_format)
        file.seek(6)
        assert zipped_format or foreign.what_is(file) is None
        assert file.tell() == 6
        again = io.BytesIO(file.getvalue()[6:])
        assert repr(tj.load(again)) == repr(value)


def test_load_reads_safetensors_in_the_order_of_the_file(tmp_path):
    from tracejit import safetensors as st

    pytest.importorskip("safetensors")
    path = tmp_path / "w.safetensors"
    wide, narrow = tj.ones(3, dtype=tj.float64), tj.zeros(2)
    st.save_file({"a": narrow, "z": wide, "b": narrow + 1}, path)
    length = int.from_bytes(path.read_bytes()[:8], "little")
    order = list(json.loads(path.read_bytes()[8 : 8 + length]))
    assert order[0] == "z", "the widest elements lie first"
    for found in (tj.load(path), tj.load(str(path), map_location="cpu"), st.load_file(path)):
        assert list(found) == order
        assert tj.equal(found["z"], wide) and tj.equal(found["b"], narrow + 1)


# -- memory that is a file -------------------------------------------------------------------------


def test_storages_of_files(tmp_path):
    path = tmp_path / "numbers"
    np.arange(4, dtype=np.float32).tofile(path)
    private = tj.UntypedStorage.from_file(str(path), False, 16)
    assert private.nbytes() == 16
    assert tj.asarray(private, dtype=tj.uint8).view(tj.float32).tolist() == [0, 1, 2, 3]
    private.fill_(9)
    assert np.fromfile(path, np.float32).tolist() == [0, 1, 2, 3], "writes stay in memory"
    shared = tj.FloatStorage.from_file(str(path), True, 6)
    shared[5] = 7.0
    assert len(shared) == 6 and np.fromfile(path, np.float32).tolist() == [0, 1, 2, 3, 0, 7]
    with pytest.raises(RuntimeError, match="derived classes"):
        tj.TypedStorage.from_file(str(path), True, 6)
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <400>"):
        tj.UntypedStorage.from_file(str(path), False, 400)
    with pytest.raises(RuntimeError, match="unable to open file"):
        tj.UntypedStorage.from_file(str(tmp_path / "none"), False, 4)


def test_the_error_of_a_files_own_methods_comes_first():
    class Remote:
        def tell(self):
            raise NotImplementedError("tell is not there yet")

        def seek(self, offset, whence=0):
            raise NotImplementedError

        def read(self):
            raise NotImplementedError

    with pytest.raises(NotImplementedError, match="tell is not there yet"):
        tj.load(Remote())
