"""Summary of a tensor as HTML, for notebooks.

In: a tensor. Out: a table of shape, dtype, device, gradient and statistics, then its text. Called
by `Tensor._repr_html_`. Statistics are NumPy's, so nothing is recorded. While a function is
captured no elements are read: a notebook's look must not end a segment.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from tracejit.core.eager.interchange import wide
from tracejit.core.eager.metadata import strided
from tracejit.core.eager.recording import active
from tracejit.core.memory import Storage


def tensor_html(x: Any) -> str:
    """Return a table of what a tensor is, and its elements unless it is being captured."""
    captured = active.tracer is not None or getattr(x, "_storage", None) is None
    try:
        rows = [("shape", "×".join(map(str, x.shape)) or "one element"),
                ("dtype", str(x.dtype).partition(".")[2]), ("device", str(x.device)),
                ("grad", "required" if x.requires_grad else "not required")]
    except (RuntimeError, ValueError, NotImplementedError):  # a parameter without a shape yet
        return f"<pre>{escape(repr(x))}</pre>"
    if captured:
        return _table([*rows, ("elements", "not known while a function is captured")])
    if x.is_leaf and x.grad is not None:
        rows[-1] = ("grad", "required, and there is one")
    elif x.grad_fn is not None:
        rows[-1] = ("grad", f"of {x.grad_fn.name()}")
    return f"{_table([*rows, *_statistics(x)])}<pre>{escape(repr(x))}</pre>"


def _statistics(x: Any) -> list[tuple[str, str]]:
    """Return the least, the mean and the greatest element of a dense real tensor that has any."""
    if not isinstance(x._storage, Storage) or x.layout is not strided or x.dtype.is_complex:
        return []
    if x._device.type == "meta" or not x.numel():
        return []
    array = wide(x.array if x._device.type == "cpu" else x.array.get())
    with np.errstate(all="ignore"):
        mean = float(np.mean(array, dtype=np.float64))
    return [("min", f"{array.min():.6g}" if array.dtype != bool else str(array.min())),
            ("mean", f"{mean:.6g}"),
            ("max", f"{array.max():.6g}" if array.dtype != bool else str(array.max()))]


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table>{cells}</table>"
