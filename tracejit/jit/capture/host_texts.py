"""Replacements of `str`, `repr`, `format` and the like in recorded code, which make pending texts.

In: calls of `str`, `repr`, `format`, `"".join`, f-strings and `%`, handed over by the rewriting
runtime. Out: the text. It is an `AfterSymStr` if pending numbers or tensors of the recording are in
it; a replay makes it again. A text that a replay might not be able to make is made at once, which
ends the segment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.host_reads import AFTER_SYMS, AfterSymStr, joined, read
from tracejit.jit.capture.looking import has_in_class, is_a, is_exactly
from tracejit.jit.capture.output import NotDeferrable, deferring_tracer, freeze
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.watcher import USER_CALL_WRAPPERS
from tracejit.jit.ir.sizes import SymInt


def deferred_str(*args: Any, **keywords: Any) -> Any:
    """Return `str(x)`: pending if `_pends(x)` and a replay can make the text."""
    tracer = deferring_tracer()
    if tracer is not None and len(args) == 1 and not keywords and _pends(args[0]):
        try:
            return AfterSymStr(tracer, str, (freeze(tracer, args[0]),))
        except NotDeferrable:
            pass
    return str(*args, **keywords)


def deferred_repr(x: Any) -> Any:
    """Return `repr(x)`: pending where `str(x)` is."""
    tracer = deferring_tracer()
    if tracer is not None and _pends(x):
        try:
            return AfterSymStr(tracer, repr, (freeze(tracer, x),))
        except NotDeferrable:
            pass
    return repr(x)


def _pends(x: Any, depth: int = 3) -> bool:
    """Return True if the text of `x` shows a tensor, a size, or a number that is not plain."""
    if is_exactly(x, AFTER_SYMS) or is_a(x, (SymNumber, Tensor)) or type(x) is SymInt:
        return True
    if depth and is_exactly(x, (list, tuple)):
        return any(_pends(y, depth - 1) for y in x)
    return bool(depth) and type(x) is dict and any(_pends(y, depth - 1) for y in x.values())


def deferred_format_of(x: Any, spec: Any = "") -> Any:
    """Return `format(x, spec)`: pending if `x` is, and no value of its type makes it raise."""
    tracer = deferring_tracer()
    spec = spec.concretize() if type(spec) is AfterSymStr else spec
    if tracer is None or type(spec) is not str or not _pends(x):
        return format(x, spec)
    if type(x) is Tensor and not x.shape:
        x = read(tracer, x)
    elif not is_exactly(x, AFTER_SYMS) and not is_a(x, SymNumber) and type(x) is not SymInt:
        return format(x, spec) if spec else deferred_str(x)
    if not _formats(x, spec):
        return format(x, spec)
    return AfterSymStr(tracer, format, (x, spec))


def _formats(x: Any, spec: str) -> bool:
    """Return True if `format` with this spec raises for no value of x's type."""
    sample = _sample(x)
    if sample is None or spec.endswith("c"):
        return False
    try:
        format(sample, spec)
    except (TypeError, ValueError):
        return False
    return True


def _sample(x: Any) -> Any:
    if is_a(x, (float, int, str)):
        return 0.0 if is_a(x, float) else 0 if is_a(x, int) else ""
    return None


def deferred_format(parts: Sequence[Any]) -> Any:
    """Format an f-string. `parts` are texts and (value, conversion, spec) with conversion one of
    None, "s", "r", "a". The text is pending where a part is.

    >>> deferred_format(["loss ", (0.25, None, ".3f")])
    'loss 0.250'
    """
    made = [x if is_a(x, str) else _formatted(*x) for x in parts]
    if any(type(x) is AfterSymStr for x in made):
        return joined(*made)
    return "".join(made)


def _formatted(x: Any, conversion: str | None, spec: Any) -> Any:
    if conversion is not None:
        x = {"s": deferred_str, "r": deferred_repr, "a": ascii}[conversion](x)
    return deferred_format_of(x, spec)


def format_method(template: str) -> Callable[..., Any]:
    def deferred(*args: Any, **keywords: Any) -> Any:
        tracer = deferring_tracer()
        values = (*args, *keywords.values())
        if tracer is None or not any(map(_pends, values)):
            return template.format(*args, **keywords)
        names, count = tuple(keywords), len(args)

        def make(*parts: Any) -> str:
            return template.format(*parts[:count], **dict(zip(names, parts[count:])))

        return _made_later(tracer, make, template, values)

    return deferred


USER_CALL_WRAPPERS.update(c for c in format_method.__code__.co_consts if is_a(c, CodeType))


def join_method(separator: str) -> Callable[..., Any]:
    """Return what stands for `separator.join`: its text is pending where a part is."""

    def deferred(*args: Any) -> Any:
        tracer = deferring_tracer()
        if len(args) != 1 or not has_in_class(args[0], "__iter__"):
            return separator.join(*args)
        parts = list(args[0])
        waits = any(type(x) is AfterSymStr for x in parts)
        if tracer is None or not waits or not all(is_a(x, str) for x in parts):
            return separator.join([x.concretize() if type(x) is AfterSymStr else x for x in parts])

        def make(*texts: str) -> str:
            return separator.join(texts)

        return AfterSymStr(tracer, make, tuple(parts))

    return deferred


USER_CALL_WRAPPERS.update(c for c in join_method.__code__.co_consts if is_a(c, CodeType))


def deferred_percent(template: str, arguments: Any) -> Any:
    """Return `template % arguments`: pending where an argument is, unless they are a dict."""
    tracer = deferring_tracer()
    if tracer is None or type(template) is not str or not _pends(arguments):
        return template % arguments
    values = arguments if type(arguments) is tuple else (arguments,)
    if type(arguments) is dict:
        return template % arguments

    def make(*parts: Any) -> str:
        return template % parts

    return _made_later(tracer, make, template, values)


def _made_later(
    tracer: Any, make: Callable[..., str], template: str, values: Sequence[Any]
) -> Any:
    """Return `make(*values)` as a pending text if `make` works for samples of the same types. Else
    make it now: a replay must not raise."""
    try:
        parts = [read(tracer, x) if type(x) is Tensor and not x.shape else freeze(tracer, x)
                 for x in values]  # fmt: skip
        samples = [_sample(x) if _pends(x) else x for x in parts]
        if "c" in template or any(s is None and p is not None for s, p in zip(samples, parts)):
            raise NotDeferrable
        make(*samples)
    except (NotDeferrable, LookupError, TypeError, ValueError, AttributeError):
        return make(*values)
    return AfterSymStr(tracer, make, tuple(parts))
