"""Native histories: a builtin function makes what a replay keeps for its backward, and the nodes of
its results.

In: the plan of a call. Out: a function of (inputs, results, what the call made, bound, ends). Used
by `attach_backward`, where a snapshot shows that native code may look into objects.

The function gives the results their history. It returns a weak reference to what lives as long as
that history: the node of a call with one stage, else the `SavedCall`. It returns None, and has
changed nothing, where an input counts its own writes (`.data`) or has no memory. Then Python makes
the history.

Steps that may fail, or run other code, come before the results are touched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.eager.nodes import next_number
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.views import AliasFamily, View
from tracejit.core.memory import Storage
from tracejit.core.memory.readers import forget, live
from tracejit.jit.capture.memory_words import LIST_ITEMS, TUPLE_ITEMS, TYPE, slot_offset
from tracejit.jit.runtime.builtin import DATA, function_over, method, python_api
from tracejit.jit.runtime.call_nodes import CompiledBackward
from tracejit.jit.runtime.later_backward import NOTHING, SavedCall

Lay = Callable[[tuple, list, list, Any, tuple], Callable[[], Any] | None]

# Words of a table. Behind them: the numbers of the inputs whose versions are kept; for each result
# its stage, and its number there (object); for each stage its `BackwardStage`, its number (object),
# the number of its edges, and for each edge (one of the ends, or -1 - a lower stage; the number of
# a result there, as an object).
_WORDS = (
    "READ", "TRACKED", "STAGES", "STRAIGHT", "CALL_CLASS", "NODE_CLASS", "VIEW_CLASS",
    "FAMILY_CLASS", "PLAN", "EMPTY", "NONE", "FALSE", "TRUE", "ZERO", "NOTHING", "NEXT", "FORGET",
    "READERS", "TUPLE", "LIST", "NEW", "REFER", "ADD", "ASK", "KEEP", "DROP",
)  # fmt: skip
_FUNCTIONS = ("PyTuple_New", "PyList_New", "PyType_GenericNew", "PyWeakref_NewRef", "PySet_Add",
              "PyObject_CallNoArgs", "Py_IncRef", "Py_DecRef")  # fmt: skip
_GIVEN = ("inputs", "results", "made", "bound", "ends")
_OF_CALL = {
    "plan": "plan", "bound": "bound", "given": "inputs", "inputs": "inputs", "made": "made",
    "versions": "versions", "inner": "empty", "noted": "nothing", "old": "nothing",
    "ends": "ends", "nodes": "nodes", "freed": "none", "over": "false",
}  # fmt: skip
_OF_NODE = {
    "edges": "edges", "sequence": "sequence", "extras": "none", "call": "call",
    "stage": "table[word + 1]", "common": "table[word]", "runs": "zero", "freed": "zero",
}  # fmt: skip


def _slot(kind: type, name: str) -> int:
    """Return the word of an object at which a slot is."""
    owner = next(cls for cls in kind.__mro__ if name in vars(cls))
    return slot_offset(vars(owner)[name]) // 8


def _filled(target: str, kind: type, values: dict[str, str], given_away: Sequence[str],
            indent: str) -> str:
    """Return lines that fill the slots of a new object.

    given_away  values whose references the object takes over; it gets a new reference to others
    """
    lines = [f"{target}[{_slot(kind, name)}] = {value}" for name, value in values.items()]
    lines += [f"call_function(keep, {v})" for v in values.values() if v not in given_away]
    return "\n".join(indent + line for line in lines)


@functools.cache
def _text() -> str:
    names = [name.lower() for name in _WORDS]
    constants = "\n".join(f"    {name} = table[{k}]" for k, name in enumerate(names))
    given = "\n".join(f"    {name} = objects[{k}]" for k, name in enumerate(_GIVEN))
    history, number = _slot(TensorState, "_node"), _slot(TensorState, "_output_nr")
    return f'''\
"""A builtin function: `this` is the table, an ndarray; `arguments` the address of the objects."""
from tracejit.jit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def lay(this, arguments, count) -> "int64":
    table = pointer_at(pointer_at(this)[{DATA}])
    objects = pointer_at(arguments)
{constants}
{given}
    versions = call_function(tuple, read)
    if versions == 0:
        return 0
    tensors = pointer_at(inputs + {TUPLE_ITEMS})
    items = pointer_at(versions + {TUPLE_ITEMS})
    for k in range(read):
        x = pointer_at(tensors[table[{len(_WORDS)} + k]])
        storage = x[{_slot(TensorState, "_storage")}]
        counted = 0
        if storage != none:
            family = x[{_slot(TensorState, "_view")}]
            if family == none:
                counted = 1
            else:
                if pointer_at(family)[{TYPE // 8}] == view_class:
                    family = pointer_at(family)[{_slot(View, "family")}]
                if pointer_at(family)[{TYPE // 8}] == family_class:
                    if pointer_at(family)[{_slot(AliasFamily, "version")}] == none:
                        counted = 1
        if counted == 0:
            call_function(drop, versions)
            call_function(keep, none)
            return none
        version = pointer_at(storage)[{_slot(Storage, "version")}]
        call_function(keep, version)
        items[k] = version
    nodes = none
    call_function(keep, nodes)
    if straight == 0:
        call_function(drop, nodes)
        nodes = call_function(list, stages)
        if nodes == 0:
            call_function(drop, versions)
            return 0
    call = call_function(new, call_class, empty, 0)
    if call == 0:
        call_function(drop, versions)
        call_function(drop, nodes)
        return 0
    of_call = pointer_at(call)
{_filled("of_call", SavedCall, _OF_CALL, ("versions", "nodes"), "    ")}
    laid = call_function(tuple, stages)
    if laid == 0:
        call_function(drop, call)
        return 0
    all_nodes = pointer_at(laid + {TUPLE_ITEMS})
    ended = pointer_at(ends + {TUPLE_ITEMS})
    numbers = {len(_WORDS)} + read
    word = numbers + 2 * tracked
    for stage in range(stages):
        count_of_edges = table[word + 2]
        edges = ends
        if straight != 0:
            call_function(keep, edges)
        else:
            edges = call_function(tuple, count_of_edges)
            if edges == 0:
                call_function(drop, laid)
                call_function(drop, call)
                return 0
            of_edges = pointer_at(edges + {TUPLE_ITEMS})
            for k in range(count_of_edges):
                goes = table[word + 3 + 2 * k]
                edge = 0
                if goes >= 0:
                    edge = ended[goes]
                    call_function(keep, edge)
                else:
                    edge = call_function(tuple, 2)
                    if edge == 0:
                        call_function(drop, edges)
                        call_function(drop, laid)
                        call_function(drop, call)
                        return 0
                    place = pointer_at(edge + {TUPLE_ITEMS})
                    place[0] = all_nodes[-1 - goes]
                    place[1] = table[word + 4 + 2 * k]
                    call_function(keep, place[0])
                    call_function(keep, place[1])
                of_edges[k] = edge
        sequence = call_function(ask, next)
        node = 0
        if sequence != 0:
            node = call_function(new, node_class, empty, 0)
            if node == 0:
                call_function(drop, sequence)
        if node == 0:
            call_function(drop, edges)
            call_function(drop, laid)
            call_function(drop, call)
            return 0
        of_node = pointer_at(node)
{_filled("of_node", CompiledBackward, _OF_NODE, ("edges", "sequence"), "        ")}
        all_nodes[stage] = node
        if straight == 0:
            at_node = call_function(refer, node, none)
            if at_node == 0:
                call_function(drop, laid)
                call_function(drop, call)
                return 0
            pointer_at(pointer_at(nodes)[{LIST_ITEMS // 8}])[stage] = at_node
        word += 3 + 2 * count_of_edges
    reader = call
    if straight != 0:
        reader = all_nodes[0]
    at = call_function(refer, reader, forget)
    if at != 0 and readers != none:
        if call_function(add, readers, at) & 4294967295 != 0:
            call_function(drop, at)
            at = 0
    if at == 0:
        call_function(drop, laid)
        call_function(drop, call)
        return 0
    outputs = pointer_at(pointer_at(results)[{LIST_ITEMS // 8}])
    for k in range(tracked):
        result = pointer_at(outputs[k])
        node = all_nodes[table[numbers + 2 * k]]
        before = result[{history}]
        earlier = result[{number}]
        grad = result[{_slot(TensorState, "_requires_grad")}]
        result[{history}] = node
        result[{number}] = table[numbers + 2 * k + 1]
        result[{_slot(TensorState, "_requires_grad")}] = true
        call_function(keep, node)
        call_function(keep, result[{number}])
        call_function(keep, true)
        call_function(drop, before)
        call_function(drop, earlier)
        call_function(drop, grad)
    call_function(drop, laid)
    call_function(drop, call)
    return at
'''


def lays(plan: Any) -> bool:
    """Return True if `layer` can make a function for a plan.

    The plan then has a tape, so versions are those of inputs only, and all its stages get nodes.
    """
    return plan.tape is not None and all(stage.edges for stage in plan.stages)


def layer(plan: Any) -> Lay:
    """Make the function of a plan. The plan must live as long as the function, which has its
    addresses."""
    known = [SavedCall, CompiledBackward, View, AliasFamily, plan, (), None, False, True, 0,
             NOTHING,
             next_number, *((forget, live) if plan.remembers else (None, None))]
    words = [len(plan.read), len(plan.places), len(plan.stages), int(plan.straight)]
    words += [*map(id, known), *map(python_api, _FUNCTIONS)]
    assert len(words) == len(_WORDS)
    words += plan.read
    for stage, number in plan.places:
        words += [stage, id(number)]
    for k, stage in enumerate(plan.stages):
        words += [id(stage), id(plan.numbers[k]), len(stage.edges)]
        for g in stage.edges:
            below, number = plan.cuts[g - len(plan.wrt)] if g >= len(plan.wrt) else (-1 - g, 0)
            words += [-1 - below, id(number)]
    return function_over(method("lay", _text()), words)
