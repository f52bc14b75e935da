"""Programs for other runtimes; PyTorch's `torch.onnx`, of which nothing is there.

In: a module to be written as ONNX. Out: an error that says so.
"""

from __future__ import annotations

from typing import Any, NoReturn


def export(model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: programs are not written for other runtimes."""
    raise NotImplementedError("onnx.export: programs are not written as ONNX; save "
                              "model.state_dict() with tracejit.save, which PyTorch loads, and "
                              "export it there")


def is_in_onnx_export() -> bool:
    """Whether a module is being written as ONNX: never."""
    return False
