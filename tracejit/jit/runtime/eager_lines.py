"""Lines of the builtin functions of small eager ops: switches, operands, results, history.

In: names of operands. Out: text in the runner's language. Called by the files of small eager ops;
`eager_words` has the words that the lines read.

Names that the lines set: `x0` an operand, `shape0`, `strides0`, `type0`, `storage0` what it had;
`dtype`,
`shape`, `rank` and `total` of the result; `state` the thread's mode; `wants` the operands that get
a gradient, as bits; `result` the new tensor, `data` the address of its elements.
"""

from __future__ import annotations

from tracejit.core.eager.array_storage import ArrayStorage
from tracejit.core.eager.nodes import LeafSink
from tracejit.core.eager.saved import Saved, SavedOutput, Unsaved
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tape import OpNode
from tracejit.core.eager.views import AliasFamily, View
from tracejit.core.memory import Storage
from tracejit.jit.capture.memory_words import DICT_VERSION, SIZE, TUPLE_ITEMS, TYPE
from tracejit.jit.runtime.builtin import DATA
from tracejit.jit.runtime.eager_words import (
    HISTORY,
    MOST_DIMENSIONS,
    MOST_ELEMENTS,
    NO_HISTORY,
    NOTHING,
    UNRECORDED,
    at,
    of,
    room,
    slot,
)

_NULLS = ("_strides", "_grad", "_node", "_view", "_hooks", "_traced")


def indented(text: str, by: int = 4) -> str:
    return "".join(f"{' ' * by}{line}\n" if line else "\n" for line in text.splitlines())


def decline(drops: str = "") -> str:
    """Return lines that give the call up; `drops`: objects made so far."""
    lines = [f"call_function(drop, {name})" for name in drops.split()]
    return "\n".join([*lines, "call_function(keep, declined)", "return declined\n"])


def declines_if(condition: str, drops: str = "") -> str:
    return f"if {condition}:\n{indented(decline(drops))}"


def failed(made: str, drops: str = "") -> str:
    """Return lines that end the call where an object was not made."""
    lines = "".join(f"    call_function(drop, {name})\n" for name in drops.split())
    return f"if {made} == 0:\n{lines}    return 0\n"


def beginning(name: str) -> str:
    """Return the head of a text, and the first lines of its function."""
    return f'''\
"""A builtin function: `this` is the table, an ndarray; `arguments` the address of the objects."""
from tracejit.jit.lowering.abi import (
    call_function, float32_scratch, float64_scratch, pointer_at, uint8_scratch)

PARAMETERS = "int64"


def {name}(this, arguments, count) -> "int64":
    base = pointer_at(this)[{DATA}]
    table = pointer_at(base)
    objects = pointer_at(arguments)
    none = {at("NONE")}
    true = {at("TRUE")}
    false = {at("FALSE")}
    zero = {at("ZERO")}
    keep = {at("KEEP")}
    drop = {at("DROP")}
    new = {at("NEW")}
    empty = {at("EMPTY")}
    declined = {at("DECLINED")}
'''


def _switch(name: str, condition: str, state: int) -> str:
    return f"""\
    one = call_function({at("ITEM")}, own, {at(f"KEY_{name.upper()}")})
    if one != 0:
        if {condition}:
            state = {state}
"""


def mode() -> str:
    """Return lines that find the thread's mode, and decline where nothing is computed natively."""
    return f"""\
mode = {at("MODE")}
if pointer_at(mode)[4] != 0:
{indented(decline())}\
thread = call_function({at("THREAD_ID")}, call_function({at("THREAD")}))
if pointer_at(mode)[0] != thread:
    own = call_function({at("ATTRIBUTE")}, {at("ACTIVE")}, {at("DICT_NAME")})
    if own == 0:
        return 0
    call_function(drop, own)
    pointer_at(mode)[1] = own
    pointer_at(mode)[2] = 0
    pointer_at(mode)[0] = thread
own = pointer_at(mode)[1]
version = pointer_at(own)[{DICT_VERSION // 8}]
state = pointer_at(mode)[3]
if pointer_at(mode)[2] != version:
    state = {HISTORY}
{_switch("anomaly", "one != false", UNRECORDED)}\
{_switch("packer", "one != none", UNRECORDED)}\
{_switch("grad_enabled", "one == false", NO_HISTORY)}\
{_switch("grad_enabled", "one != false and one != true", NOTHING)}\
{_switch("tracer", "one != none", NOTHING)}\
{_switch("inference", "one != false", NOTHING)}\
{_switch("level", "one != none", NOTHING)}\
    pointer_at(mode)[3] = state
    pointer_at(mode)[2] = version
{declines_if(f"state == {NOTHING}")}"""


def tensor(x: str, k: int) -> str:
    """Return lines that decline unless an object, of the class of tensors, is plain and contiguous,
    or one element that was expanded: `spread0` is then 1."""
    return f"""\
{declines_if(f"{of(x, '_device')} != {at('CPU')}")}\
strides{k} = {of(x, "_strides")}
if strides{k} != none:
    spread{k} = 1
    for j in range(pointer_at(strides{k})[{SIZE // 8}]):
        if pointer_at(strides{k} + {TUPLE_ITEMS})[j] != zero:
{indented(decline(), 12)}\
storage{k} = {of(x, "_storage")}
{declines_if(f"storage{k} == none")}\
shape{k} = {of(x, "_shape")}
type{k} = {of(x, "_dtype")}
{plain_view(x)}"""


def plain_view(x: str) -> str:
    """Return lines that decline where a view has to get another history, or counts its own
    writes."""
    return f"""\
view = {of(x, "_view")}
if view != none:
    family = view
    if pointer_at(view)[{TYPE // 8}] == {at("VIEW")}:
        family = {of("view", "family", View)}
        origin = {of("view", "origin", View)}
        if origin != none:
            if state != {NO_HISTORY} or origin != {at("NO_GRAD")}:
{indented(decline(), 16)}\
        if {of("view", "op", View)} == none:
{indented(decline(), 12)}\
        if {of("view", "generation", View)} != {of("family", "generation", AliasFamily)}:
{indented(decline(), 12)}\
    if {of("family", "version", AliasFamily)} != none:
{indented(decline(), 8)}\
    if {of("family", "inference", AliasFamily)} != false:
{indented(decline(), 8)}"""


def is_tensor(kind: str) -> str:
    return f"{kind} == {at('TENSOR')} or {kind} == {at('PARAMETER')}"


def extent(most: int = MOST_ELEMENTS) -> str:
    """Return lines that count the elements of `shape`, and write its sizes to the table; they
    decline more than `most`."""
    return f"""\
rank = pointer_at(shape)[{SIZE // 8}]
{declines_if(f"rank > {MOST_DIMENSIONS}")}\
total = 1
for k in range(rank):
    size = pointer_at(shape + {TUPLE_ITEMS})[k]
    if pointer_at(size)[{TYPE // 8}] != {at("INT")}:
{indented(decline(), 8)}\
    length = call_function({at("VALUE")}, size)
    pointer_at({room("DIMS")})[k] = length
    total = total * length
    if length < 1 or total > {most}:
{indented(decline(), 8)}"""


def made(number: str, itemsize: str, dtype: str) -> str:
    """Return lines that make the tensor `result`, of `shape`.

    number, itemsize, dtype  of its elements; the number is NumPy's
    """
    stored = {"nbytes": "nbytes", "_array": "array", "_flat": "none", "version": "zero",
              "device": at("CPU"), "home": "none", "_ptr": "none"}  # fmt: skip
    fields = {"_storage": "stored", "_array": "array", "_shape": "shape", "_dtype": dtype,
              "_device": at("CPU"), "_offset": "zero", "_output_nr": "zero",
              "_requires_grad": "false", **dict.fromkeys(_NULLS, "none")}  # fmt: skip
    given = f"{at('NDARRAY')}, rank, {room('DIMS')}, {number}, 0, 0, 0, 0, 0"
    return f"""\
array = call_function({at("NEW_ARRAY")}, {given})
{failed("array")}\
nbytes = call_function({at("LONG")}, total * {itemsize})
{failed("nbytes", "array")}\
stored = call_function(new, {at("ARRAY_STORAGE")}, empty, 0)
{failed("stored", "array nbytes")}\
{filled("stored", ArrayStorage, stored, ("nbytes", "array"))}\
result = call_function(new, {at("TENSOR")}, empty, 0)
{failed("result", "stored")}\
{filled("result", TensorState, fields, ("stored",))}\
data = pointer_at(array)[{DATA}]
"""


def filled(target: str, kind: type, values: dict[str, str], given: tuple[str, ...] = ()) -> str:
    """Return lines that fill the slots of a new object, which takes over references to `given`."""
    lines = [f"pointer_at({target})[{slot(kind, name)}] = {v}" for name, v in values.items()]
    lines += [f"call_function(keep, {v})" for v in values.values() if v not in given]
    return "\n".join(lines) + "\n"


def same_as_before(x: str, k: int, drops: str) -> str:
    """Return lines that decline where code that an allocation ran has changed an operand."""
    return declines_if(f"{of(x, '_shape')} != shape{k} or {of(x, '_storage')} != storage{k} "
                       f"or {of(x, '_dtype')} != type{k} or {of(x, '_strides')} != strides{k}",
                       drops)


def address(x: str, k: int, itemsize: str, drops: str) -> str:
    """Return lines that find the address `address0` of an operand's elements."""
    return f"""\
address{k} = 0
array{k} = {of(x, "_array")}
if array{k} != none:
    address{k} = pointer_at(array{k})[{DATA}]
else:
    offset = call_function({at("VALUE")}, {of(x, "_offset")}) * {itemsize}
    if pointer_at(storage{k})[{TYPE // 8}] == {at("ARRAY_STORAGE")}:
        array{k} = {of(f"storage{k}", "_array", ArrayStorage)}
        if pointer_at(array{k})[{TYPE // 8}] == {at("NDARRAY")}:
            address{k} = pointer_at(array{k})[{DATA}] + offset
    else:
        if pointer_at(storage{k})[{TYPE // 8}] == {at("STORAGE")}:
            pointer = {of(f"storage{k}", "_ptr", Storage)}
            if pointer != none:
                address{k} = call_function({at("VALUE")}, pointer) + offset
{declines_if(f"address{k} == 0", drops)}"""


def edge(x: str, k: int, drops: str) -> str:
    """Return lines that make the edge `edge0` of an operand: None where it gets no gradient."""
    found = filled_pair(f"edge{k}", "found", "zero")
    made_before = filled_pair(f"edge{k}", "owner", of(x, "_output_nr"))
    return f"""\
edge{k} = none
if (wants >> {k}) & 1 == 1:
    owner = {of(x, "_node")}
    sink = 0
    if owner == none:
        sink = 1
    else:
        if pointer_at(owner)[{TYPE // 8}] == {at("SINK")}:
            sink = 1
    if sink == 1:
        found = none
        if owner != none:
            found = {of("owner", "found", LeafSink)}
            if pointer_at(found)[{TYPE // 8}] == {at("REFERENCE")}:
                found = call_function({at("REFERENT")}, found)
            else:
                found = none
        if found == none:
            edge{k} = call_function({at("CALL_1")}, {at("EDGE_OF")}, {x})
        else:
            edge{k} = call_function({at("TUPLE")}, 2)
            if edge{k} != 0:
{indented(found, 16)}\
    else:
        edge{k} = call_function({at("TUPLE")}, 2)
        if edge{k} != 0:
{indented(made_before, 12)}\
{indented(failed(f"edge{k}", drops))}\
else:
    call_function(keep, none)
"""


def filled_pair(pair: str, first: str, second: str) -> str:
    return f"""\
pointer_at({pair} + {TUPLE_ITEMS})[0] = {first}
pointer_at({pair} + {TUPLE_ITEMS})[1] = {second}
call_function(keep, {first})
call_function(keep, {second})
"""


def packed(name: str, items: str, count: int, drops: str) -> str:
    """Return lines that make a tuple of `items0` and so on, whose references it takes over."""
    text = f"{name} = call_function({at('TUPLE')}, {count})\n{failed(name, drops)}"
    for k in range(count):
        text += f"pointer_at({name} + {TUPLE_ITEMS})[{k}] = {items}{k}\n"
    return text


def known_type(name: str, k: int, shape: str, dtype: str, drops: str) -> str:
    """Return lines that find the type of a tensor, as nodes keep it; a new reference.

    The last one of each place is used again while shape and dtype are the same objects.
    """
    values = {"shape": shape, "dtype": dtype, "device": at("CPU")}
    known = at("KNOWN", k)
    return f"""\
{name} = pointer_at({room("KNOWN", k)})[0]
if {name} != 0:
    if {of(name, "shape", Unsaved)} != {shape} or {of(name, "dtype", Unsaved)} != {dtype}:
        {name} = 0
if {name} == 0:
    {name} = call_function(new, {at("UNSAVED")}, empty, 0)
{indented(failed(name, drops))}\
{indented(filled(name, Unsaved, values))}\
    before = {known}
    pointer_at({room("KNOWN", k)})[0] = {name}
    if before != 0:
        call_function(drop, before)
call_function(keep, {name})
"""


def saved_operand(name: str, x: str, storage: str, drops: str) -> str:
    """Return lines that keep an operand for the backward."""
    values = {"tensor": x, "version": of(storage, "version", Storage),
              "number": of(x, "_output_nr")}  # fmt: skip
    return f"""\
{name} = call_function(new, {at("SAVED")}, empty, 0)
{failed(name, drops)}\
{filled(name, Saved, values)}"""


def saved_output(name: str, drops: str, dtype: str) -> str:
    """Return lines that keep `result` for the backward of `node`, as an alias."""
    fields = {"_storage": "stored", "_array": "array", "_shape": "shape", "_dtype": dtype,
              "_device": at("CPU"), "_offset": "zero", "_output_nr": "zero",
              "_requires_grad": "false", **dict.fromkeys(_NULLS, "none")}  # fmt: skip
    values = {"tensor": "alias", "version": "zero", "number": "zero", "node": "referring"}
    return f"""\
alias = call_function(new, {at("TENSOR")}, empty, 0)
{failed("alias", drops)}\
{filled("alias", TensorState, fields)}\
referring = call_function({at("REFER")}, node, 0)
{failed("referring", "alias " + drops)}\
{name} = call_function(new, {at("SAVED_OUTPUT")}, empty, 0)
{failed(name, "alias referring " + drops)}\
{filled(name, SavedOutput, values, ("alias", "referring"))}"""


def new_node(kind: str, drops: str) -> str:
    """Return lines that make a node without operands and results."""
    return f"""\
sequence = call_function({at("CALL_0")}, {at("NEXT")})
{failed("sequence", drops)}\
node = call_function(new, {kind}, empty, 0)
{failed("node", "sequence " + drops)}\
pointer_at(node)[{slot(OpNode, "sequence")}] = sequence
"""
