"""Marks and questions about the compiler; PyTorch's `torch.compiler`.

In: functions to be marked, and questions. Out: the same functions, and answers. `is_compiling`
tells captured calls from plain ones, as programs leave out there what reads values.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.recording import active
from tracejit.jit import script

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "reset",
]  # fmt: skip


# Modes of PyTorch's say how long to compile for: here there is one way. Others are `script`'s.
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_OWN_MODES = ("eager", "graph", "python", "compiled")
_BACKENDS = {
    "inductor": None, "cudagraphs": None,
    "eager": "graph", "aot_eager": "graph", "aot_eager_decomp_partition": "graph",
}  # fmt: skip


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "inductor", mode: str | None = None,
            options: dict[str, Any] | None = None, disable: bool = False,
            numerics: str | None = None) -> Any:
    """Call `script` under PyTorch's name and with its arguments, as a call or a decorator.

    model      a function, a method or a module
    fullgraph  code that cannot be replayed as one program is an error naming the line
    dynamic    None: one program for all sizes it does not depend on; False: one per shape
    backend    "inductor" or "cudagraphs": kernels; "eager" or "aot_eager": the captured graph,
               op by op. NotImplementedError for functions, which would be given PyTorch's graphs
    mode       PyTorch's modes, which mean the same here, or one of `script`'s
    options    PyTorch's tuning of its backend, without effect
    disable    give `model` back
    numerics   as for `script`

    RuntimeError for unknown backends and modes.

    >>> import tracejit
    >>> f = tracejit.compile(lambda x: x * 2, mode="reduce-overhead", fullgraph=True)
    >>> f(tracejit.ones(2))
    tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified "
                           "at the same time.")
    if mode is not None and mode not in _MODES + _OWN_MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: "
                           f"{', '.join(_MODES + _OWN_MODES)}")
    if callable(backend):
        raise NotImplementedError("compile: a backend of the user's would be given PyTorch's "
                                  "graphs; fn.graph() shows tracejit's")
    if backend not in _BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, should be one of: "
                           f"{', '.join(_BACKENDS)}")
    own = mode if mode in _OWN_MODES else _BACKENDS[backend]
    if disable:
        return model if model is not None else lambda model: model
    return script(model, dynamic=dynamic, fullgraph=fullgraph, numerics=numerics, mode=own)


def is_compiling() -> bool:
    """Return True while a call is captured; False where the function runs plainly.

    >>> import tracejit
    >>> f = tracejit.script(lambda x: x * 2 if is_compiling() else x)
    >>> is_compiling(), f(tracejit.ones(1))
    (False, tensor([2.]))
    """
    tracer: Any = active.tracer
    while tracer is not None and tracer.mapped:
        tracer = tracer.below
    return tracer is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return False: no call is exported."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function, and mark nothing: capture finds what it cannot record without marks.
    Works as `@disable` or `@disable()`.

    >>> @disable(reason="it prints")
    ... def shown(x):
    ...     return x
    >>> shown(1)
    1
    """
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """Return the function, and mark nothing."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return the function, and mark nothing: its result is never taken for an earlier one."""
    return fn


def reset() -> None:
    """Do nothing: programs are freed with the functions they belong to."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: results of one call are not overwritten by the next."""
