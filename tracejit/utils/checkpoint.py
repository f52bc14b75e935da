"""Checkpointing: backward computes values of a function again instead of keeping them.

In: a function and its arguments. Out: its results. With `use_reentrant=True` one node stands for
the whole function, and its backward runs the function again with a graph. Otherwise the function's
own nodes keep places instead of tensors; the first place that is read runs the function again.
"""

from __future__ import annotations

import contextlib
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tracejit.core.eager.backward import backward as run_backward
from tracejit.core.eager.function import Function
from tracejit.core.eager.modes import enable_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import KeptHistory, alias, packing
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.autocast import switch, switches
from tracejit.core.ops.generators import get_rng_state
from tracejit.nn.containers import Sequential
from tracejit.random import fork_rng, set_rng_state

_EXPLICIT = (
    "{}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended, but if you need to preserve the current default behavior, you can pass "
    "use_reentrant=True."
)
_PARTIAL = (
    "When use_reentrant=True, tracejit.utils.checkpoint is incompatible with .grad() or passing an "
    "`inputs` parameter to .backward(). To resolve this error, you can either set "
    "use_reentrant=False, or call .backward() without passing the `inputs` argument."
)
_stop_early = True
_debug: bool | None = None
_PACKAGE = str(Path(__file__).resolve().parents[1])


class CheckpointError(RuntimeError):
    """Error: a function did something else when it was run again."""


class set_checkpoint_early_stop:
    """Context that sets if running a function again stops when all that backward needs is there.

    >>> with set_checkpoint_early_stop(False):
    ...     pass
    """

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        global _stop_early
        self._before, _stop_early = _stop_early, self.enable

    def __exit__(self, *exc: object) -> None:
        global _stop_early
        _stop_early = self._before


class set_checkpoint_debug_enabled(contextlib.ContextDecorator):
    """Context that sets if errors say where tensors were saved. None leaves it to
    `checkpoint(debug=...)`.

    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """

    def __init__(self, enabled: bool | None) -> None:
        self.enabled = enabled

    def _recreate_cm(self) -> set_checkpoint_debug_enabled:
        return set_checkpoint_debug_enabled(self.enabled)  # calls of what is decorated may nest

    def __enter__(self) -> None:
        global _debug
        self._before, _debug = _debug, self.enabled

    def __exit__(self, *exc: object) -> None:
        global _debug
        _debug = self._before


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return no devices and no states: all devices draw from one generator, whose state
    `get_rng_state` gives.

    >>> import tracejit
    >>> get_device_states(tracejit.ones(1))
    ([], [])
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *,
                      device_type: str | None = None) -> None:
    """Do nothing: `get_device_states` gave no states."""


def noop_context_fn() -> tuple[Any, Any]:
    """Return contexts that do nothing, for the first run and for the next ones."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)`, and keep little for backward, which runs it again.

    use_reentrant      True: one node; backward must not be asked for some gradients only, and an
                       argument must require grad. False: the function's own nodes
    preserve_rng_state  draw the same random numbers again (default True)
    context_fn         makes two contexts, for the first run and for the next ones
    determinism_check  "none": shapes and dtypes may differ when it is run again
    debug              errors say where tensors were saved
    early_stop         stop when all that is needed is there

    Raises ValueError for unknown arguments, CheckpointError where the function does something else
    when it is run again. A captured function that checkpoints is co-executed.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], requires_grad=True)
    >>> y = checkpoint(lambda x: (x * x).sum(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if use_reentrant is None:
        warnings.warn(_EXPLICIT.format("tracejit.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when "
                             "use_reentrant=False.")
    elif determinism_check not in ("default", "none"):
        raise ValueError("determinism_check should be one of ['default', 'none'], got "
                         f"{determinism_check}")
    if active.tracer is not None:
        active.tracer.break_graph(None, "the function calls checkpoint",
                                  "call the checkpointed function itself; capture decides what to "
                                  "keep")
    if use_reentrant:
        return CheckpointFunction.apply(function, preserve, *args)
    if not active.grad_enabled:
        return function(*args, **kwargs)
    first, again = context_fn()
    run = _Run(function, args, kwargs, preserve, again)
    run.compares, run.stops = determinism_check != "none", early_stop and _stop_early
    run.debug = debug if _debug is None else _debug
    with first, packing(run.keep):
        found = function(*args, **kwargs)
    run.first_over = True
    return found


def checkpoint_sequential(functions: Any, segments: int, input: Any,
                          use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Run a list of functions, or a Sequential, in segments, and checkpoint all but the last.

    Raises ValueError for unknown arguments.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0], requires_grad=True)
    >>> checkpoint_sequential([tracejit.square, tracejit.neg], 2, x, use_reentrant=False).tolist()
    [-1.0]
    """
    if use_reentrant is None:
        warnings.warn(_EXPLICIT.format("tracejit.utils.checkpoint.checkpoint_sequential"),
                      stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, Sequential):
        functions = list(functions.children())

    def segment(part: list[Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in part:
                x = function(x)
            return x

        return run

    size = len(functions) // segments
    # More segments than functions: size is 0, and nothing is checkpointed.
    for start in range(0, size * (segments - 1), size or 1):
        input = checkpoint(segment(functions[start : start + size]), input,
                           use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return segment(functions[size * (segments - 1) :])(input)


# -- one node -------------------------------------------------------------------------------------


class CheckpointFunction(Function):
    """Function as one op: its backward runs it again."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        tensors = [x for x in args if isinstance(x, Tensor)]
        if not any(x.requires_grad for x in tensors):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None",
                          stacklevel=2)
        ctx.called, ctx.state = function, get_rng_state() if preserve else None
        ctx.casts = switches.state
        ctx.others = [None if isinstance(x, Tensor) else (x,) for x in args]
        ctx.save_for_backward(*tensors)
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        # The inner backward fills .grad of all leaves, also of those that no one asked for.
        if active.partial:
            raise RuntimeError(_PARTIAL)
        saved = iter(ctx.saved_tensors)
        # New leaves: their .grad is the gradient by the argument; the caller's .grad stays.
        args = [_leaf(next(saved)) if other is None else other[0] for other in ctx.others]
        with _random_state(ctx.state), _casting(ctx.casts), enable_grad():
            found = ctx.called(*args)
        outputs = found if isinstance(found, tuple) else (found,)
        chosen = [(y, grad) for y, grad in zip(outputs, grads)
                  if isinstance(y, Tensor) and y.requires_grad]
        if not chosen:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not "
                               "necessary")
        run_backward([y for y, _ in chosen], [grad for _, grad in chosen])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in args))


def _leaf(x: Any) -> Any:
    return x.detach().requires_grad_(x.requires_grad)


@contextlib.contextmanager
def _random_state(state: Any) -> Iterator[None]:
    """Draw inside from a state, if there is one, and leave the generator as it was."""
    with fork_rng(enabled=state is not None):
        if state is not None:
            set_rng_state(state)
        yield


@contextlib.contextmanager
def _casting(state: Any) -> Iterator[None]:
    """Set autocast inside as it was in the first run."""
    before = switches.state
    switch(state)
    try:
        yield
    finally:
        switch(before)


# -- places ---------------------------------------------------------------------------------------


class _AllThere(BaseException):
    """Ends running a function again, once no tensor is missing."""


class _Run:
    """Call of a function: the places it keeps, and their tensors once it was run again.

    first_over  True after the first run: a gradient within the function asks for tensors before
    """

    compares = stops = True
    debug = first_over = False

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict, preserve: bool,
                 again: Any) -> None:
        self.function, self.args, self.kwargs, self.again = function, args, kwargs, again
        self.state = get_rng_state() if preserve else None
        self.casts = switches.state
        self.types: list[tuple] = []
        self.lines: list[str] = []  # where in the user's code tensors were kept
        self.values: dict[int, Any] = {}

    def keep(self, tensor: Any) -> _Place:
        """Return a place for a tensor."""
        self.types.append(_type_of(tensor))
        if self.debug:
            self.lines.append(_line())
        return _Place(self, len(self.types) - 1, tensor)

    def value(self, number: int) -> Any:
        """Return the tensor of a place; each run of the function gives it once."""
        if number not in self.values:
            self._run_again()
        # Popped, so that a tensor lives no longer than its node needs it.
        return self.values.pop(number)

    def _run_again(self) -> None:
        found: list[Any] = []
        lines: list[str] = []

        def collect(tensor: Any) -> Any:
            if len(found) < len(self.types):
                found.append(alias(tensor))
                if self.debug:
                    lines.append(_line())
                # `_AllThere` is no `Exception`, so the function's own handlers do not catch it.
                if self.stops and len(found) == len(self.types):
                    raise _AllThere
            elif self.first_over:
                raise CheckpointError(
                    "tracejit.utils.checkpoint: trying to save more tensors during recomputation "
                    "than during the original forward pass. Number of tensors saved during "
                    f"forward: {len(self.types)}.")
            return _Found(tensor)

        # Backward runs without gradients; only with them do ops keep tensors.
        with contextlib.suppress(_AllThere), _random_state(self.state), enable_grad():
            with _casting(self.casts), self.again, packing(collect):
                self.function(*self.args, **self.kwargs)
        if len(found) != len(self.types):
            raise CheckpointError(
                "tracejit.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(self.types)}\nNumber of tensors saved during recomputation: {len(found)}.")
        for k, (expected, x) in enumerate(zip(self.types, found)):
            if self.compares and _type_of(x) != expected:
                raise CheckpointError(
                    "tracejit.utils.checkpoint: Recomputed values for the following tensors have "
                    "different metadata than during the forward pass.\ntensor at position "
                    f"{k}:\nsaved metadata: {_shown(expected)}\nrecomputed metadata: "
                    f"{_shown(_type_of(x))}\n." + self._told(k, lines))
        self.values = dict(enumerate(found))


    def _told(self, number: int, lines: list[str]) -> str:
        """Return the lines where both runs kept a tensor, as text; empty without `debug`."""
        if not self.debug:
            return ""
        return ("\nYou are seeing this error because you passed `debug=True` to checkpoint. The "
                f"tensor was saved\nduring forward at\n{self.lines[number]}and during "
                f"recomputation at\n{lines[number]}")


class _Found:
    """Tensor that a node keeps while the function is run again."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def unpack(self) -> Any:
        return self.tensor


class _Place:
    """Stands for a tensor that a node would keep."""

    __slots__ = ("run", "number", "history")

    def __init__(self, run: _Run, number: int, tensor: Any) -> None:
        self.run, self.number, self.history = run, number, KeptHistory(tensor)

    def unpack(self) -> Any:
        """Return the tensor, with the history that it had."""
        return self.history.of(self.run.value(self.number))


def _line() -> str:
    """Return the line of the user's code that runs."""
    stack = traceback.extract_stack()
    own = [frame for frame in stack if not frame.filename.startswith(_PACKAGE)] or stack
    return traceback.format_list(own[-1:])[0]


def _type_of(x: Any) -> tuple:
    return x.shape, x.dtype, x.device


def _shown(kind: tuple) -> str:
    shape, dtype, device = kind
    return f"{{'shape': {shape}, 'dtype': {dtype!r}, 'device': {device!r}}}"


_sealing.seal_all(globals())
