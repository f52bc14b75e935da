"""Programs for other runtimes; PyTorch's `torch.onnx`, which is not supported here.

In: a module to be written as ONNX. Out: an error that says so.
"""

from __future__ import annotations

from typing import Any, NoReturn


def export(model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: programs are not written for other runtimes."""
    raise NotImplementedError("onnx.export: programs are not written as ONNX; save "
                              "model.state_dict() with tracejit.save, which PyTorch loads, and "
                              "export it there")


def is_in_onnx_export() -> bool:
    """Return False: no module is written as ONNX."""
    return False
