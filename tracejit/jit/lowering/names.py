"""Names in kernel texts: constants, functions and their imports, sizes.

In: what `printing.py` comes across. Out: a text for it, and the module's head that makes it
defined. Only this file decides where a function in an op's template comes from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering import abi, accumulate, half, philox, vector_math
from tracejit.jit.lowering.index import size_key

_CALLED = re.compile(r"\b([a-z]\w*)(?=\()")
_KEYWORDS = {"if", "else", "and", "or", "not", "in"}
_BUILTINS = {"abs", "min", "max", "bool", "int"}
_NUMBERS = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)
_ROUNDING = {"floor", "ceil", "trunc", "rint", "fmod"}


class Names:
    """Collects what a text refers to."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.constants: dict[tuple[str, str], str] = {}
        self.sizes: list[SizeLike] = []
        self._size_names: dict[Any, str] = {}

    # -- sizes ---------------------------------------------------------------------------------
    def size(self, size: SizeLike) -> str:
        """Return a text for a size: a number, or a name bound to sizes[k]."""
        if type(size) is int:
            return str(size) if size >= 0 else f"({size})"
        return self.entry(size)

    def entry(self, size: SizeLike) -> str:
        """Return a name bound to sizes[k], for numbers too."""
        key = size_key(size)
        if key not in self._size_names:
            self._size_names[key] = f"n{len(self.sizes)}"
            self.sizes.append(size)
        return self._size_names[key]

    # -- constants and functions ---------------------------------------------------------------
    def number(self, value: Any, dtype: str) -> str:
        """Return a typed constant; floats get a name at the top of the module."""
        if dtype == "bool":
            return str(bool(value))
        if dtype == "int64":
            return f"({value})" if value < 0 else str(value)
        self.imported("numpy", dtype)
        if not dtype.startswith("float"):
            return f"{dtype}({value})"
        text = f"{dtype}({self._float(value)})"
        return self.constants.setdefault((dtype, text), f"c{len(self.constants)}")

    def _float(self, value: float) -> str:
        if math.isnan(value):
            self.imported("math", "nan")
            return "nan"
        if math.isinf(value):
            self.imported("math", "inf")
            return "inf" if value > 0 else "-inf"
        return repr(float(value))

    def imported(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name.split(" as ")[-1]

    def pointer(self, dtype: str) -> str:
        return self.imported("tracejit.jit.lowering.abi", f"{dtype}_pointer")

    def scratch(self, dtype: str) -> str:
        return self.imported("tracejit.jit.lowering.abi", f"{abi.ELEMENTS[dtype]}_scratch")

    def template(
        self, template: str, arguments: Sequence[str], dtypes: Sequence[str], dtype: str
    ) -> str:
        """Return a template with its arguments put in and its functions given their typed names."""
        kind = next((d for d in (*dtypes, dtype) if d.startswith("float")), dtype)
        text = _CALLED.sub(lambda m: self.function(m.group(1), kind), template)
        return text.format(*arguments)

    def function(self, name: str, dtype: str) -> str:
        if name in _NUMBERS:
            return self.imported("numpy", name)
        if name in _KEYWORDS or name in _BUILTINS:
            return name
        if name in half.CONVERSIONS:
            return self.imported("tracejit.jit.lowering.half", name)
        if name.startswith("philox_") and name[7:] in philox.RANDOM_FUNCTIONS:
            function = philox.RANDOM_FUNCTIONS[name[7:]][0]
            return self.imported(function.__module__, f"{function.__name__} as {name}")
        if (name, dtype) in vector_math.FUNCTIONS:
            function = vector_math.FUNCTIONS[name, dtype]
            return self.imported(function.__module__, function.__name__)
        if name in _ROUNDING or hasattr(np, name):
            return self.imported("numpy", name)
        raise NotImplementedError(f"kernels have no function {name!r} of {dtype}")

    def combine(self, template: str, so_far: str, body: str, dtype: str) -> str:
        """Return the text of one step of a reduction."""
        known = accumulate.ACCUMULATORS.get(template)
        if known is not None and dtype in ("float32", "float64"):
            name = self.imported("tracejit.jit.lowering.accumulate", f"{known}_{dtype}")
            return f"{name}({so_far}, {body})"
        text = _CALLED.sub(lambda m: self.function(m.group(1), dtype), template)
        text = text.replace("{a}", so_far).replace("{b}", body)
        narrow = dtype in ("int8", "int16", "int32", "uint8")
        return f"{self.imported('numpy', dtype)}({text})" if narrow else text

    def head(self, contract: bool) -> list[str]:
        """Return imports and constants at the top of the module."""
        lines = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        if lines:
            lines.append("")
        if not contract:
            lines.append("FASTMATH = ()  # every operation rounds on its own, as in NumPy")
        lines += [f"{name} = {text}" for (_, text), name in self.constants.items()]
        return [*lines, ""] if self.constants or not contract else lines


def has_function(name: str, dtype: str) -> bool:
    """Return True if kernels can call a function of an op's template."""
    try:
        Names().function(name, dtype)
    except NotImplementedError:
        return False
    return True
