"""Small products with a vector in eager mode: a builtin function that calls the kernels.

In: `mv` or `dot`, or `matmul`, whose own function hands such operands on. Out: a builtin function
of two tensors. It returns a tensor like the one of the general way, or NotImplemented. Called by
`eager_calls` and `eager_products`.

Kernels are not compiled here: the general way runs until it has them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.eager.tape import OpNode, node_class
from tracejit.core.memory import address, forks, get_num_threads, threads
from tracejit.core.ops.cotangents import saved
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.capture.memory_words import SIZE, TUPLE_ITEMS
from tracejit.jit.lowering.extern import MATMUL_SIZES
from tracejit.jit.lowering.vector_products import (
    APART,
    LANES,
    MOST_CHUNKS,
    SIZES,
    THINNEST,
    TILE_BYTES,
    WORTH,
    columns_kernel,
    rows_kernel,
)
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime import eager_vectors, runner
from tracejit.jit.runtime.builtin import function_over, method
from tracejit.jit.runtime.eager_lines import decline, declines_if, failed, indented
from tracejit.jit.runtime.eager_words import (
    COMMON,
    HISTORY,
    MOST_ELEMENTS,
    UNRECORDED,
    at,
    of,
    room,
    table_of,
    word_at,
)
from tracejit.jit.runtime.runner import (
    JOB,
    ROW,
    SHARED_PROGRAM,
    STATUS_WORDS,
    WAKING_PROGRAM,
)

_MOST = 1 << 25  # bytes of the matrix: reading more keeps other threads waiting for long
_ROOM = 1 << 19  # bytes of the kernels' scratch
_OPS = ("matmul", "mv", "dot", "vecmat")  # kinds, by the ranks of the operands
_KERNELS = tuple(f"vector_{how}_{dtype}" for dtype in ("float32", "float64")
                 for how in ("rows", "columns"))  # fmt: skip
_SETS = 3  # sets of operands that get gradients
_OF_OP = 3 + 3 * _SETS  # words of an op
_PLACES: dict[str, int] = {}
_end = 0
for _name, _count in (
    ("KINDS", 1), ("KERNELS", len(_KERNELS)), ("SCRATCH", 1), ("STATUS", STATUS_WORDS),
    ("ROW", ROW), ("JOB", JOB), ("RUN", 1),
    ("OPERANDS", len(eager_vectors.OPERANDS)), ("SIZES", len(MATMUL_SIZES) + len(SIZES)),
    ("OPS", len(_OPS) * _OF_OP),
):  # fmt: skip
    _PLACES[_name] = COMMON + _end
    _end += _count


def _own(name: str, k: int = 0) -> str:
    """Return the text that reads one of the function's own words."""
    return f"table[{_PLACES[name] + k}]"


def _address(name: str) -> str:
    return f"(base + {8 * _PLACES[name]})"


def _size(name: str, source: str) -> str:
    return f"""\
size = {source}
{declines_if(f"pointer_at(size)[1] != {at('INT')}")}\
{name} = call_function({at("VALUE")}, size)
{declines_if(f"{name} < 1")}"""


def _operand(k: int) -> str:
    """Return lines that read a vector or a matrix of any layout, as `rows0` times `columns0`."""
    items, strides = (f"pointer_at({name}{k} + {TUPLE_ITEMS})" for name in ("shape", "strides"))
    x = f"x{k}"
    # A vector is one row as the first operand, one column as the second.
    length, along = (f"columns{k}", f"right{k}") if k == 0 else (f"rows{k}", f"down{k}")
    return f"""\
{x} = objects[{k}]
class{k} = pointer_at({x})[1]
storage{k} = none
if {lines.is_tensor(f"class{k}")}:
    storage{k} = {of(x, "_storage")}
else:
{indented(decline())}\
{declines_if(f"{of(x, '_device')} != {at('CPU')} or storage{k} == none")}\
shape{k} = {of(x, "_shape")}
strides{k} = {of(x, "_strides")}
type{k} = {of(x, "_dtype")}
{lines.plain_view(x)}\
rank{k} = pointer_at(shape{k})[{SIZE // 8}]
{declines_if(f"rank{k} != 1 and rank{k} != 2")}\
rows{k} = 1
columns{k} = 1
if rank{k} == 2:
{indented(_size(f"rows{k}", f"{items}[0]"))}\
{indented(_size(f"columns{k}", f"{items}[1]"))}\
else:
{indented(_size(length, f"{items}[0]"))}\
down{k} = columns{k}
right{k} = 1
if strides{k} != none:
    if rank{k} == 2:
        down{k} = call_function({at("VALUE")}, {strides}[0])
        right{k} = call_function({at("VALUE")}, {strides}[1])
    else:
        {along} = call_function({at("VALUE")}, {strides}[0])
"""


_KIND = f"""\
rows = rows0
columns = columns1
terms = columns0
dtype = type0
{declines_if("rows1 != terms or type1 != dtype or rows > 1 and columns > 1")}\
count = max(rows, columns)
{declines_if(f"count > {MOST_ELEMENTS} or terms > {_MOST}")}\
kind = 3
rank = 1
{room("DIMS").replace("(base", "dims = (base")}
if rank1 == 1:
    kind = 1
    if rank0 == 1:
        kind = 2
        rank = 0
if rank0 == 2 and rank1 == 2:
    kind = 0
    rank = 2
pointer_at(dims)[0] = count
if rank == 2:
    pointer_at(dims)[0] = rows
    pointer_at(dims)[1] = columns
{declines_if(f"({_own('KINDS')} >> kind) & 1 == 0")}\
wants = 0
if state >= {HISTORY}:
    if {of("x0", "_requires_grad")} != false:
        wants = 1
    if {of("x1", "_requires_grad")} != false:
        wants = wants + 2
{declines_if(f"wants != 0 and state == {UNRECORDED}")}"""


def _kernel() -> str:
    """Return lines that choose the kernel, and say how the matrix lies, as `vectors` does."""
    kinds = ""
    for k, (name, dtype) in enumerate((("F32", np.float32), ("F64", np.float64))):
        kinds += f"""\
if dtype == {at(name)}:
    typenum = {np.dtype(dtype).num}
    itemsize = {np.dtype(dtype).itemsize}
    rows_kernel = {_own("KERNELS", 2 * k)}
    columns_kernel = {_own("KERNELS", 2 * k + 1)}
"""
    return f"""\
typenum = 0
itemsize = 0
rows_kernel = 0
columns_kernel = 0
{kinds}\
work = count * terms * itemsize
{declines_if(f"work > {_MOST}")}\
first = 0
if columns > 1:
    first = 1
if rows == 1 and right0 != 1:
    first = 1
far = down0
apart = right0
step_x = down1
if first == 1:
    far = right1
    apart = down1
    step_x = right0
kernel = rows_kernel
step_a = far
tile = 1
lane = 0
if apart != 1:
{indented(declines_if("far != 1 and count > 1"))}\
    kernel = columns_kernel
    step_a = apart
    tile = min({TILE_BYTES} // max(1, itemsize), (count + {LANES - 1}) // {LANES} * {LANES})
    lane = tile + {APART}
{declines_if("kernel == 0")}\
space = lane * (16 + {LANES} * itemsize)
if step_x != 1:
    space = space + terms * itemsize
{declines_if(f"space > {_ROOM}")}"""


_SHAPED = f"""\
total = count
shape = call_function({at("TUPLE")}, rank)
{failed("shape")}\
for k in range(rank):
    number = call_function({at("LONG")}, pointer_at(dims)[k])
{indented(failed("number", "shape"))}\
    pointer_at(shape + {TUPLE_ITEMS})[k] = number
"""


def _of_op(part: int, chosen: bool = False) -> str:
    """Return the text that reads a word of the op, maybe by the operands that get gradients."""
    return f"pointer_at(of_op{' + 8 * wants' if chosen else ''})[{part - chosen}]"


def _history() -> str:
    text, drops = f"of_op = {_address('OPS')} + {8 * _OF_OP} * kind\n", "result shape"
    for k in range(2):
        text += lines.edge(f"x{k}", k, drops)
        drops = f"edge{k} {drops}"
    text, drops = text + lines.packed("edges", "edge", 2, drops), "edges result shape"
    for k in range(2):
        kept = lines.saved_operand(f"operand{k}", f"x{k}", f"storage{k}", drops)
        typed = lines.known_type(f"operand{k}", k, f"shape{k}", "dtype", drops)
        text += f"""\
operand{k} = 0
if ({_of_op(3 + _SETS, True)} >> {k}) & 1 == 1:
{indented(kept)}\
else:
{indented(typed)}"""
        drops = f"operand{k} {drops}"
    values = {"edges": "edges", "operands": "operands", "outputs": "outputs", "extras": "none",
              "op": _of_op(0), "attributes": _of_op(2), "needed": _of_op(3, True),
              "keeps": _of_op(3 + 2 * _SETS, True), "symbolic": "false"}  # fmt: skip
    packing = "operand0 operand1 edges result shape"
    drops = "operands edges result shape"
    return f"""\
{text}\
{lines.packed("operands", "operand", 2, packing)}\
kept0 = call_function(new, {at("UNSAVED")}, empty, 0)
{failed("kept0", drops)}\
{lines.filled("kept0", lines.Unsaved, {"shape": "shape", "dtype": "dtype", "device": at("CPU")})}\
{lines.packed("outputs", "kept", 1, f"kept0 {drops}")}\
{lines.new_node(_of_op(1), f"outputs {drops}")}\
{lines.filled("node", OpNode, values, ("edges", "operands", "outputs"))}\
{of("result", "_node")} = node
{of("result", "_requires_grad")} = true
call_function(drop, none)
call_function(drop, false)
call_function(keep, true)
"""


def _multiplied() -> str:
    sizes = dict.fromkeys(SIZES, "0")
    sizes |= {"terms": "terms", "step_a": "step_a", "step_x": "step_x", "step_out": "1",
              "count": "count", "tile": "tile", "lane": "lane"}  # fmt: skip
    text = "".join(f"{_own('SIZES', len(MATMUL_SIZES) + k)} = {sizes[name]}\n"
                   for k, name in enumerate(SIZES))
    return f"""\
{text}\
pointer_at({room("ARGS")})[0] = address0
pointer_at({room("ARGS")})[1] = address1
if first == 1:
    pointer_at({room("ARGS")})[0] = address1
    pointer_at({room("ARGS")})[1] = address0
pointer_at({room("ARGS")})[2] = data
parts = min({MOST_CHUNKS}, work // {WORTH})
if apart != 1:
    parts = min(parts, min(count // {THINNEST}, {_own("JOB", runner.HELPERS)} + 1))
if parts > 1 and work >= {SHARED_PROGRAM} and {_own("JOB", runner.HELPERS)} > 0:
    chunk = ((count + parts - 1) // parts + 15) // 16 * 16
    {_own("ROW", 0)} = kernel
    {_own("ROW", 3)} = count
    {_own("ROW", 4)} = chunk
    {_own("ROW", 7)} = (count + chunk - 1) // chunk
    {_own("JOB", runner.TICKETS)} = (count + chunk - 1) // chunk
    {_own("JOB", runner.WAKES)} = 0
    if work >= {WAKING_PROGRAM}:
        {_own("JOB", runner.WAKES)} = 1
    call_function({_own("RUN")}, {_address("JOB")})
else:
    call_function(kernel, {room("ARGS")}, {_address("OPERANDS")}, {_address("SIZES")},
                  {_own("SCRATCH")}, {_address("STATUS")}, 0, count)
"""


@functools.cache
def _text() -> str:
    body = declines_if("count != 2") + lines.mode() + _operand(0) + _operand(1) + _KIND
    body += _kernel() + _SHAPED + lines.made("typenum", "itemsize", "dtype")
    body += f"node = 0\nif wants != 0:\n{indented(_history())}call_function(drop, shape)\n"
    for k in range(2):
        body += lines.same_as_before(f"x{k}", k, "result")
        body += lines.address(f"x{k}", k, "itemsize", "result")
    body += _multiplied()
    return lines.beginning("product_vector") + indented(body + "return result\n")


def _words(kinds: int) -> tuple[list[int], list[Any]]:
    """Return the own words of a function for these kinds of operands, and what they refer to."""
    words = [kinds, *(0,) * (len(_KERNELS) + 1 + STATUS_WORDS + ROW + JOB), runner.runner().run]
    words += [*eager_vectors.OPERANDS, *(0,) * (len(MATMUL_SIZES) + len(SIZES))]
    kept: list[Any] = []
    for name in _OPS:
        op = REGISTRY[name]
        attributes: dict[str, Any] = {}
        wanted = [tuple(k for k in range(2) if bits >> k & 1) for bits in range(1, _SETS + 1)]
        plans = [saved(op, needed, 2) for needed in wanted]
        assert not any(plan.outputs for plan in plans)
        words += [id(op), id(node_class(op)), id(attributes), *map(id, wanted)]
        words += [sum(1 << k for k in plan.operands) for plan in plans]
        words += [id(bool(plan.operands)) for plan in plans]
        kept += [op, attributes, wanted]
    assert len(words) == _end
    return words, kept


class _Table:
    """Table of a function: it is told of kernels that are ready, and of the number of threads."""

    def __init__(self, kinds: int):
        self.words = table_of(*_words(kinds))
        self.at = address(self.words)
        self._set("ROW", 1, self.at + 8 * _PLACES["OPERANDS"], self.at + 8 * _PLACES["SIZES"])
        self._set("ROW", 5, 1)  # it is shared
        job = {runner.TABLE: "ROW", runner.STATUS: "STATUS"}
        for word, name in job.items():
            self._set("JOB", word, self.at + 8 * _PLACES[name])
        self._set("JOB", runner.COUNT, 1)
        self._set("JOB", runner.BUFFERS, self.at + 8 * word_at("ARGS"))
        self._set("JOB", runner.SCRATCH_STRIDE, _ROOM)
        self._set("JOB", runner.POOL, runner.runner().pool)
        self.see_threads()
        for dtype in ("float32", "float64"):
            for kernel in (rows_kernel(dtype), columns_kernel(dtype)):
                if found := eager_vectors.ready().get(kernel.digest):
                    self.see_kernel(kernel.name, found)
        eager_vectors.watches.append(self.see_kernel)
        threads.watches.append(self.see_threads)
        forks.in_child(self.work_alone)

    def _set(self, name: str, k: int, *words: int) -> None:
        self.words[_PLACES[name] + k :][: len(words)] = words

    def see_kernel(self, name: str, found: int) -> None:
        self._set("KERNELS", _KERNELS.index(name), found)

    def see_threads(self) -> None:
        count = get_num_threads() if runner.can_share() else 1
        if count > 1:
            runner.runner().prepare(count - 1)
        scratch = np.empty(_ROOM * count + 64, np.uint8)
        start = -(-address(scratch) // 64) * 64
        self._set("SCRATCH", 0, start)
        self._set("JOB", runner.SCRATCH, start)
        self._set("JOB", runner.HELPERS, count - 1)
        self.scratch = scratch

    def work_alone(self) -> None:
        """Let a forked child work alone, which has no workers."""
        self._set("JOB", runner.HELPERS, 0)


@functools.cache
def _table(kinds: int) -> np.ndarray:
    """Return the table of a function for these kinds of operands."""
    return _Table(kinds).words


@functools.cache
def of_matmul() -> tuple[int, int]:
    """Return the address of the function that computes what `matmul` hands on, and its `this`."""
    return int(method("product_vector", _text()).function), id(_table(0b1111))


def direct(function: Direct) -> Callable[..., Any]:
    """Make the function of `mv` or `dot`."""
    kind = _OPS.index(function.name)
    return function_over(method("product_vector", _text()), _table(1 << kind))
