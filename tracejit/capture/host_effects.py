"""Printing, logging and texts in a captured function, done when the values are there.

In: calls of `print`, `str`, `format`, f-strings, logger methods in recorded code, handed over by
the rewriting runtime. Out: pending texts, and `Output` on the recorder: performed in program order
before the call returns, and again by each replay. What cannot be repeated by a replay is done on
the spot, which ends the segment.
"""

from __future__ import annotations

import builtins
import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

from tracejit.capture.guards import current
from tracejit.capture.host_reads import (
    PENDING,
    Pending,
    PendingFloat,
    PendingInt,
    PendingObject,
    PendingText,
    joined,
    read,
    snapshot,
)
from tracejit.capture.location import user_frame
from tracejit.capture.scalars import RuntimeNumber
from tracejit.capture.watch import PASSED_ON
from tracejit.eager import printing
from tracejit.eager.recording import active
from tracejit.eager.tensor import Tensor
from tracejit.ir.sizes import Size

_PLAIN = (str, int, float, bool, complex, bytes, type(None))
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50}
_ROOT_LEVELS = {getattr(logging, name): level for name, level in _LEVELS.items()}
_PROGRESS = frozenset({"set_postfix", "set_postfix_str", "set_description", "update"})


class NotDeferrable(Exception):
    """An object whose text only the object itself can make, now."""


# -- what is done later ---------------------------------------------------------------------------
@dataclass
class Output:
    """`function(*arguments, **keywords)`, done when the pending ones among them are known."""

    function: Callable[..., Any]
    arguments: tuple
    keywords: dict[str, Any] = field(default_factory=dict)

    def perform(self) -> None:
        """Do it: the segments that the values come from have run."""
        keywords = {k: _plain(v) for k, v in self.keywords.items()}
        self.function(*[_plain(x) for x in self.arguments], **keywords)

    def recipe(self, recipes: Any) -> Callable[[Any], None]:
        """How a replay does it."""
        function, names = self.function, tuple(self.keywords)
        parts = [_found(x, recipes) for x in self.arguments]
        named = [_found(x, recipes) for x in self.keywords.values()]

        def perform(replay: Any) -> None:
            keywords = dict(zip(names, [part(replay) for part in named]))
            function(*[part(replay) for part in parts], **keywords)

        perform.shows = True  # type: ignore[attr-defined]  # people see it: never twice
        return perform


def _plain(x: Any) -> Any:
    if type(x) in PENDING:
        return x.concrete()
    return x.hint if isinstance(x, RuntimeNumber) or type(x) is Size else x


def _found(x: Any, recipes: Any) -> Callable[[Any], Any]:
    if isinstance(x, logging.Logger):  # one object for each name, wherever it was found
        place = recipes.state.place_of(x)
        return lambda replay: x if place is None else current(place, replay.arguments)
    return recipes.of(x)


class Shown:
    """A tensor of the recording as a text shows it: its elements once known, its history as it was
    when the text was made."""

    def __init__(self, tensor: Tensor, grad_fn: Any, requires_grad: bool):
        self._tensor, self.grad_fn, self.requires_grad = tensor, grad_fn, requires_grad

    array = property(lambda self: self._tensor.array)
    _device = property(lambda self: self._tensor._device)
    _dtype = property(lambda self: self._tensor._dtype)

    def __repr__(self) -> str:
        return printing.text(self)  # type: ignore[arg-type]


@dataclass(frozen=True)
class History:
    """The name a text shows of a tensor's grad_fn."""

    text: str

    def name(self) -> str:
        return self.text


def frozen(recorder: Any, x: Any) -> Any:
    """`x` as it is now: pending where it is made of what is not known yet. NotDeferrable where a
    replay could not make it."""
    if type(x) in PENDING or isinstance(x, RuntimeNumber) or type(x) in (Size, *_PLAIN):
        return x
    if type(x) is Tensor:
        return _shown(recorder, x)
    if type(x) in (list, tuple):
        parts = tuple([frozen(recorder, y) for y in x])
        return PendingObject(recorder, _list if type(x) is list else _tuple, parts)
    if type(x) is dict:
        keys = tuple([frozen(recorder, k) for k in x])
        parts = tuple([frozen(recorder, v) for v in x.values()])
        return PendingObject(recorder, _dict, (*keys, *parts))
    raise NotDeferrable


def _list(*parts: Any) -> list:
    return list(parts)


def _tuple(*parts: Any) -> tuple:
    return parts


def _dict(*parts: Any) -> dict:
    half = len(parts) // 2
    return dict(zip(parts[:half], parts[half:]))


def _shown(recorder: Any, x: Tensor) -> PendingObject:
    grad_fn, requires_grad = x.grad_fn, x.requires_grad
    history = None if grad_fn is None else History(grad_fn.name())
    held = PendingObject(recorder, None, (snapshot(recorder, x),))

    def show(tensor: Tensor) -> Shown:
        return Shown(tensor, history, requires_grad)

    return PendingObject(recorder, show, (held,))


def deferring() -> Any:
    """The recorder, where what is done now may be put off; else None."""
    recorder: Any = active.recorder
    mapped = recorder is not None and recorder.mapped
    return recorder if recorder is not None and not mapped and recorder.defers() else None


def instead(what: str) -> None:
    """Something visible is about to be done natively: what waits comes first."""
    recorder: Any = active.recorder
    if recorder is None:
        return
    if recorder.replayable or recorder.root is not recorder:
        recorder.note(f"calls {what}, whose effects and sources cannot be seen",
                      "move it out of the captured function")  # fmt: skip
    if recorder.output:
        recorder.flush()


# -- printing -------------------------------------------------------------------------------------
def deferred_print(*args: Any, **keywords: Any) -> None:
    """`print(*args, **keywords)`; while recording, put off until the values are there.

    >>> deferred_print("loss", 0.5, sep="=")
    loss=0.5
    """
    recorder = deferring()
    try:
        if recorder is not None:
            return recorder.output.append(_printing(recorder, args, keywords))
    except NotDeferrable:
        pass
    instead("print")
    print(*args, **keywords)
    return None


def _printing(recorder: Any, args: tuple, keywords: dict[str, Any]) -> Output:
    file = keywords.get("file")
    wrong = keywords.keys() - {"sep", "end", "file", "flush"}
    texts = [keywords.get("sep"), keywords.get("end")]
    if wrong or not (file is None or isinstance(file, io.TextIOBase)):
        raise NotDeferrable
    if any(type(x) not in (str, type(None), PendingText) for x in texts):
        raise NotDeferrable
    return Output(print, tuple([frozen(recorder, x) for x in args]), dict(keywords))


# -- texts ----------------------------------------------------------------------------------------
def deferred_str(*args: Any, **keywords: Any) -> Any:
    """`str(x)`, pending where x is."""
    recorder = deferring()
    if recorder is not None and len(args) == 1 and not keywords and _pends(args[0]):
        try:
            return PendingText(recorder, str, (frozen(recorder, args[0]),))
        except NotDeferrable:
            pass
    return str(*args, **keywords)


def deferred_repr(x: Any) -> Any:
    """`repr(x)`, pending where x is."""
    recorder = deferring()
    if recorder is not None and _pends(x):
        try:
            return PendingText(recorder, repr, (frozen(recorder, x),))
        except NotDeferrable:
            pass
    return repr(x)


def _pends(x: Any, depth: int = 3) -> bool:
    """Whether a text of it shows what is not known yet, or differs from call to call."""
    if type(x) in PENDING or isinstance(x, (RuntimeNumber, Tensor)) or type(x) is Size:
        return True
    if depth and type(x) in (list, tuple):
        return any(_pends(y, depth - 1) for y in x)
    return bool(depth) and type(x) is dict and any(_pends(y, depth - 1) for y in x.values())


def deferred_format_of(x: Any, spec: Any = "") -> Any:
    """`format(x, spec)`, pending where x is."""
    recorder = deferring()
    if recorder is None or type(spec) is not str or not _pends(x):
        return format(x, spec)
    if type(x) is Tensor and not x.shape:
        x = read(recorder, x)
    elif type(x) not in PENDING and not isinstance(x, RuntimeNumber) and type(x) is not Size:
        return format(x, spec) if spec else deferred_str(x)
    if not _formats(x, spec):
        return format(x, spec)
    return PendingText(recorder, format, (x, spec))


def _formats(x: Any, spec: str) -> bool:
    """Whether every value of x's type can be formatted so."""
    sample = _sample(x)
    if sample is None or spec.endswith("c"):
        return False
    try:
        format(sample, spec)
    except (TypeError, ValueError):
        return False
    return True


def _sample(x: Any) -> Any:
    if isinstance(x, (float, int, str)):
        return 0.0 if isinstance(x, float) else 0 if isinstance(x, int) else ""
    return None


def deferred_format(parts: Sequence[Any]) -> Any:
    """An f-string: `parts` are texts and (value, conversion, spec) with conversion one of None,
    "s", "r", "a". The text; pending where a value is.

    >>> deferred_format(["loss ", (0.25, None, ".3f")])
    'loss 0.250'
    """
    made = [x if isinstance(x, str) else _formatted(*x) for x in parts]
    if any(type(x) is PendingText for x in made):
        return joined(*made)
    return "".join(made)


def _formatted(x: Any, conversion: str | None, spec: Any) -> Any:
    if conversion is not None:
        x = {"s": deferred_str, "r": deferred_repr, "a": ascii}[conversion](x)
    return deferred_format_of(x, spec)


def _format_method(template: str) -> Callable[..., Any]:
    def deferred(*args: Any, **keywords: Any) -> Any:
        recorder = deferring()
        values = (*args, *keywords.values())
        if recorder is None or not any(map(_pends, values)):
            return template.format(*args, **keywords)
        names, count = tuple(keywords), len(args)

        def make(*parts: Any) -> str:
            return template.format(*parts[:count], **dict(zip(names, parts[count:])))

        return _made_later(recorder, make, template, values)

    return deferred


PASSED_ON.update(c for c in _format_method.__code__.co_consts if isinstance(c, CodeType))


def deferred_percent(template: str, arguments: Any) -> Any:
    """`template % arguments`, pending where an argument is."""
    recorder = deferring()
    if recorder is None or type(template) is not str or not _pends(arguments):
        return template % arguments
    values = arguments if type(arguments) is tuple else (arguments,)
    if type(arguments) is dict:
        return template % arguments

    def make(*parts: Any) -> str:
        return template % parts

    return _made_later(recorder, make, template, values)


def _made_later(
    recorder: Any, make: Callable[..., str], template: str, values: Sequence[Any]
) -> Any:
    """`make(*values)`, tried with values of the same types: it must not raise later."""
    try:
        parts = [read(recorder, x) if type(x) is Tensor and not x.shape else frozen(recorder, x)
                 for x in values]  # fmt: skip
        samples = [_sample(x) if _pends(x) else x for x in parts]
        if "c" in template or any(s is None and p is not None for s, p in zip(samples, parts)):
            raise NotDeferrable
        make(*samples)
    except (NotDeferrable, LookupError, TypeError, ValueError, AttributeError):
        return make(*values)
    return PendingText(recorder, make, tuple(parts))


# -- numbers --------------------------------------------------------------------------------------
def deferred_float(*args: Any) -> Any:
    """`float(x)`, pending where x is, or where it is a tensor of one element."""
    recorder = deferring()
    x = args[0] if len(args) == 1 else None
    if recorder is not None and type(x) is Tensor and not x.shape:
        x = read(recorder, x)
    if type(x) is PendingFloat:
        return x
    return x.arithmetic("float", (x,)) if type(x) is PendingInt else float(*args)


def deferred_int(*args: Any, **keywords: Any) -> Any:
    """`int(x)`, pending where x is an int that is, or a tensor that holds one."""
    recorder = deferring()
    x = args[0] if len(args) == 1 and not keywords else None
    if recorder is not None and type(x) is Tensor and not x.shape:
        x = read(recorder, x)
        args = (x,)
    return x if type(x) is PendingInt else int(*args, **keywords)


# -- logging --------------------------------------------------------------------------------------
def _log_method(logger: logging.Logger, name: str) -> Callable[..., None]:
    def deferred(*args: Any, **keywords: Any) -> None:
        native = getattr(logger, name)
        level = _LEVELS.get(name)
        if level is None and args:  # logger.log(level, message, ...)
            level, *rest = args
            _log(logger, level, tuple(rest), keywords, lambda: native(*args, **keywords))
        else:
            _log(logger, level, args, keywords, lambda: native(*args, **keywords))

    return deferred


def _log_function(function: Any, level: int) -> Callable[..., None]:
    def deferred(*args: Any, **keywords: Any) -> None:
        _log(logging.getLogger(), level, args, keywords, lambda: function(*args, **keywords))

    return deferred


def _log(
    logger: Any, level: Any, args: tuple, keywords: dict, native: Callable[[], None]
) -> None:
    recorder = deferring()
    try:
        if recorder is None or keywords or not args or type(level) is not int:
            raise NotDeferrable
        parts = tuple([frozen(recorder, x) for x in args])
        recorder.output.append(Output(_emit, (logger, level, *_caller(), *parts)))
        return
    except NotDeferrable:
        pass
    instead("a logger")
    native()


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


# -- progress bars --------------------------------------------------------------------------------
def _progress_method(bar: Any, name: str) -> Callable[..., None]:
    def deferred(*args: Any, **keywords: Any) -> None:
        recorder = deferring()
        try:
            if recorder is None:
                raise NotDeferrable
            parts = tuple([frozen(recorder, x) for x in args])
            named = {k: frozen(recorder, v) for k, v in keywords.items()}
            recorder.output.append(Output(_call_method, (bar, name, *parts), named))
            return
        except NotDeferrable:
            pass
        instead(f"a progress bar's {name}")
        getattr(bar, name)(*args, **keywords)

    return deferred


def _call_method(owner: Any, name: str, *args: Any, **keywords: Any) -> None:
    getattr(owner, name)(*args, **keywords)


# -- what the rewriting runtime asks --------------------------------------------------------------
_BUILTINS: tuple[tuple[Any, Any], ...] = (
    (builtins.print, deferred_print),
    (builtins.str, deferred_str),
    (builtins.repr, deferred_repr),
    (builtins.format, deferred_format_of),
    (builtins.float, deferred_float),
    (builtins.int, deferred_int),
)


def replacement(function: Any) -> Callable[..., Any] | None:
    """What recorded code calls instead of `function`; None: `function` itself.

    >>> replacement(print) is deferred_print, replacement(len) is None
    (True, True)
    """
    kind = type(function)
    if kind is BuiltinFunctionType or kind is type:
        owner = getattr(function, "__self__", None)
        if type(owner) is str:
            return _format_method(owner) if function.__name__ == "format" else None
        known = next((deferred for plain, deferred in _BUILTINS if plain is function), None)
        return known or (_constructor(function) if kind is type else None)
    if kind is MethodType:
        return _method(function.__self__, function.__name__)
    if kind is FunctionType and function.__module__ == "logging":
        level = _ROOT_LEVELS.get(function)
        return None if level is None else _log_function(function, level)
    return None


def _constructor(cls: type) -> Callable[..., Any] | None:
    """Classes written in C look into what they are given: they get plain numbers."""
    own = (getattr(cls, "__init__", None), getattr(cls, "__new__", None))
    if cls.__module__ == "builtins" or any(type(f) is FunctionType for f in own):
        return None

    def make(*args: Any, **keywords: Any) -> Any:
        named = {k: _number(v) for k, v in keywords.items()}
        return cls(*[_number(x) for x in args], **named)

    return make


def _number(x: Any) -> Any:
    return x.concrete() if type(x) in PENDING or isinstance(x, RuntimeNumber) else x


def _method(owner: Any, name: str) -> Callable[..., Any] | None:
    if isinstance(owner, logging.Logger):
        return _log_method(owner, name) if name in _LEVELS or name == "log" else None
    if name in _PROGRESS and type(owner).__module__.startswith("tqdm"):
        return _progress_method(owner, name)
    return None


def is_pending(x: Any) -> bool:
    """Whether x is a value that only the program knows."""
    return isinstance(x, Pending)
