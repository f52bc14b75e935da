"""Launchers: the path of one native call, written out for a number of inputs and outputs.

In: the kind of each input, the number of outputs. Out: a function of the inputs and a plan, which
has what a binding fixes. It allocates, fills the buffer table, calls, and wraps the outputs. Small
programs spend their time here, so loops over inputs and calls of constructors are unrolled into one
function for each signature. `compiled_graph` and `entry` use launchers for programs of one native
call; others take the general path through `executable`.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import Any

from tracejit.core.eager.state import make
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.runtime.native_start import NOTHING, SMALL, Calls, PostRun, available, number_word

_CELLS = {float: "d", int: "q"}  # codes of `array` for runtime numbers
LARGEST = 64  # inputs or outputs that are unrolled, where native starts do not work
_UNROLLED = 16  # outputs with variables of their own, in calls of native starts
_RUNS, _FAILS, _FOLLOWS = "# runs", "# has not run", "# follows"  # marks of lines
_MARKS = (_RUNS, _FAILS, _FOLLOWS)
_marked: dict[CodeType, tuple[set[int], ...]] = {}  # numbers of the lines with each mark

Launch = Callable[[Sequence[Any], tuple], list[Any]]


@functools.cache
def launcher(kinds: str, outputs: int) -> Launch:
    """Make `launch(inputs, plan)` -> output tensors.

    kinds  of each input, `t`: a tensor, `d`: a float, `q`: an int
    """
    given = [f"i{k}" for k in range(len(kinds))]
    fixed = [f"z{k}" for k, kind in enumerate(kinds) if kind == "t"]
    fixed += [f"{name}{k}" for k in range(outputs) for name in ("take", "bytes", "type")]
    addresses = [_address(k, kind) for k, kind in enumerate(kinds)]
    addresses += [f"s{k}._ptr" for k in range(outputs)]
    return _compiled([
        f"{', '.join(['frames, fresh, pack, call, failure', *fixed])}, = plan",
        f"{', '.join(given)}, = inputs" if given else "",
        *[f"c{k} = array('{kind}', (i{k},))" for k, kind in enumerate(kinds) if kind != "t"],
        *[f"s{k} = take{k}(bytes{k})" for k in range(outputs)],
        "try: frame = frames.pop()",
        "except IndexError: frame = fresh()",
        "try:",
        f"    pack(frame.table, 0, {', '.join(addresses)})",
        f"    call(frame.job)  {_RUNS}",
        "    state = frame.status[0]",
        f"    if state: raise failure(frame, 0)  {_FAILS}",
        "finally: frames.append(frame)",
        *[line for k in range(outputs) for line in _made(k)],
        f"return [{', '.join(f't{k}' for k in range(outputs))}]",
    ])  # fmt: skip


@functools.cache
def native_launcher(outputs: int, held: bool, spare: bool) -> Launch:
    """Make `launch(inputs, plan)` -> output tensors and replaced gradients, by `native_start`.

    held   the call is short: it runs under the interpreter's lock
    spare  outputs are small: Storages of earlier calls serve again
    """
    if outputs <= _UNROLLED:
        names = [f"s{k}" for k in range(outputs)]
        fixed = [f", take{k}, bytes{k}" for k in range(outputs)]
        taken = [f"s{k} = take{k}(bytes{k})" for k in range(outputs)]
    else:
        names = ["*stored"]
        fixed = [", taking"]
        taken = ["stored = [take(nbytes) for take, nbytes in taking]"]
    stored = "".join(f", {name}" for name in names)
    start = f"made = calls.start(inputs{stored})  {_RUNS}"
    checked = [
        "if made.__class__ is not list:",
        f"    if made is False: know(inputs)  {_FAILS}",
        f"    if made is False: {start}",
        f"    if made.__class__ is not list: raise failed(frame, made, failure)  {_FAILS}",
    ]
    if held and spare:
        run = [f"made = calls.again and calls.again(inputs)  {_RUNS}",
               f"if made is False: know(inputs)  {_FAILS}",
               f"if made is False: made = calls.again(inputs)  {_RUNS}",
               "if made is None or made is False:",
               *[f"    {line}" for line in (*taken, start, *checked)],
               f"    calls.spare([{stored[2:]}])",
               f"if made is True: raise failed(frame, made, failure)  {_FAILS}",
               ]  # fmt: skip
        taken = []
    elif held:
        run = [start, *checked]
    else:
        run = [f"made = calls.place(inputs{stored})",
               "if made is False:",
               "    know(inputs)",
               f"    made = calls.place(inputs{stored})",
               "    if made is False: raise failed(frame, made, failure)",
               f"call(frame.job)  {_RUNS}",
               "state = frame.status[0]",
               f"if state: raise failure(frame, 0)  {_FAILS}",
               f"calls.follow(inputs, made)  {_FOLLOWS}",
               ]  # fmt: skip
    return _compiled([
        f"frames, fresh, call, failure, post_run, begin{''.join(fixed)} = plan",
        *taken,
        "try: frame = frames.pop()",
        "except IndexError: frame = fresh()",
        "try:",
        "    calls = frame.calls.get(post_run) or begin(frame, post_run)",
        *[f"    {line}" for line in run],
        "finally: frames.append(frame)",
        "return made",
    ])  # fmt: skip


def _compiled(lines: Sequence[str]) -> Launch:
    namespace: dict[str, Any] = {"new": object.__new__, "Tensor": Tensor, "array": array}
    namespace |= {"know": _know_addresses, "failed": _failed}
    text = "def launch(inputs, plan):\n    " + "\n    ".join(lines) + "\n"
    exec(compile(text, "<tracejit launch>", "exec"), namespace)  # our own text, made above
    launch = namespace["launch"]
    _marked[launch.__code__] = tuple(
        {n for n, line in enumerate(text.split("\n"), 1) if line.endswith(mark)} for mark in _MARKS
    )
    return launch


def _made(k: int) -> list[str]:
    """Return the lines of `eager.state.make` for output k. A call of `make` would take as long
    again."""
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
    """Return code for the address of input k.

    A Storage over an array computes its address the first time `ptr` is read.
    """
    if kind != "t":
        return f"c{k}.buffer_info()[0]"
    return f"(i{k}._storage._ptr or i{k}._storage.ptr) + i{k}._offset * z{k}"


def kinds_of(inputs: Sequence[Any]) -> str | None:
    """Return the letter of each input's kind, as one text; None if an input has none."""
    kinds = ["t" if isinstance(x, Tensor) else _CELLS.get(type(x), "") for x in inputs]
    return "".join(kinds) if all(kinds) else None


def plan_of(
    executable: Any,
    binding: Any,
    inputs: Sequence[Any],
    types: Sequence[tuple],
    post_run: PostRun = NOTHING,
    given_away: bool = False,
) -> tuple[Launch, tuple] | None:
    """Return a launcher and its plan, taken from a binding.

    None: the general path must run, or native code cannot do what `post_run` asks for.

    given_away  only the outputs may refer to their Storages, so none is kept for later calls
    """
    native = binding.native
    if not getattr(native, "simple", False) or not native.plain:
        return None
    kinds = kinds_of(inputs)
    if kinds is None:
        return None
    words = [
        x._dtype.itemsize if isinstance(x, Tensor) else number_word(kind)
        for x, kind in zip(inputs, kinds)
    ]
    plan = [binding.frames, native.frame]
    if available(kinds):
        held = native.call is native.runner.hold
        spare = not given_away and all(nbytes <= SMALL for _, nbytes in native.outputs)
        names = ["start"] if held else ["place", "follow"]
        begin = functools.partial(_begin, names, words, types)
        plan += [native.call, executable.failure, post_run, begin]
        pairs = [part for pair in native.outputs for part in pair]
        plan += pairs if len(types) <= _UNROLLED else [native.outputs]
        return native_launcher(len(types), held, spare), tuple(plan)
    if max(len(inputs), len(types)) > LARGEST or post_run is not NOTHING:
        return None
    plan += [native.pack, native.call, executable.failure, *(size for size in words if size > 0)]
    for (take, nbytes), kind in zip(native.outputs, types):
        plan += [take, nbytes, kind]
    return launcher(kinds, len(types)), tuple(plan)


def _know_addresses(inputs: Sequence[Any]) -> None:
    """Let Storages compute their addresses, which they then keep."""
    for x in inputs:
        if isinstance(x, Tensor):
            x._storage.ptr  # noqa: B018


def _failed(frame: Any, state: bool, failure: Callable[..., Exception]) -> Exception:
    if state:
        return failure(frame, 0)
    return RuntimeError("an input of the program is not of the kind it was made for")


def outputs_after(error: BaseException) -> tuple[list[Any], bool] | None:
    """Return the outputs of a launch in which a signal's handler raised after the program ran.

    The second result tells whether what follows was done. Return None where the program had not
    run. Python calls handlers between its instructions. So the line of the launcher in the
    traceback tells whether the program had run, and a call need not note it.
    """
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in _marked:
        trace = trace.tb_next
    if trace is None:
        return None
    runs, fails, follows = _marked[trace.tb_frame.f_code]
    line, names = trace.tb_lineno, trace.tb_frame.f_locals
    if line < min(runs):
        return None
    if "calls" in names and not follows:  # one native call did everything, or nothing
        return (_outputs(names), True) if names["calls"].ran() else None
    if line in fails or names.get("state") or line in runs and not _has_run(names):
        return None
    return _outputs(names), bool(follows) and line >= min(follows)


def _has_run(names: dict[str, Any]) -> bool:
    """Return True if the program ran, where the handler raised on the line of its native call."""
    frame = names["frame"]
    if frame.status[0]:
        frame.clear_status()
        return False
    tensors = [x for x in names["inputs"] if isinstance(x, Tensor)]
    return all(x._storage._ptr is not None for x in tensors)


def _outputs(names: dict[str, Any]) -> list[Any]:
    """Return tensors over the memory that the program has filled."""
    made = names.get("made")
    if isinstance(made, list):
        return made
    calls: Any = names.get("calls")
    if calls is None:
        types = [names[f"type{k}"] for k in range(LARGEST) if f"type{k}" in names]
    else:
        types = calls.types
    stored = names.get("stored") or [names[f"s{k}"] for k in range(len(types)) if f"s{k}" in names]
    if types and not stored:
        stored = calls.storages()
    return [
        make(storage, 0, shape, None, dtype, device)
        for storage, (shape, dtype, device) in zip(stored, types)
    ]


def _begin(
    names: Sequence[str], words: Sequence[int], types: Sequence[tuple], frame: Any,
    post_run: PostRun,
) -> Calls:
    """Make the frame's own functions for this `PostRun`."""
    native, at = frame.native, frame.at
    places = (frame.job, native.runner.run, at, at + 8 * native.places)
    frame.calls[post_run] = found = Calls(names, places, words, types, post_run)
    return found
