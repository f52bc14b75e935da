"""NumPy's names of arguments: `axis` is `dim`, `keepdims` is `keepdim`, `x` is `input`.

In: functions and methods as they are made public, and keywords of a call. Out: the same functions,
which take NumPy's names beside PyTorch's. Functions that PyTorch writes in Python take its own
names only; they stay as they are. Calls without keywords pay nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from tracejit.core.ops import overriding

NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input",
         "x2": "other"}  # fmt: skip
# Functions that PyTorch writes in Python.
PYTHON_FUNCTIONS = frozenset(("tracejit.norm", "tracejit.nn.functional.normalize"))
PYTHON_METHODS = frozenset("norm split stft unflatten unique unique_consecutive".split())


def names_among(parameters: Collection[str]) -> dict[str, str]:
    """Return NumPy's names of those parameters that have one, with PyTorch's."""
    return {theirs: ours for theirs, ours in NAMES.items()
            if ours in parameters and theirs not in parameters}


def names_of(function: Callable[..., Any], skip: int = 0) -> dict[str, str]:
    """Return NumPy's names of a function's parameters behind the first `skip`.

    A record gets none here: it looks for them itself.
    """
    if hasattr(function, "__wrapped__"):
        function = inspect.unwrap(function)
    if not inspect.isfunction(function):
        return {}
    code = function.__code__
    return names_among(code.co_varnames[skip:code.co_argcount + code.co_kwonlyargcount])


def renamed(named: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Rename keywords to PyTorch's names. A name whose meaning is given, too, stays as it is."""
    return {names[name] if name in names and names[name] not in named else name: value
            for name, value in named.items()}


def taking(function: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    """Return a function that takes these names, too; the same function if there are none."""
    if not names:
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            if named:
                named = renamed(named, names)
            return function(*arguments, **named)
        except Exception:
            return overriding.instead(call, arguments, named)

    return call


def numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function with `taking`: NumPy's names of all its parameters."""
    return taking(function, names_of(function))


def functions_taking(room: Mapping[str, Any], spellings: Iterable[str]) -> dict[str, Any]:
    """Return functions of a module by name, which take NumPy's names."""
    return {name: numpy_names(room[name]) for name in spellings}


# Functions of PyTorch's core with dimensions or a second operand, which take no `out` here.
TORCH = """chunk count_nonzero cumulative_trapezoid gradient dist index_fill narrow norm_except_dim
repeat_interleave select select_scatter split_with_sizes squeeze std_mean tensor_split trapezoid
trapz unbind unflatten unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze var_mean
allclose equal is_same_size isclose rsub ones_like rand_like randint_like randn_like""".split()
FFT = ["fftshift", "ifftshift"]
