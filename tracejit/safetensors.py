"""Tensors in the safetensors format, under the names of the `safetensors` package.

In: a dict of tensors, or a file. Out: the file, or the dict. Needs that package, which comes with
`pip install tracejit[safetensors]`; ImportError says so where it is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracejit.core.eager.construction import from_numpy
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import is_contiguous, of_result
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import CPU, as_device
from tracejit.core.ops.types import dtype, dtype_named

_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip


def _library() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise ImportError("tracejit.safetensors needs the safetensors package, which is not "
                          f"installed ({error}): pip install tracejit[safetensors]") from error
    return safetensors


def save_file(tensors: Mapping[str, Any], filename: str | os.PathLike,
              metadata: dict[str, str] | None = None) -> None:
    """Write tensors by name to a file.

    Raises ValueError for what is no tensor, is not contiguous, or has a dtype the format has not;
    RuntimeError for tensors over the same memory, which the format cannot tell.
    """
    library = _library()
    arrays = _arrays(tensors)  # alive as long as the package reads them
    library.serialize_file(_described(library, arrays), filename, metadata=metadata)


def save(tensors: Mapping[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes that `save_file` writes."""
    library = _library()
    arrays = _arrays(tensors)
    return bytes(library.serialize(_described(library, arrays), metadata=metadata))


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Any]:
    """Load the tensors of a file, by name.

    Raises FileNotFoundError, and SafetensorError for a file of another format.
    """
    with open(filename, "rb") as file:
        return load(file.read(), device)


def load(data: bytes, device: Any = "cpu") -> dict[str, Any]:
    """Load the tensors of a file's bytes, by name."""
    _tell_recorder("loads tensors")
    found = {name: _tensor(name, view) for name, view in _library().deserialize(data)}
    length = int.from_bytes(data[:8], "little")
    order = json.loads(data[8 : 8 + length])  # the names as they lie in the file
    return {name: found[name].to(as_device(device)) for name in order if name in found}


def _described(library: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: library.TensorSpec(dtype=x.dtype.name, shape=list(x.shape),
                                     data_ptr=x.ctypes.data, data_len=x.nbytes)
            for name, x in arrays.items()}


def _arrays(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    _tell_recorder("saves tensors")
    names = {kind: name for name, kind in _NAMES.items()}
    owners: dict[int, str] = {}
    arrays = {}
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected tracejit.Tensor but received "
                             f"{type(x)}")
        if x.dtype.name not in names:
            raise ValueError(f"Key `{name}` has dtype {x.dtype}, which the format does not have")
        array = x.detach().cpu().array
        if not is_contiguous(x):
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is "
                             "not allowed. It either means you are trying to save tensors which "
                             "are reference of each other in which case it's recommended to save "
                             "only the full tensors, and reslice at load time, or simply call "
                             "`.contiguous()` on your tensor to pack it before saving.")
        other = owners.setdefault(id(x._storage), name)
        if other != name and x.numel():
            raise RuntimeError(f"Some tensors share memory, this will lead to duplicate memory on "
                               f"disk and potential differences when loading them again: "
                               f"{[{other, name}]}")
        arrays[name] = array
    return arrays


def _tensor(name: str, view: dict[str, Any]) -> Any:
    if view["dtype"] not in _NAMES:
        raise ValueError(f"Key `{name}` has dtype {view['dtype']}, which tracejit does not have")
    kind: dtype = dtype_named(_NAMES[view["dtype"]])
    array = np.frombuffer(bytearray(view["data"]), kind.numpy).reshape(view["shape"])
    return of_result(array, kind, CPU) if kind.name == "bfloat16" else from_numpy(array)


def _tell_recorder(event: str) -> None:
    if active.tracer is not None:
        active.tracer.break_graph(None, f"the function {event}",
                                  "save and load outside the captured function")
