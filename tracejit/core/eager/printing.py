"""Printing of tensors as PyTorch does.

In: a concrete tensor. Out: text such as `tensor([1., 2.], requires_grad=True)`. Computed with NumPy
only, so printing never records anything. Called by `Tensor.__repr__`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.core.eager.interchange import wide
from tracejit.core.eager.origins import LOST, standing
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState
from tracejit.core.ops.types import bool_, dtype_of_number, get_default_dtype, int64


class Options:
    """Options of printing.

    precision  digits after the point
    threshold  tensors of more elements are summarised to `edgeitems` at each end of a dimension
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = Options()
_PROFILES: dict[str, Any] = {
    "default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80),
}  # fmt: skip


def set_printoptions(precision: int | None = None, threshold: float | None = None,
                     edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None,
                     sci_mode: bool | None = None) -> None:
    """Set how tensors print; `profile` is "default", "short" or "full".

    >>> import tracejit
    >>> tracejit.set_printoptions(profile="default")
    """
    if active.tracer is not None:
        active.tracer.break_graph(None, "the function sets print options")
    if profile is not None:
        options.precision, options.threshold = _PROFILES[profile][:2]
        options.edgeitems, options.linewidth = _PROFILES[profile][2:]
    options.precision = options.precision if precision is None else precision
    options.threshold = options.threshold if threshold is None else threshold
    options.edgeitems = options.edgeitems if edgeitems is None else edgeitems
    options.linewidth = options.linewidth if linewidth is None else linewidth
    options.sci_mode = sci_mode


class Formatter:
    """Format of one tensor's elements: all in one width, fixed or scientific."""

    def __init__(self, array: np.ndarray):
        self.kind = array.dtype.kind
        self.whole, self.scientific, self.width = True, False, 1
        if self.kind == "f":
            self._look_at(array)
        elif array.size:
            self.width = max(len(str(v)) for v in array.ravel().tolist())

    def _look_at(self, array: np.ndarray) -> None:
        values = array[np.isfinite(array) & (array != 0)].astype(np.float64).ravel()
        if not values.size:
            return
        low, high = float(np.abs(values).min()), float(np.abs(values).max())
        self.whole = bool((values == np.ceil(values)).all())
        wide_range = high / low > 1000.0 or high > 1.0e8
        self.scientific = wide_range or not self.whole and low < 1.0e-4
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max(len(self._number(v)) for v in values.tolist())

    def _number(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if not self.whole:
            return f"{value:.{options.precision}f}"
        return f"{value:.0f}" + ("." if math.isfinite(value) else "")

    def __call__(self, value: Any) -> str:
        return (self._number(value) if self.kind == "f" else str(value)).rjust(self.width)


class ComplexFormatter:
    """Format of complex numbers: one `Formatter` for the real parts, one for the imaginary
    parts."""

    def __init__(self, array: np.ndarray):
        self.real, self.imag = Formatter(array.real.copy()), Formatter(array.imag.copy())
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(abs(value.imag)).lstrip()
        sign = "-" if math.copysign(1, value.imag) < 0 else "+"
        return self.real(value.real) + sign + imag + "j"


def text(x: TensorState) -> str:
    """Return the `repr` of a concrete tensor."""
    if x._device.type == "meta":
        return _with_suffixes("tensor(...", _suffixes(x), len("tensor("))
    array = x.array if x._device.type == "cpu" else x.array.get()
    prefix = "tensor("
    body = elements(wide(array), len(prefix))
    return _with_suffixes(prefix + body, _suffixes(x), len(prefix))


def elements(array: np.ndarray, indent: int) -> str:
    """Return the elements as text; lines after the first start `indent` characters from the
    edge."""
    if array.size == 0:
        return "[]"
    summarize = array.size > options.threshold
    shown = _edges(array) if summarize else array
    formatter = ComplexFormatter(shown) if array.dtype.kind == "c" else Formatter(shown)
    return _block(array, indent, formatter, summarize)


def _edges(array: np.ndarray) -> np.ndarray:
    """Return the elements that a summary shows."""
    for axis, size in enumerate(array.shape):
        if size > 2 * options.edgeitems:
            ends = np.r_[: options.edgeitems, size - options.edgeitems : size]
            array = np.take(array, ends, axis)
    return array


def _block(array: np.ndarray, indent: int, formatter: Any, summarize: bool) -> str:
    if array.ndim == 0:
        return formatter(array.item())
    if array.ndim == 1:
        return _row(array, indent, formatter, summarize)
    edge = options.edgeitems
    parts = [_block(array[k], indent + 1, formatter, summarize)
             for k in _shown(len(array), summarize)]
    if summarize and len(array) > 2 * edge:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _shown(size: int, summarize: bool) -> list[int]:
    edge = options.edgeitems
    if summarize and size > 2 * edge:
        return [*range(edge), *range(size - edge, size)]
    return list(range(size))


def _row(array: np.ndarray, indent: int, formatter: Any, summarize: bool) -> str:
    per_line = max(1, (options.linewidth - indent) // (formatter.width + 2))
    items = [formatter(array[k].item()) for k in _shown(len(array), summarize)]
    if summarize and len(array) > 2 * options.edgeitems:
        items.insert(options.edgeitems, " ...")
    lines = [", ".join(items[k : k + per_line]) for k in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _suffixes(x: Any) -> list[str]:
    found = []
    if x._device.type != "cpu":
        found.append(f"device='{x._device}'")
    usual = x._dtype in (get_default_dtype(), dtype_of_number(1j), int64, bool_)
    if x._device.type == "meta":
        found.append(f"size={x._shape}")
        usual = x._dtype is get_default_dtype()
    elif 0 in x._shape:
        if len(x._shape) != 1:
            found.append(f"size={x._shape}")
        usual = x._dtype is get_default_dtype()
    if not usual:
        found.append(f"dtype={x._dtype!r}")
    if x._view is not None and standing(x) == LOST:
        found.append("grad_fn=<Invalid>")
    elif x.grad_fn is not None:
        found.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        found.append("requires_grad=True")
    tangent = None if active.level is None else active.level.tangent(x)
    return found if tangent is None else [*found, f"tangent={tangent}"]


def _with_suffixes(start: str, suffixes: list[str], indent: int) -> str:
    result = start
    length = len(start) - start.rfind("\n") - 1 if "\n" in start else len(start)
    for suffix in suffixes:
        if length + len(suffix) + 2 > options.linewidth:
            result += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            result += ", " + suffix
            length += len(suffix) + 2
    return result + ")"
