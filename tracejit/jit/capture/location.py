"""Line of the user's program that an op came from, and whose code a code object is.

In: the current Python stack. Out: a `Location`, the innermost frame that is not tracejit's or a
compiler's. Called by the tracer for every node and by break records.
"""

from __future__ import annotations

import contextlib
import contextvars
import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy

from tracejit.jit.ir.graph import Location

_HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(_HERE)) + os.sep
REWRITTEN = (  # own files that are rewritten as the user's are
    os.path.join(PACKAGE, "amp", "finite_step.py"),
    os.path.join(PACKAGE, "nn", "recurrence.py"),
)
# Files of einops that are pure, but for caches of patterns and shapes.
_EINOPS = {"einops.py", "packing.py", "parsing.py", "_backends.py", "_torch_specific.py"}
_MACHINERY = ("<frozen importlib", "<frozen zipimport", "<frozen abc>")
_HOOKS = ("__subclasshook__", "_check_methods")  # what `isinstance(x, Iterator)` runs
_CAPTURING = tuple(os.path.join(PACKAGE, "jit", room) + os.sep for room in ("capture", "runtime"))
# It calls the captured function: frames above are not the call's.
_CALLS = os.path.join(PACKAGE, "jit", "capture", "signature.py")
_SIZES = os.path.join("tracejit", "jit", "ir", "sizes.py")
INSTALLED = os.path.dirname(os.path.dirname(numpy.__file__)) + os.sep
_LIBRARIES = (INSTALLED, os.path.dirname(os.__file__) + os.sep, "<frozen ")
COMPILERS = ("cupy", "jax", "jaxlib", "llvmlite", "numba", "numba_cuda", "numexpr", "taichi",
             "triton", "warp")  # fmt: skip
_COMPILERS = tuple(INSTALLED + name + os.sep for name in COMPILERS)
_own: dict[int, tuple[CodeType, bool]] = {}  # by id: hashing code takes longer than the answer
_seen: dict[tuple[CodeType, int], Location] = {}
# What nodes of a recording's tape keep -> the line of their op, for errors of their backward.
forward_lines: WeakKeyDictionary[Any, Location | None] = WeakKeyDictionary()
_naming_modules: contextvars.ContextVar[bool] = contextvars.ContextVar("modules", default=False)


def is_internal_code(code: CodeType) -> bool:
    """Return True if a code object is tracejit's, or counts as pure. Pure are einops and what
    Python adds itself, such as import and the methods of dataclasses."""
    known = _own.get(id(code))
    if known is None:
        name = code.co_filename
        made = code.co_qualname.startswith("__create_fn__.") or "_tuple_new" in code.co_names
        own = name.startswith((PACKAGE, "<tracejit", *_MACHINERY)) or name == "<string>" and made
        hook = name == "<frozen _collections_abc>" and code.co_name in _HOOKS
        known = _own[id(code)] = code, own or hook or _is_einops(name)
    return known[1]


def is_of_compiler(code: CodeType) -> bool:
    """Return True for code of a compiler such as numba, which runs on the user's behalf."""
    return code.co_filename.startswith(_COMPILERS)


def is_installed(code: CodeType) -> bool:
    """Return True if code belongs to Python's library or an installed package."""
    return is_library(code.co_filename)


def is_library(filename: str) -> bool:
    """Return True if a file belongs to Python's library or an installed package."""
    return filename.startswith(_LIBRARIES)


def _is_einops(filename: str) -> bool:
    """Return True if a file belongs to the einops that is imported and its functions are pure."""
    folder, name = os.path.split(filename)
    package = getattr(sys.modules.get("einops"), "__file__", None) or ""
    return name in _EINOPS and folder == os.path.dirname(package)


def is_published(function: FunctionType) -> bool:
    """Return True if a function is tracejit's own and its module has it under its name. Guards then
    compare its identity alone.

    >>> import tracejit
    >>> is_published(tracejit.nn.functional.gelu)
    True
    """
    if not is_internal_code(function.__code__):
        return False
    home = sys.modules.get(str(function.__module__))
    return getattr(home, function.__name__, None) is function


def user_frame(depth: int = 1) -> FrameType | None:
    """Return the innermost frame of the user's code, from `depth` frames up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and (is_internal_code(frame.f_code) or is_of_compiler(frame.f_code)):
        frame = frame.f_back
    return frame


def public_caller() -> str:
    """Return the name of the function of tracejit's that the user's code has called, or ""."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and is_internal_code(frame.f_code):
        code = frame.f_code
        named = getattr(frame.f_globals.get(code.co_name), "__code__", None) is code
        if named and not code.co_filename.startswith(_CAPTURING) and code.co_name[0] != "_":
            name = code.co_name
        frame = frame.f_back
    return name


def is_asked_by_user() -> bool:
    """Return True if the user's code, not tracejit's (as its printing), asks what a size is."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.endswith(_SIZES):
        frame = frame.f_back
    return frame is not None and not is_internal_code(frame.f_code)


def in_capture(depth: int) -> bool:
    """Return True if no segment may end now: the function `depth` frames up works for capture or
    the runtime. Such code writes memory that others may share, or follows a branch, a loop or the
    call."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and is_internal_code(frame.f_code):
        name = frame.f_code.co_filename
        if name == _CALLS:
            return False
        if name.startswith(_CAPTURING):
            return True
        frame = frame.f_back
    return False


def user_location(depth: int = 2) -> Location | None:
    """Return file, line and text of the user's line that is running."""
    frame = user_frame(depth)
    if frame is None:
        return None
    found = location_of(frame.f_code, frame.f_lineno)
    if _naming_modules.get():
        return found._replace(module=_module_name(sys._getframe(depth)))
    return found


def location_of(code: CodeType, line: int) -> Location:
    """Return file, line and text of a line of a code object."""
    found = _seen.get((code, line))
    if found is None:
        text = linecache.getline(code.co_filename, line).strip()
        found = _seen[code, line] = Location(code.co_filename, line, text, code.co_name)
    return found


def written_location(depth: int = 2) -> tuple[Location | None, Location | None]:
    """Return the user's line that is running, and the line of a library that it has called.

    Code that was installed counts as a library's. If the captured function itself is such code,
    its innermost line is the user's.
    """
    inner = user_frame(depth)
    frame = inner
    while frame is not None and frame.f_code.co_filename != _CALLS:
        code = frame.f_code
        if not (is_installed(code) or is_internal_code(code) or is_of_compiler(code)):
            break
        frame = frame.f_back
    else:
        frame = inner
    if frame is None or inner is None:
        return None, None
    found = location_of(frame.f_code, frame.f_lineno)
    below = None if frame is inner else location_of(inner.f_code, inner.f_lineno)
    return found, below


@contextlib.contextmanager
def naming_modules() -> Iterator[None]:
    """Let locations name the submodule of the captured module whose method runs."""
    token = _naming_modules.set(True)
    try:
        yield
    finally:
        _naming_modules.reset(token)


def _module_name(frame: FrameType | None) -> str:
    """Return the name that the outermost module on the stack has for the innermost one, or ""."""
    owners: list[Any] = []
    while frame is not None and frame.f_code.co_filename != _CALLS:
        owner = frame.f_locals.get("self")
        if hasattr(owner, "named_modules"):
            owners.append(owner)
        frame = frame.f_back
    names = {id(m): name for name, m in owners[-1].named_modules()} if owners else {}
    return next((names[id(m)] for m in owners if id(m) in names), "")
