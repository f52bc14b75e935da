"""`script` and `trace`: a function becomes a `CompiledFunction`, which captures, guards, compiles
and replays it.

In: Python functions, methods, modules. Out: callables with the same results, mutations and errors
(C1). The compiler itself is in the folders beside; it is loaded when it is first needed.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

from tracejit.core.ops import sealing as _sealing

__all__ = ["CompiledFunction", "RecompileError", "load", "no_recompile", "save", "script",
           "script_if_tracing", "trace", "trace_module"]

importlib.import_module("tracejit.jit.annotations")  # the module is not the future feature
_LATER = {
    **dict.fromkeys(
        ("CompiledFunction", "RecompileError", "no_recompile"), "tracejit.jit.compiled_function"
    ),
    **dict.fromkeys(
        ("Attribute", "Final", "_overload", "_overload_method", "annotate", "export", "ignore",
         "interface", "is_scripting", "is_tracing", "script_method", "unused"),
        "tracejit.jit.capture.torchscript"),
    **dict.fromkeys(
        ("Error", "Future", "TracerWarning", "enable_onednn_fusion", "fork", "fuser", "isinstance",
         "onednn_fusion_enabled", "optimized_execution", "run_frozen_optimizations",
         "set_fusion_strategy", "strict_fusion", "wait"),
        "tracejit.jit.runtime.torchscript_objects"),
    **dict.fromkeys(
        ("ScriptModule", "freeze", "optimize_for_inference"), "tracejit.nn.script_module"),
}  # fmt: skip
_RENAMED = {"ScriptFunction": "CompiledFunction", "RecursiveScriptModule": "ScriptModule"}


def script(
    fn_or_module: Any = None,
    *,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    numerics: str | None = None,
    mode: str | None = None,
) -> Any:
    """Compile a function, method or module; usable as a decorator with or without arguments.

    dynamic    None: one program for all sizes it does not depend on; False: one per shape
    fullgraph  True: what cannot be replayed as one program is an error naming the line
    numerics   "fast", or "eager": bit for bit eager's results; None: TRACEJIT_NUMERICS
    mode       "eager", "graph", "python" or "compiled"; None: TRACEJIT_MODE

    >>> import tracejit
    >>> @tracejit.script(fullgraph=True)
    ... def double(x):
    ...     return x + x
    >>> double(tracejit.tensor([1.0]))
    tensor([2.])
    """
    options: dict[str, Any] = {
        "dynamic": dynamic,
        "fullgraph": fullgraph,
        "numerics": numerics,
        "mode": mode,
    }
    return _decorated(fn_or_module, options | {"read_source": True})


def _decorated(fn_or_module: Any, options: dict[str, Any]) -> Any:
    """Make a compiled function or module; a decorator where nothing is given yet."""
    if fn_or_module is None:
        return lambda fn: _decorated(fn, options)
    from tracejit.jit.compiled_function import CompiledFunction

    if hasattr(fn_or_module, "_parameters") and hasattr(fn_or_module, "forward"):
        return _scripted_module(fn_or_module, options)
    if isinstance(fn_or_module, CompiledFunction):
        return fn_or_module
    if not callable(fn_or_module):
        raise TypeError(
            f"script: expected a function or a module, got {type(fn_or_module).__name__}"
        )
    return CompiledFunction(fn_or_module, **options)


def _scripted_module(module: Any, options: dict[str, Any]) -> Any:
    """Put the same state behind a module whose `forward` is compiled."""
    from tracejit.jit.compiled_function import CompiledFunction
    from tracejit.jit.runtime.scripted_module import scripted_module

    return scripted_module(
        module, lambda forward: CompiledFunction(forward, **options), (_scripted_module, options)
    )


def trace(
    fn: Any = None,
    example_inputs: Any = None,
    *,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    numerics: str | None = None,
    mode: str | None = None,
    check_trace: bool = True, check_inputs: Any = None, check_tolerance: float = 1e-5,
    strict: bool = True, example_kwarg_inputs: dict[str, Any] | None = None,
) -> Any:
    """Like `script`, by execution only: the source is never read, a branch on a tensor's value ends
    a segment. `example_inputs` are captured at once. What PyTorch's tracer checks holds anyway:
    `check_trace`, `check_inputs`, `check_tolerance` and `strict` mean nothing here.

    >>> import tracejit
    >>> f = tracejit.trace(lambda x: x * x, (tracejit.ones(3),))
    >>> f.report().compiles
    1
    """
    options: dict[str, Any] = {
        "dynamic": dynamic,
        "fullgraph": fullgraph,
        "numerics": numerics,
        "mode": mode,
    }
    if fn is None:
        return lambda fn: trace(fn, example_inputs, **options)
    traced = _decorated(fn, options | {"read_source": False})
    if example_inputs is not None or example_kwarg_inputs is not None:
        several = isinstance(example_inputs, (tuple, list))
        examples = tuple(example_inputs) if several else (example_inputs,)
        given = () if example_inputs is None else copy.deepcopy(examples)
        traced(*given, **copy.deepcopy(example_kwarg_inputs or {}))
    return traced


def trace_module(mod: Any, inputs: dict[str, Any], **options: Any) -> Any:
    """`trace` of a module, with examples for its methods: `{"forward": example}`.

    NotImplementedError for other methods: they run as they are.
    """
    others = [name for name in inputs if name != "forward"]
    if others:
        raise NotImplementedError(f"jit.trace_module traces forward only, not {others[0]}")
    return trace(mod, inputs["forward"])


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function: what traced code calls is captured with it."""
    return fn


_script_if_tracing = script_if_tracing  # torchvision calls it so


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """NotImplementedError: programs are not written to files, for loading one would run its code.
    `tracejit.save(m.state_dict(), f)` keeps what was learnt."""
    raise NotImplementedError("jit.save cannot write compiled programs to files; save "
                              "m.state_dict() with tracejit.save, and load it into a module made "
                              "from the source")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """NotImplementedError: TorchScript files hold code, and loading a file never runs any."""
    raise NotImplementedError("jit.load: TorchScript files hold code, which tracejit does not "
                              "run; make the module from its source, and load its state_dict with "
                              "tracejit.load")


def __getattr__(name: str) -> Any:
    """Load what stands in other files, when it is asked for."""
    wanted = _RENAMED.get(name, name)
    if wanted not in _LATER:
        raise AttributeError(f"module 'tracejit.jit' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_LATER[wanted]), wanted)
    return found


def __dir__() -> list[str]:
    """Return the public names; the rooms of the compiler are not among them."""
    own = ("annotations", "load", "save", "script", "script_if_tracing", "trace", "trace_module")
    public = [name for name in (*own, *_LATER, *_RENAMED) if not name.startswith("_")]
    return sorted([*public, "__doc__", "__file__", "__name__", "__path__"])


_sealing.seal_all(globals())
