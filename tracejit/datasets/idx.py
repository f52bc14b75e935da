"""IDX format: the element type, the sizes and the elements of one array.

In: a path, of a file that gzip may have compressed. Out: a tensor. ValueError names the file and
its fault.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tracejit.core.eager.construction import from_numpy

_GZIP = b"\x1f\x8b"
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | os.PathLike) -> Any:
    """Read the array of an IDX file: uint8, int8, int16, int32, float32 or float64, of any shape.

    Raises FileNotFoundError. Raises ValueError for a file of another format, one that is cut short,
    has bytes left over, or that gzip cannot read.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     file.flush()
    ...     read_idx(file.name)
    tensor([[7, 8, 9]], dtype=tracejit.uint8)
    """
    path = Path(path)
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    with gzip.open(path, "rb") if packed else path.open("rb") as source:
        try:
            return from_numpy(_array(source, path))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: gzip cannot read it: {error}") from error


def _array(source: Any, path: Path) -> np.ndarray:
    start = source.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES:
        raise ValueError(f"{path}: not an IDX file: it starts with {start.hex(' ') or 'nothing'}")
    kind, dimensions = np.dtype(_TYPES[start[2]]), start[3]
    sizes = source.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise ValueError(f"{path}: the file ends within the sizes of its {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", sizes)
    wanted = math.prod(shape) * kind.itemsize
    data = source.read()  # all there is: a damaged size may be larger than any memory
    if len(data) != wanted:
        raise ValueError(f"{path}: {wanted} bytes of elements expected for shape {shape}, "
                         f"the file has {len(data)}")
    return np.frombuffer(data, kind).reshape(shape).astype(kind.newbyteorder("="))
