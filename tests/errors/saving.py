"""Files that cannot be written or read."""

from __future__ import annotations

import io
import pickle
import zipfile

import tracejit as tj
from tests.errors.control_flow import Box, data
from tests.errors.entries import raises


def file_of(data, protocol=2):
    """Return a file with a plain pickle."""
    return io.BytesIO(pickle.dumps(data, protocol))


def archive_of(**entries):
    """Return an archive with these entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in entries.items():
            archive.writestr(f"archive/{name}", text)
    file.seek(0)
    return file


@raises(RuntimeError, "Parent directory /nowhere/of/that/name does not exist.")
def folder_is_missing(jit):
    tj.save(data(), "/nowhere/of/that/name/file.pt")  # here


@raises(
    AttributeError,
    "expected 'f' to be string, path, or a file-like object with a 'write' attribute",
)
def saved_to_no_file(jit):
    tj.save(data(), None)  # here


@raises(EOFError, "Ran out of input: the file is empty")
def empty_file(jit):
    tj.load(io.BytesIO())  # here


@raises(
    AttributeError,
    "'int' object has no attribute 'seek'. You can only tracejit.load from a file that "
    "is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load "
    "from it instead.",
)
def loaded_from_no_file(jit):
    tj.load(3)  # here


@raises(TypeError, "map_location: expected a device, a dict or a function, got int")
def unknown_map_location(jit):
    file = io.BytesIO()
    tj.save(data(), file)
    file.seek(0)
    tj.load(file, map_location=3)  # here


@raises(ValueError, "f must be a file path in order to use the mmap argument")
def mapped_memory_of_no_path(jit):
    tj.load(io.BytesIO(b"text"), mmap=True)  # here


@raises(
    pickle.UnpicklingError,
    "Weights only load failed: a file may hold tensors, parameters, numbers, texts and "
    "plain containers of them; nothing in it is executed.\n\tWeightsUnpickler error: "
    "Unsupported global: GLOBAL tests.errors.control_flow.Box was not an allowed global "
    "by default. Please use "
    "`tracejit.serialization.add_safe_globals([tests.errors.control_flow.Box])` or the "
    "`tracejit.serialization.safe_globals([tests.errors.control_flow.Box])` context "
    "manager to allowlist this global if you trust this class/function.",
)
def object_of_the_users(jit):
    file = io.BytesIO()
    tj.save(Box(a=1), file)
    file.seek(0)
    tj.load(file)  # here


@raises(
    pickle.UnpicklingError,
    "Invalid magic number; corrupt file? The file is a plain pickle: if you trust it, "
    "pickle.load reads it. load reads files that `save` or `torch.save` wrote",
)
def plain_pickle(jit):
    tj.load(file_of({"a": 1}))  # here


@raises(pickle.UnpicklingError, "Unsupported operand 110")
def text_file(jit):
    tj.load(io.BytesIO(b"not a pickle at all"))  # here


@raises(
    RuntimeError,
    "the file is a zip archive with other things in it than data.pkl. load reads files "
    "that `save` or `torch.save` wrote",
)
def archive_without_a_pickle(jit):
    tj.load(archive_of(other="text"))  # here


@raises(
    RuntimeError,
    "the file is a TorchScript archive, as torch.jit.save writes it: it holds a program, "
    "which `torch.jit.load` of PyTorch runs. Save the module's state_dict() there, and "
    "load that here",
)
def program_of_torchscript(jit):
    tj.load(archive_of(**{"data.pkl": "x", "constants.pkl": "y", "code/__torch__.py": "z"}))  # here


@raises(
    RuntimeError,
    "failed reading zip archive: unknown byte order 'middle'. The file is damaged: it "
    "was not saved properly, not transferred completely, or modified after saving.",
)
def unknown_byte_order(jit):
    tj.load(archive_of(**{"data.pkl": "x", "byteorder": "middle"}))  # here


@raises(
    TypeError,
    "Invalid argument type in function set_default_load_endianness: expected a "
    "LoadEndianness or None, got int",
)
def unknown_endianness(jit):
    tj.serialization.set_default_load_endianness(3)  # here


@raises(TypeError, "Expected a class, a function or a tuple, got 3")
def unknown_safe_global(jit):
    tj.serialization.add_safe_globals([3])  # here
