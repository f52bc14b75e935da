"""Launchers: the path of one native call, written out for a number of inputs and outputs.

In: how many of the inputs are tensors, how many outputs there are. Out: a function of the inputs
and a `Bound` that allocates, fills the buffer table, calls, and wraps the outputs. Small programs
spend their time here, so loops over inputs and calls of constructors are unrolled into one function
for each signature. `segment` uses it where a program is one native call; anything else takes the
general path through `executable`.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.eager.tensor import Tensor
from tracejit.runtime.native_start import available, starter

_CELLS = {float: "d", int: "q"}  # codes of `array` for runtime numbers
LARGEST = 64  # inputs, or outputs, that are still unrolled


@functools.cache
def launcher(
    kinds: str, outputs: int, held: bool
) -> Callable[[Sequence[Any], tuple], list[Any]]:
    """`launch(inputs, plan)` -> output tensors.

    kinds  of each input, `t`: a tensor, `d`: a float, `q`: an int
    held   the call is short: it runs under the interpreter's lock
    """
    given = [f"i{k}" for k in range(len(kinds))]
    fixed = [f"z{k}" for k, kind in enumerate(kinds) if kind == "t"]
    fixed += [f"{name}{k}" for k in range(outputs) for name in ("take", "bytes", "type")]
    addresses = [_address(k, kind) for k, kind in enumerate(kinds)]
    addresses += [f"s{k}._ptr" for k in range(outputs)]
    run = [f"pack(frame.table, 0, {', '.join(addresses)})", "call(frame.job)",
           "if frame.status[0]: raise failure(frame, 0)"]  # fmt: skip
    direct = held and available(kinds)
    if direct:
        things = ", ".join([*given, *(f"s{k}" for k in range(outputs))])
        run = [f"state = (frame.start or begin(frame))({things})",
               "if state is not None:",
               f"    if state is False: state = again(frame, inputs, ({things},))",
               "    if state: raise failure(frame, 0)"]  # fmt: skip
    body = "\n    ".join([
        f"{', '.join(['frames, pack, call, fresh, failure, begin', *fixed])} = plan",
        f"{', '.join(given)}, = inputs" if given else "",
        *[f"c{k} = array('{kind}', (i{k},))" for k, kind in enumerate(kinds)
          if kind != "t" and not direct],
        *[f"s{k} = take{k}(bytes{k})" for k in range(outputs)],
        "try: frame = frames.pop()",
        "except IndexError: frame = fresh()",
        "try:",
        *[f"    {line}" for line in run],
        "finally: frames.append(frame)",
        *[line for k in range(outputs) for line in _made(k)],
        f"return [{', '.join(f't{k}' for k in range(outputs))}]",
    ])  # fmt: skip
    namespace: dict[str, Any] = {"new": object.__new__, "Tensor": Tensor, "array": array}
    namespace["again"] = _again
    text = f"def launch(inputs, plan):\n    {body}\n"
    exec(compile(text, "<tracejit launch>", "exec"), namespace)  # our own text, made above
    return namespace["launch"]


def _made(k: int) -> list[str]:
    """The lines of `eager.state.make` for output k: calling it would cost as much again."""
    none = ("_strides", "_grad", "_node", "_view", "_hooks", "_array", "_traced")
    return [
        f"t{k} = new(Tensor)",
        f"t{k}._shape, t{k}._dtype, t{k}._device = type{k}",
        f"t{k}._storage = s{k}",
        f"t{k}._offset = t{k}._output_nr = 0",
        f"t{k}._requires_grad = False",
        " = ".join(f"t{k}.{name}" for name in none) + " = None",
    ]


def _address(k: int, kind: str) -> str:
    """Where input k lies; storages made of arrays know their address once they were asked."""
    if kind != "t":
        return f"c{k}.buffer_info()[0]"
    return f"(i{k}._storage._ptr or i{k}._storage.ptr) + i{k}._offset * z{k}"


def kinds_of(inputs: Sequence[Any]) -> str | None:
    """A letter for each input; None where there is none for it."""
    kinds = ["t" if isinstance(x, Tensor) else _CELLS.get(type(x), "") for x in inputs]
    return "".join(kinds) if all(kinds) else None


def plan_of(
    executable: Any, binding: Any, inputs: Sequence[Any], types: Sequence[tuple]
) -> tuple[Callable[[Sequence[Any], tuple], list[Any]], tuple] | None:
    """A launcher and what it needs of a binding; None where the general path is to be taken."""
    native = binding.native
    if not getattr(native, "simple", False) or not native.plain:
        return None
    kinds = kinds_of(inputs) if max(len(inputs), len(types)) <= LARGEST else None
    if kinds is None:
        return None
    words = [x._dtype.itemsize if isinstance(x, Tensor) else 0 for x in inputs]
    plan = [binding.frames, native.pack, native.call, native.frame, executable.failure]
    plan += [lambda frame: _begin(frame, words), *(size for size in words if size)]
    for (take, nbytes), kind in zip(native.outputs, types):
        plan += [take, nbytes, kind]
    held = native.call is native.runner.hold
    return launcher(kinds, len(types), held), tuple(plan)


def _again(frame: Any, inputs: Sequence[Any], things: tuple) -> bool | None:
    """Start once more: some Storage had never been asked for its address."""
    for x in inputs:
        if isinstance(x, Tensor):
            x._storage.ptr  # type: ignore[union-attr]  # noqa: B018  worked out and kept
    state = frame.start(*things)
    if state is False:
        raise RuntimeError("an input of the program is not of the kind it was made for")
    return state


def _begin(frame: Any, itemsizes: Sequence[int]) -> Callable[..., Any]:
    """The frame's own start function."""
    native, words = frame.native, frame._words
    at = words.ctypes.data
    frame.start = starter(native.runner.run, frame.job, at, at + 8 * native.places, itemsizes)
    return frame.start
