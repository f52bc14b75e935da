"""Numbers that a replay computes on the host: runtime numbers that are returned or written back.

In: the numbers that output specs need, and the sources of their roots. Out: one generated function
of the arguments. Made by `runtime.build`, called at the start of each replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.guards import read_from
from tracejit.jit.capture.looking import instance_dict, reads_plainly
from tracejit.jit.capture.number_text import NumberText


def reader(
    numbers: Sequence[Any], source_of: Callable[[Any], Source]
) -> Callable[[tuple], tuple] | None:
    """Return `read(arguments)`, which gives the values of these numbers in another call; None if
    there are no numbers."""
    if not numbers:
        return None
    lines: list[str] = []
    constants: dict[str, Any] = {"read_from": read_from}
    text = NumberText(lambda root: _read(source_of(root), lines, constants), lines, constants)
    names = [text.of(number) for number in numbers]
    lines.append(f"return ({', '.join(names)},)")
    source = "def read(arguments):\n    " + "\n    ".join(lines)
    exec(compile(source, "<numbers>", "exec"), constants)  # our own text, made above
    return constants["read"]


def _read(source: Source, lines: list[str], constants: dict[str, Any]) -> str:
    """Add a line that reads a source; return the variable with the result."""
    name, constant = f"r{len(constants)}", f"p{len(constants)}"
    constants[constant] = source
    lines.append(f"{name} = {_reading(source, constant, constants)}")
    return name


def _reading(source: Source, constant: str, constants: dict[str, Any]) -> str:
    owner = source.parent
    if source.how == "argument":
        return f"arguments[{source.key}]"
    if source.how == "attr" and owner is not None and owner.how in ("argument", "constant"):
        constants[f"{constant}_owner"] = owner.value
        whole = f"arguments[{owner.key}]" if owner.how == "argument" else f"{constant}_owner"
        if not reads_plainly(owner.value):
            constants["instance_dict"] = instance_dict
            return f"instance_dict({whole})[{source.key!r}]"
        return f"{whole}.__dict__[{source.key!r}]"
    return f"read_from({constant}, arguments)"
