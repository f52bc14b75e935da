"""Types for annotations of programs; PyTorch's `torch.types`."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO

from tracejit.core.eager.metadata import layout as _layout  # noqa: F401
from tracejit.core.eager.size import Size
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import device as _device
from tracejit.core.ops.types import dtype as _dtype  # noqa: F401

__all__ = ["Device", "FileLike", "Number"]

_bool, _bytes, _complex = builtins.bool, builtins.bytes, builtins.complex
_float, _int, _str = builtins.float, builtins.int, builtins.str

_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
_size = Size | list[int] | tuple[int, ...]

Number = int | float | bool
_Number = (int, float, bool)  # for isinstance
FileLike = str | os.PathLike[str] | IO[bytes]
Device = _device | str | int | None
