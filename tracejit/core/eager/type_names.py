"""PyTorch's names of element types in messages: Float, and tracejit.FloatTensor.

In: dtypes and devices. Out: text. Called by error messages and `tensor.type()`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.types import SCALAR_NAMES, dtype, get_default_dtype


def scalar_name(d: dtype) -> str:
    """Return the scalar type of a dtype, e.g. "Float" of float32."""
    return SCALAR_NAMES[d.name]


def tensor_type_name(d: dtype, device: Any = None) -> str:
    """Return the name of a tensor type, e.g. "tracejit.cuda.FloatTensor"."""
    place = "" if device is None or device.type == "cpu" else f"{device.type}."
    return f"tracejit.{place}{scalar_name(d)}Tensor"


def dtype_of_type_name(name: str) -> tuple[dtype, str]:
    """Return (dtype, device type) of "tracejit.FloatTensor" or "torch.cuda.LongTensor";
    "torch.Tensor" is the default dtype.

    >>> dtype_of_type_name("tracejit.LongTensor")
    (tracejit.int64, 'cpu')
    """
    parts = name.split(".")
    scalar = parts[-1].removesuffix("Tensor")
    if parts[0] in ("tracejit", "torch") and parts[1:] == ["Tensor"]:
        return get_default_dtype(), "cpu"
    for dtype_name, known in SCALAR_NAMES.items():
        if known == scalar and parts[0] in ("tracejit", "torch"):
            return dtype._by_name[dtype_name], "cuda" if "cuda" in parts[1:] else "cpu"
    raise ValueError(f"invalid type: {name!r}")
