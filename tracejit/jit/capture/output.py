"""Printing and logging in a captured function, done once the values are known.

In: calls of `print`, of logger methods and of progress bars' methods in recorded code, which the
rewriting runtime hands over. Out: `HostEffect`s on the tracer. They are performed in program order
before the call returns, and again by each replay. An effect that a replay cannot repeat is done on
the spot, which ends the segment.
"""

from __future__ import annotations

import io
import logging
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tracejit.core.eager.nodes import Node
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.guards import read_from
from tracejit.jit.capture.host_reads import (
    AFTER_SYMS,
    AfterSymInt,
    AfterSymObject,
    AfterSymStr,
    snapshot,
)
from tracejit.jit.capture.location import user_frame
from tracejit.jit.capture.looking import is_a, is_exactly
from tracejit.jit.capture.outlets import logger_may_wait, stdout_may_wait
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.ir.sizes import SymInt

_PLAIN = (str, int, float, bool, complex, bytes, type(None))
LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50}
ROOT_LEVELS = {getattr(logging, name): level for name, level in LEVELS.items()}
PROGRESS = frozenset({"set_postfix", "set_postfix_str", "set_description", "update"})


class NotDeferrable(Exception):
    """Signal that an output cannot be deferred: a replay could not make its text, or it must happen
    now."""


# -- what is done later ---------------------------------------------------------------------------
@dataclass
class HostEffect:
    """Call `function(*arguments, **keywords)`, made when the pending ones among the arguments are
    known."""

    function: Callable[..., Any]
    arguments: tuple
    keywords: dict[str, Any] = field(default_factory=dict)

    def perform(self) -> None:
        """Make the call. The segments that compute its arguments have run."""
        keywords = {k: _plain(v) for k, v in self.keywords.items()}
        self.function(*[_plain(x) for x in self.arguments], **keywords)

    def output_spec(self, builder: Any) -> Callable[[Any], None]:
        """Return the function by which a replay makes the call."""
        function, names = self.function, tuple(self.keywords)
        parts = [_found(x, builder) for x in self.arguments]
        named = [_found(x, builder) for x in self.keywords.values()]

        def perform(frame: Any) -> None:
            keywords = dict(zip(names, [part(frame) for part in named]))
            function(*[part(frame) for part in parts], **keywords)

        perform.shows = True  # type: ignore[attr-defined]  # people see it: never twice
        return perform


def _plain(x: Any) -> Any:
    if type(x) is Stdout:
        return x.stream
    if is_exactly(x, AFTER_SYMS):
        return x.concretize()
    return x.hint if is_a(x, SymNumber) or type(x) is SymInt else x


def _found(x: Any, builder: Any) -> Callable[[Any], Any]:
    if type(x) is Stdout:
        return lambda frame: sys.stdout
    if is_a(x, logging.Logger):  # there is one logger for each name
        source = builder.state.source_of(x)
        return lambda frame: x if source is None else read_from(source, frame.arguments)
    return builder.of(x)


class History(Node):
    """Stand-in for a tensor's history in a text, which shows only the name."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        super().__init__(())
        self._name = name

    def name(self) -> str:
        return self._name


def freeze(tracer: Any, x: Any) -> Any:
    """Return `x` as it is now, with parts pending whose values are not known yet.

    Raise NotDeferrable if a replay could not make it.
    """
    if is_exactly(x, AFTER_SYMS) or is_a(x, SymNumber) or is_exactly(x, (SymInt, *_PLAIN)):
        return x
    if type(x) is Tensor:
        return _shown(tracer, x)
    if is_exactly(x, (list, tuple)):
        parts = tuple([freeze(tracer, y) for y in x])
        return AfterSymObject(tracer, _list if type(x) is list else _tuple, parts)
    if type(x) is dict:
        keys = tuple([freeze(tracer, k) for k in x])
        parts = tuple([freeze(tracer, v) for v in x.values()])
        return AfterSymObject(tracer, _dict, (*keys, *parts))
    raise NotDeferrable


def _list(*parts: Any) -> list:
    return list(parts)


def _tuple(*parts: Any) -> tuple:
    return parts


def _dict(*parts: Any) -> dict:
    half = len(parts) // 2
    return dict(zip(parts[:half], parts[half:]))


def _shown(tracer: Any, x: Tensor) -> AfterSymObject:
    """Return the stand-in for a tensor in an output: its elements and its history of this moment.

    It becomes a tensor, since formats and handlers of logging may do anything with it.
    """
    grad_fn, requires_grad = x.grad_fn, x.requires_grad
    name = None if grad_fn is None else grad_fn.name()
    held = AfterSymObject(tracer, None, (snapshot(tracer, x),))

    def show(tensor: Tensor) -> Tensor:
        tensor._requires_grad = requires_grad
        tensor._node = None if name is None else History(name)
        return tensor

    return AfterSymObject(tracer, show, (held,))


def deferring_tracer() -> Any:
    """Return the tracer if it may defer an output now, else None."""
    tracer: Any = active.tracer
    mapped = tracer is not None and tracer.mapped
    return tracer if tracer is not None and not mapped and tracer.defers() else None


def before_native_effect(what: str) -> None:
    """Add a break and flush the deferred output: the visible function `what` is about to be
    called."""
    tracer: Any = active.tracer
    if tracer is None:
        return
    if tracer.cacheable or tracer.root is not tracer:
        tracer.add_break(f"the function calls {what}; tracejit cannot see what it reads or changes",
                         "call it outside the captured function")  # fmt: skip
    if tracer.output:
        tracer.flush()


# -- printing -------------------------------------------------------------------------------------
def deferred_print(*args: Any, **keywords: Any) -> None:
    """Call `print(*args, **keywords)`; while recording, defer it until the values are known.

    >>> deferred_print("loss", 0.5, sep="=")
    loss=0.5
    """
    tracer = deferring_tracer()
    try:
        if tracer is not None:
            return tracer.output.append(_printing(tracer, args, keywords))
    except NotDeferrable:
        pass
    before_native_effect("print")
    print(*args, **keywords)
    return None


class Stdout:
    """Stand-in for the stream that `sys.stdout` was when the call began; a replay writes to its
    own."""

    def __init__(self, stream: Any):
        self.stream = stream


def _printing(tracer: Any, args: tuple, keywords: dict[str, Any]) -> HostEffect:
    file = keywords.get("file")
    if file is None:
        if sys.stdout is not tracer.stdout or not stdout_may_wait():
            raise NotDeferrable
        tracer.asks(stdout_may_wait, None)
        keywords = {**keywords, "file": Stdout(tracer.stdout)}
    wrong = keywords.keys() - {"sep", "end", "file", "flush"}
    texts = [keywords.get("sep"), keywords.get("end")]
    if wrong or not (file is None or is_a(file, io.TextIOBase)):
        raise NotDeferrable
    if any(not is_exactly(x, (str, type(None), AfterSymStr)) for x in texts):
        raise NotDeferrable
    return HostEffect(print, tuple([freeze(tracer, x) for x in args]), keywords)


# -- logging --------------------------------------------------------------------------------------
def log_method(logger: logging.Logger, name: str) -> Callable[..., None]:
    def deferred(*args: Any, **keywords: Any) -> None:
        native = getattr(logger, name)
        level = LEVELS.get(name)
        if level is None and args:  # logger.log(level, message, ...)
            level, *rest = args
            _log(logger, level, tuple(rest), keywords, lambda: native(*args, **keywords))
        else:
            _log(logger, level, args, keywords, lambda: native(*args, **keywords))

    return deferred


def log_function(function: Any, level: int) -> Callable[..., None]:
    def deferred(*args: Any, **keywords: Any) -> None:
        _log(logging.getLogger(), level, args, keywords, lambda: function(*args, **keywords))

    return deferred


def _log(
    logger: Any, level: Any, args: tuple, keywords: dict, native: Callable[[], None]
) -> None:
    tracer = deferring_tracer()
    try:
        if tracer is None or keywords or not args or type(level) is not int:
            raise NotDeferrable
        if not logger_may_wait(weakref.ref(logger)):
            raise NotDeferrable
        parts = tuple([freeze(tracer, x) for x in args])
        tracer.asks(logger_may_wait, weakref.ref(logger))
        tracer.output.append(HostEffect(_emit, (logger, level, *_caller(), *parts)))
        return
    except NotDeferrable:
        pass
    before_native_effect("a logger")
    native()


def outlet_changed(function: Any) -> Callable[..., Any]:
    """Wrap a function that changes where lines go: deferred lines go out first."""

    def changed(*args: Any, **keywords: Any) -> Any:
        before_native_effect(f"logging's {function.__name__}")
        return function(*args, **keywords)

    return changed


def _caller() -> tuple[str, int, str]:
    frame = user_frame(4)
    if frame is None:
        return "(unknown file)", 0, "(unknown function)"
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _emit(
    logger: Any, level: int, path: str, line: int, function: str, message: Any, *args: Any
) -> None:
    if logger.parent is None and not logger.handlers:
        logging.basicConfig()
    if logger.isEnabledFor(level):
        record = logger.makeRecord(logger.name, level, path, line, message, args, None, function)
        logger.handle(record)


# -- streams ---------------------------------------------------------------------------------------
STREAMS = (io.TextIOWrapper, io.StringIO)  # classes of `sys.stdout`, but for a user's


def stream_method(stream: Any, name: str) -> Callable[..., Any]:
    """Return a deferring form of a stream's `write` or `flush`."""

    def deferred(*args: Any) -> Any:
        tracer = deferring_tracer()
        try:
            if tracer is None or [type(x) for x in args] not in _STREAMED[name]:
                raise NotDeferrable
            tracer.output.append(HostEffect(_call_method, (stream, name, *args)))
            if not args:
                return None
            text = args[0]
            return len(text) if type(text) is str else AfterSymInt(tracer, len, (text,))
        except NotDeferrable:
            pass
        before_native_effect(f"a stream's {name}")
        return getattr(stream, name)(*args)

    return deferred


_STREAMED = {"write": ([str], [AfterSymStr]), "flush": ([],)}


# -- progress bars --------------------------------------------------------------------------------
def progress_method(bar: Any, name: str) -> Callable[..., None]:
    def deferred(*args: Any, **keywords: Any) -> None:
        tracer = deferring_tracer()
        try:
            if tracer is None:
                raise NotDeferrable
            parts = tuple([freeze(tracer, x) for x in args])
            named = {k: freeze(tracer, v) for k, v in keywords.items()}
            tracer.output.append(HostEffect(_call_method, (bar, name, *parts), named))
            return
        except NotDeferrable:
            pass
        before_native_effect(f"a progress bar's {name}")
        getattr(bar, name)(*args, **keywords)

    return deferred


def _call_method(owner: Any, name: str, *args: Any, **keywords: Any) -> None:
    getattr(owner, name)(*args, **keywords)
