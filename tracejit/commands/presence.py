"""Presence of PyTorch's names and keywords in tracejit.

In: a dotted name as `torch.nn.Linear` or `Tensor.sum`, perhaps a keyword. Out: what is missing of
it, in words; empty where nothing is. Called by `check`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import Any

from tracejit.debug.torch_scripts import is_module

ABSENT = "is not in tracejit"
_MISSING = object()
_SHOWN = 100  # characters of a message


@functools.cache
def lack(dotted: str) -> str:
    """Return what is wrong with a name: "" where it is there and does something.

    >>> lack("torch.nn.functional.gelu"), lack("torch.mps.load"), lack("Tensor.sum")
    ('', 'is not in tracejit', '')
    """
    try:
        found = _find(dotted)
    except ImportError:  # tracejit has it, and says which package it needs
        return ""
    if found is _MISSING:
        return ABSENT
    message = refusal(found)
    return f"only raises NotImplementedError: {message}" if message else ""


@functools.cache
def lack_of_keyword(dotted: str, keyword: str) -> str:
    """Return what is wrong with a keyword of a function or class: "" where it is taken, or where
    nothing tells."""
    try:
        found = _find(dotted)
    except ImportError:
        return ""
    if found is _MISSING or refusal(found) or not callable(found):
        return ""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ""
    if any(p.name == keyword or p.kind is p.VAR_KEYWORD for p in parameters):
        return ""
    if isinstance(found, type):
        return f"has no argument {keyword!r} in tracejit"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not any(p.default is p.empty and p.kind in positional for p in parameters):
        return ""
    # The signature does not show `out`, or `axis` for `dim`. Python refuses a keyword before it
    # misses an argument, so this call ends before the function begins.
    try:
        found(**{keyword: None})
    except TypeError as error:
        if "unexpected keyword" in str(error) and repr(keyword) in str(error):
            return f"has no argument {keyword!r} in tracejit"
    except Exception:  # it looked at its arguments, and knows the keyword
        return ""
    return ""


def _find(dotted: str) -> Any:
    first, *parts = dotted.split(".")
    found: Any = importlib.import_module("tracejit")
    if first == "Tensor":
        parts.insert(0, first)
    path = "tracejit"
    for part in parts:
        path += f".{part}"
        if hasattr(found, part):
            found = getattr(found, part)
        elif isinstance(found, ModuleType) and is_module(path):
            found = importlib.import_module(path)
        else:
            return _MISSING
    return found


def refusal(found: Any, depth: int = 2) -> str:
    """Return the message of a function, or a class, all of whose work is to raise
    NotImplementedError; "" for others.

    >>> import tracejit.onnx
    >>> refusal(tracejit.onnx.export)[:12]
    'onnx.export:'
    """
    if isinstance(found, type):
        found = vars(found).get("__init__")
    if not isinstance(found, FunctionType):
        return ""
    body = _body(found)
    if len(body) != 1:
        return ""
    only = body[0]
    if isinstance(only, ast.Raise) and isinstance(only.exc, ast.Call):
        if getattr(only.exc.func, "id", "") == "NotImplementedError":
            return _text(only.exc) or "it says why"
    if isinstance(only, (ast.Expr, ast.Return)) and isinstance(only.value, ast.Call) and depth:
        called = found.__globals__.get(getattr(only.value.func, "id", ""))
        inner = refusal(called, depth - 1)
        return (inner and _text(only.value)) or inner
    return ""


@functools.cache
def _body(function: FunctionType) -> list[ast.stmt]:
    """Return a function's statements without its docstring; none where there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return []
    made = tree.body[0]
    if not isinstance(made, ast.FunctionDef):
        return []
    documented = ast.get_docstring(made) is not None
    return made.body[documented:]


def _text(call: ast.Call) -> str:
    """Return the first argument as a text, with `...` for what the program fills in."""
    if not call.args:
        return ""
    given = call.args[0]
    parts = given.values if isinstance(given, ast.JoinedStr) else [given]
    text = "".join(str(p.value) if isinstance(p, ast.Constant) else "..." for p in parts)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
