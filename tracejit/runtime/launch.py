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
from types import CodeType, TracebackType
from typing import Any

from tracejit.eager.state import make
from tracejit.eager.tensor import Tensor
from tracejit.runtime.native_start import available, starter

_CELLS = {float: "d", int: "q"}  # codes of `array` for runtime numbers
LARGEST = 64  # inputs, or outputs, that are still unrolled
_RUNS, _FAILS = "# runs", "# has not run"  # marks of lines
_marked: dict[CodeType, tuple[set[int], ...]] = {}  # the lines with these marks


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
    run = [f"pack(frame.table, 0, {', '.join(addresses)})", f"call(frame.job)  {_RUNS}",
           "state = frame.status[0]",
           f"if state: raise failure(frame, 0)  {_FAILS}"]  # fmt: skip
    direct = held and available(kinds)
    if direct:
        things = ", ".join([*given, *(f"s{k}" for k in range(outputs))])
        run = ["start = frame.start or begin(frame)",
               f"state = start({things})  {_RUNS}",
               "if state is not None:",
               f"    if state is False: know(inputs)  {_FAILS}",
               f"    if state is False: state = start({things})  {_RUNS}",
               f"    if state is not None: raise failed(frame, state, failure)  {_FAILS}",
               ]  # fmt: skip
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
    namespace |= {"know": _know_addresses, "failed": _failed}
    text = f"def launch(inputs, plan):\n    {body}\n"
    exec(compile(text, "<tracejit launch>", "exec"), namespace)  # our own text, made above
    launch = namespace["launch"]
    lines = text.split("\n")
    _marked[launch.__code__] = tuple(
        {n for n, line in enumerate(lines, 1) if line.endswith(mark)} for mark in (_RUNS, _FAILS)
    )
    return launch


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


def _know_addresses(inputs: Sequence[Any]) -> None:
    """Some Storage had never been asked for its address: it is worked out and kept."""
    for x in inputs:
        if isinstance(x, Tensor):
            x._storage.ptr  # type: ignore[union-attr]  # noqa: B018


def _failed(frame: Any, state: bool, failure: Callable[..., Exception]) -> Exception:
    if state:
        return failure(frame, 0)
    return RuntimeError("an input of the program is not of the kind it was made for")


def outputs_after(error: BaseException) -> list[Any] | None:
    """What a launch had made that was ended from outside, by what a signal's handler raised, when
    its program had run; None where the program had not run.

    Python calls handlers between its instructions: where the exception is in the launcher's own
    text tells on which side of the program's run it came, so that a call need not note it.
    """
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in _marked:
        trace = trace.tb_next
    if trace is None:
        return None
    runs, fails = _marked[trace.tb_frame.f_code]
    line, names = trace.tb_lineno, trace.tb_frame.f_locals
    if line < min(runs) or line in fails or names.get("state"):
        return None
    if line in runs and not _has_run(names):
        return None
    return [_output(names, k) for k in range(sum(f"type{k}" in names for k in range(LARGEST)))]


def _has_run(names: dict[str, Any]) -> bool:
    """Whether the program ran, by what it left, before its answer could be looked at."""
    frame = names["frame"]
    if frame.status[0]:
        frame.clear_status()
        return False
    tensors = [x for x in names["inputs"] if isinstance(x, Tensor)]
    return all(x._storage._ptr is not None for x in tensors)  # type: ignore[union-attr]


def _output(names: dict[str, Any], k: int) -> Any:
    shape, dtype, device = names[f"type{k}"]
    return make(names[f"s{k}"], 0, shape, None, dtype, device)


def _begin(frame: Any, itemsizes: Sequence[int]) -> Callable[..., Any]:
    """The frame's own start function."""
    native, words = frame.native, frame._words
    at = words.ctypes.data
    frame.start = starter(native.runner.run, frame.job, at, at + 8 * native.places, itemsizes)
    return frame.start
