"""A program's calls made, and all that its caller can see after each.

In: a Program, and what to put in the place of its function (`script`, `trace`, or the function
itself). Out: paths and what is found there: results or the exception, memory, versions, gradients,
the caller's object, globals, cells, the generator's state. Called by `runner.py` and the tests.

Numbers are arrays here, so that they are compared as elements are; their types are told apart.
"""

from __future__ import annotations

import linecache
import re
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from zlib import crc32

import numpy as np

import tracejit as tj
import tracejit.nn.functional as F
from tests.random_programs.program import Call, Program
from tests.random_programs.spaces import tensor_of
from tracejit.core.ops.random import default_generator

Observed = list[tuple[str, Any]]  # path -> array or plain value
Function = Callable[..., Any]
PLAIN = (str, type(None), tj.dtype, tj.Size)
MOST_ELEMENTS = 2**22  # of a tensor
_files: OrderedDict[str, None] = OrderedDict()


class Outgrown(Exception):
    """The program makes its state larger and larger: nothing is learnt from it."""


def function_of(program: Program) -> Function:
    """The program as a Python function, whose source can be found."""
    text = program.text()
    name = f"<random program {crc32(text.encode()):08x}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    _files[name] = None
    while len(_files) > 32:
        linecache.cache.pop(_files.popitem(last=False)[0], None)
    space: dict[str, Any] = {"tj": tj, "F": F, "__name__": "random_program"}
    exec(compile(text, name, "exec"), space)
    return space["program"]


def observe(
    program: Program,
    wrap: Callable[[Function], Function] = lambda function: function,
    noise: AbstractContextManager = nullcontext(),
) -> Observed:
    """Make all calls of a program, under `noise`; what can be seen after each."""
    tj.manual_seed(7)
    plain = function_of(program)
    caller = Caller(program, plain, wrap(plain), noise)
    return [
        (f"call {number}: {path}", value)
        for number, call in enumerate(program.calls)
        for path, value in caller.call(call)
    ]


class Caller:
    """Who calls the program: owns memory and state, and changes them between calls."""

    def __init__(
        self, program: Program, plain: Function, function: Function, noise: AbstractContextManager
    ):
        self.program, self.function, self.noise = program, function, noise
        self.cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or ()))
        self.globals = plain.__globals__
        self.memories: dict[str, Any] = {}
        self.scope: dict[str, Any] = {
            "tj": tj, "inf": np.inf, "scope": self.globals, "cell": self._set_cell
        }  # fmt: skip
        if "State" in self.globals:
            self.scope["State"] = self.globals["State"]
        self._do(program.once)

    def _set_cell(self, name: str, value: Any) -> None:
        if name in self.cells:  # a smaller program may not read it any more
            self.cells[name].cell_contents = value

    def _do(self, lines: tuple[str, ...]) -> Observed:
        try:
            for line in lines:
                exec(line, self.scope)
        except Exception as e:
            return [("change", f"{type(e).__name__}: {e}")]
        return []

    def call(self, call: Call) -> Observed:
        if not (call.again and self.memories):
            self.memories = {m.name: tensor_of(m, call) for m in self.program.memories}
            self.scope |= self.memories
            self._do(self.program.each)
        for a in self.program.arguments:
            self.scope[a.name] = eval(a.given[call.sizes], self.scope)
        seen = self._do(call.changes)
        arguments = {a.name: self.scope[a.name] for a in self.program.arguments}
        self.versions = {name: x._version for name, x in self.memories.items()}
        before = dict(vars(self.scope["o"])) if "o" in self.scope else {}
        result = None
        try:
            with self.noise, tj.no_grad() if call.no_grad else nullcontext():
                result = self.function(*arguments.values())
        except MemoryError as e:
            raise Outgrown("the call runs out of memory") from e
        except Exception as e:
            seen.append(("exception", self._text(e)))
        return self._after(seen, result, arguments, before)

    def _version(self, name: str) -> int:
        """How often memory was written; of a program with loops, which count once, whether."""
        version = self.memories[name]._version
        return version != self.versions[name] if self.program.is_flow else version

    def _text(self, error: Exception) -> str:
        """An error's type and message; not how often memory was written, as above."""
        text = f"{type(error).__name__}: {error}"
        if not self.program.is_flow:
            return text
        return re.sub(r"is at version \d+; expected version \d+", "is at another version", text)

    def _backward(self, outputs: list[Any]) -> Observed:
        tracked = [x for x in outputs if x.requires_grad and leaf(x) != LOST]
        if not tracked:
            return []
        try:
            sum([(x * x).sum() * (k + 1) for k, x in enumerate(tracked)], tj.zeros(())).backward()
        except Exception as e:
            return [("backward", self._text(e))]
        return []

    def _after(
        self, seen: Observed, result: Any, arguments: dict[str, Any], before: dict[str, Any]
    ) -> Observed:
        known = {**self.memories, **arguments, **{f"old {n}": x for n, x in before.items()}}
        look = Look(self.memories, known, versions=not self.program.is_flow)
        seen = seen + look.at("output", result)
        if "o" in self.scope:
            seen += look.at("o", vars(self.scope["o"]))
        seen += [found for n, c in self.cells.items() for found in look.at(n, c.cell_contents)]
        seen += [found for n in ("G0",) for found in look.at(n, self.globals.get(n))]
        if self.program.backward == "outside":
            with self.noise:
                seen += self._backward(look.outputs)
        failed = any(type(x) is str and "Trying to backward" in x for _, x in seen)
        for name, x in self.memories.items():
            if failed and leaf(x) is True:  # which gradients had arrived by then is not promised
                x.grad = None
            seen += _of_memory(f"memory {name}", x)
            seen.append((f"memory {name} version", self._version(name)))
        seen.append(("generator", default_generator.array.copy()))
        return seen


LOST = "lost its history"


def leaf(x: Any) -> bool | str:
    """Whether a tensor is a leaf; a piece of what was written since does not say."""
    try:
        return x.is_leaf
    except RuntimeError:
        return LOST


def _of_memory(path: str, x: Any) -> Observed:
    seen: Observed = [(path, np.array(x.detach().array))]
    if leaf(x) is True and x.dtype.is_floating_point:
        g = x.grad
        seen.append((f"{path} gradient", None if g is None else np.array(g.detach().array)))
    return seen


class Look:
    """Looks at results and state; says which objects and memory were met before, and where."""

    def __init__(self, memories: dict[str, Any], known: dict[str, Any], versions: bool):
        self.objects: dict[int, str] = {}
        self.storages: dict[int, str] = {}
        self.kept: list[Any] = []  # ids stay taken
        self.outputs: list[Any] = []
        self.shown: set[int] = set()
        self.versions = {id(x._storage) for x in memories.values()} if versions else set()
        for name, x in known.items():
            if isinstance(x, (tj.Tensor, list, dict)):
                self._meet(name, x)

    def _meet(self, path: str, x: Any) -> tuple[str, str]:
        """Where this object and this memory were met first."""
        self.kept.append(x)
        first = self.objects.setdefault(id(x), path)
        if not isinstance(x, tj.Tensor):
            return first, ""
        return first, self.storages.setdefault(id(x._storage), path) if x.numel() else ""

    def at(self, path: str, x: Any) -> Observed:
        if isinstance(x, tj.Tensor):
            return self._tensor(path, x)
        if isinstance(x, bool) or type(x) in PLAIN:
            return [(path, x)]
        if isinstance(x, (int, float)):
            return [(f"{path} type", type(x).__name__), (path, _as_array(x))]
        if not isinstance(x, (list, tuple, dict)):
            return [(path, type(x).__name__)]
        items = x.items() if isinstance(x, dict) else enumerate(x)
        first = "" if isinstance(x, tuple) else self._meet(path, x)[0]
        seen: Observed = [(f"{path} type", (type(x).__name__, len(x), first))]
        if id(x) in self.shown:
            return seen
        self.shown |= {id(x)} if first else set()
        return seen + [found for key, y in items for found in self.at(f"{path} {key}", y)]

    def _tensor(self, path: str, x: Any) -> Observed:
        if path.startswith("output"):
            self.outputs.append(x)
        if x.numel() > MOST_ELEMENTS:
            raise Outgrown(f"{path} has {x.numel()} elements")
        strides = tuple(s for s, n in zip(x.stride(), x.shape) if n > 1) if x.numel() else ()
        same, looks_at = self._meet(path, x)
        kind = (x.dtype.name, tuple(x.shape), strides, x.requires_grad, leaf(x), same, looks_at)
        seen: Observed = [(f"{path} type", kind), (path, np.array(x.detach().array))]
        if id(x._storage) in self.versions:  # of memory the call made only later changes matter
            seen.append((f"{path} version", x._version))
        return seen


def _as_array(x: float) -> Any:
    if isinstance(x, int) and not -(2**63) <= x < 2**63:
        return repr(int(x))
    return np.array(x, np.int64 if isinstance(x, int) else np.float64)
