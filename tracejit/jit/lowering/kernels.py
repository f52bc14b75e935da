"""Kernels: the whole text of one function, its identity, and several equal loops as one.

In: `Text`s of `printing.py`. Out: `Kernel`s and the operands and sizes of an instruction. Called by
`schedule.py`. Segments: elementwise groups with the same text but other buffers and extents (an
optimizer's update of each parameter) are one kernel that walks over them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.abi import VERSION
from tracejit.jit.lowering.columns import INDENT
from tracejit.jit.lowering.printing import Pointer, Text
from tracejit.jit.lowering.program import Kernel

SIGNATURE = "(buffers, operands, sizes, scratch, status, lo, hi):"


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [INDENT * depth + line for line in lines]


def single(text: Text, label: str, contract: bool) -> tuple[Kernel, list[Any], list[SizeLike]]:
    """Return (kernel, buffers in the order of operands, sizes) of one nest."""
    names = text.names
    lines = [
        f"{p.name} = {names.pointer(p.dtype)}(buffers, operands[{k}])"
        for k, p in enumerate(text.pointers)
    ]
    lines += [f"n{k} = sizes[{k}]" for k in range(len(names.sizes))]
    lines += text.before
    if text.loop:
        lines += _looped(text)
    else:
        lines += text.body
    kernel = kernel_of(text, lines, label, contract)
    return kernel, [p.buffer for p in text.pointers], list(names.sizes)


def _looped(text: Text) -> list[str]:
    """Return the loop over the range. If sums may be short, return two loops, of which a condition
    chooses one."""
    head = f"for {text.loop} in range(lo, hi):"
    lines = [head, *indented(text.body)]
    if text.short is None:
        return lines
    short = [head, *indented(text.short.body)]
    return [f"if {text.short.condition}:", *indented(short), "else:", *indented(lines)]


def kernel_of(text: Text, lines: Sequence[str], label: str, contract: bool) -> Kernel:
    """Return the kernel with this body. Its identity is the text without comments."""
    head = text.names.head(contract)
    bare = "\n".join([*head, *(line for line in lines if not line.lstrip().startswith("#"))])
    messages = "\n".join(text.messages)
    digest = hashlib.sha256(f"{VERSION}\n{bare}\n{messages}".encode()).hexdigest()[:32]
    name = f"{label}_{digest[:8]}"
    source = "\n".join([*head, "", f"def {name}{SIGNATURE}", *indented(lines), ""])
    return Kernel(name, source, digest, text.loops, text.scratch, text.messages)


def segment_key(text: Text) -> tuple | None:
    """Return a key, equal for nests that can be segments of one kernel; None for those that
    cannot."""
    # Segments differ in buffers and extents alone.
    if text.loop != "i" or text.names.sizes or text.messages or text.scratch:
        return None
    lines = [line for line in (*text.before, *text.body) if not line.lstrip().startswith("#")]
    pointers = tuple((p.name, p.dtype, p.written) for p in text.pointers)
    return tuple(lines), pointers, tuple(sorted(text.names.constants.items()))


def segmented(
    texts: Sequence[Text], extents: Sequence[SizeLike], label: str, contract: bool
) -> tuple[Kernel, list[Any], list[SizeLike]]:
    """Return (kernel, buffers, sizes) of one kernel for several nests of equal `segment_key`."""
    text = texts[0]
    each = [
        p
        for k, p in enumerate(text.pointers)
        if any(t.pointers[k].buffer != p.buffer for t in texts)
    ]
    shared = [p for p in text.pointers if p not in each]
    reads, writes = [p for p in each if not p.written], [p for p in each if p.written]
    own = {p.name for p in each}
    inside = any(own & set(re.findall(r"\w+", line)) for line in text.before)
    lines = _segment_lines(text, shared, reads, writes, inside)
    order = {p.name: k for k, p in enumerate(text.pointers)}
    operands = [p.buffer for p in shared if not p.written]
    for part in (reads, writes):
        operands += [t.pointers[order[p.name]].buffer for t in texts for p in part]
    offsets: list[SizeLike] = [0]
    for extent in extents:
        offsets.append(offsets[-1] + extent)
    return kernel_of(text, lines, label, contract), operands, [len(texts), *offsets]


def _segment_lines(
    text: Text,
    shared: Sequence[Pointer],
    reads: Sequence[Pointer],
    writes: Sequence[Pointer],
    inside: bool,
) -> list[str]:
    fetch = text.names.pointer
    lines = [f"{p.name} = {fetch(p.dtype)}(buffers, operands[{k}])" for k, p in enumerate(shared)]
    lines.append("segments = sizes[0]")
    lines += [] if inside else text.before
    within = [
        f"{p.name} = {fetch(p.dtype)}(buffers, "
        f"operands[{len(shared)} + {len(reads)} * segment + {k}])"
        for k, p in enumerate(reads)
    ]
    within += [
        f"{p.name} = {fetch(p.dtype)}(buffers, operands[{len(shared)} + {len(reads)} * segments"
        f" + {len(writes)} * segment + {k}])"
        for k, p in enumerate(writes)
    ]
    within += text.before if inside else []
    within += ["for i in range(first, last):", *indented(text.body)]
    return [
        *lines,
        "for segment in range(segments):",
        *indented(
            [
                "begin = sizes[1 + segment]",
                "first = max(lo, begin) - begin",
                "last = min(hi, sizes[2 + segment]) - begin",
                "if first < last:",
                *indented(within),
            ]
        ),
    ]
