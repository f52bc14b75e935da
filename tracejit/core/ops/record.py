"""Op records: everything tracejit knows of an operation, and how a call finds who runs it.

In: calls of ops on tensors, graph values or numbers. Out: whatever the operands' kind makes of
them: eager tensors run NumPy, deferred tensors and graph values add a node. Used by every room; the
records live in `ops/<family>.py`.

Calling convention of a record: operands are positional (tensors, numbers, None). Attributes are
keywords (static data: ints, symbolic sizes, dtypes, strings, tuples of these). Front ends such as
`ops.sum(x, dim=None)` normalise PyTorch's arguments to that form.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tracejit.core.ops import autocast, direct_calls, overriding
from tracejit.core.ops.record_texts import TEXTS

REGISTRY: dict[str, Op] = {}
_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Emitter(Protocol):
    """Lowering as an `element` function sees it, which computes one element of an output.

    An *index* is an integer expression of loop variables. It supports + - * // % with ints, sizes
    and indices. The comparisons < <= > >= == give conditions (combine with & and |). A *scalar* is
    a typed value.
    """

    def operand(self, k: int, index: Sequence[Any]) -> Any: ...  # element of operand k
    def shape(self, k: int) -> tuple: ...  # sizes of operand k
    def where(self, condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any: ...
    def number(self, value: Any) -> Any: ...  # a constant of the output's dtype
    def call(self, template: str, **scalars: Any) -> Any: ...  # scalar expression, output's dtype
    def to_index(self, scalar: Any) -> Any: ...  # integer scalar -> index
    def from_index(self, index: Any) -> Any: ...  # index -> scalar of the output's dtype
    def checked(
        self, index: Any, size: Any, message: str
    ) -> Any: ...  # wraps negatives, reports out of range


class Reduce(NamedTuple):
    """Combination step of a reduction: `combine` of `{a}` and `{b}`, from `identity` (by dtype).

    `position` marks argmax-like reductions: `combine` is then the condition under which b replaces
    a.
    """

    combine: str
    identity: Callable[[Any], Any]
    position: bool = False


class Scatter(NamedTuple):
    """Writes of a scatter op into a copy of operand 0.

    target   (emit, index, **attributes) -> the place in the output for the element at `index` of
             operand `source`
    combine  "set" or "add", in row-major order of the source: the last one wins, sums have an order
    named    (operands, **attributes) -> the dimensions of the output whose places the indices name,
             and a bound of how often they can name one place; None: nothing is added
    """

    target: Callable[..., Sequence[Any]]
    combine: str = "set"
    source: int = 2
    named: Callable[..., tuple[Sequence[int], Any]] | None = None


class Op:
    """Record of an operation.

    name       text in printed graphs; unique
    kind       pointwise | movement | reduction | creation | random | extern | scatter | composite
    operands   names of tensor operands; a last name starting with `*` takes any number
    infer      (*operands, **attributes) -> TensorType or a tuple of them; raises what the user
               should see
    eager      (xp, *arrays, **attributes) -> array or tuple, xp being numpy or cupy
    rules      operand name -> gradient rule; parameters of a rule name what it needs: `grad` (of
               the first output), output names, operand names, `<operand>_type` (TensorType only),
               attribute names
    scalar     pointwise: one scalar expression in `{operand}`s, `{dtype}` the output's dtype name
    element    movement, creation, random: (emit, index, **attributes) -> scalar
    embeds     movement: each element of the operand lies at one place of the result at most
    reduce     reduction: how it combines; attributes `dims` (sorted, >= 0) and `keepdim`
    scatter    scatter: where the source's elements go
    extern     name of the library routine that lowering calls (products); None: eager's own NumPy
               call
    body       composite: the same function written in ops
    views      eager: output 0 is a view of operand 0
    view_inverse  of views: (base of the view, written value, **attributes) -> the base anew
    sizes      attributes that may be symbolic sizes: kernels differ in the length of loops only
    dynamic    sizes of results depend on values, and are None in their types; the text says what
               to write instead where one program is wanted
    adjoint    rules are right for complex numbers as they are; other rules are those of real
               numbers, and `cotangents` conjugates around them
    library    a kernel written by hand computes it on the CPU, in eager mode too, where
               `jit/lowering/library.py` has one for its types; `eager` is for all others
    joint      the rules of all operands as one function, with the parameters that they have
               together: it returns a dict, and runs where all of these gradients are asked for
    fused      on the CPU eager mode runs it as one compiled program in float32 and float64, by
               `jit/runtime/eager_fused.py`. "flat": elementwise; "rows": along `dim` or `dims`;
               "whole": any other; "exact": elementwise with the bits of its body, which NumPy runs
               until a compile pays. Where the tape is to record a composite without rules, its
               body runs
    exact      of `scalar`: all arithmetic in it is defined to the bit, so NumPy and kernels agree
    may_fail   it raises for some values (a position out of range): its node is kept though the
               result is unread, as the user's line would raise
    effect     it acts on more than its results (other processes wait for it): its node is kept, and
               runs once
    fast       the kind of native function that computes small plain calls (`jit/runtime/eager_*`);
               `direct` is that function, or NotImplemented's stand-in until it is made
    """

    def __init__(
        self,
        name: str,
        kind: str,
        operands: tuple[str, ...],
        infer: Callable[..., Any],
        eager: Callable[..., Any] | None = None,
        rules: Mapping[str, Callable[..., Any]] | None = None,
        outputs: tuple[str, ...] = ("out",),
        scalar: str | None = None,
        element: Callable[..., Any] | None = None,
        embeds: bool = False,
        reduce: Reduce | None = None,
        scatter: Scatter | None = None,
        extern: str | None = None,
        body: Callable[..., Any] | None = None,
        views: bool = False,
        view_inverse: Callable[..., Any] | None = None,
        sizes: tuple[str, ...] = (),
        dynamic: str = "",
        adjoint: bool = False,
        library: bool = False,
        fused: str = "",
        joint: Callable[..., Any] | None = None,
        may_fail: bool = False,
        effect: bool = False,
        node_name: str | None = None,  # PyTorch's name of the backward node, e.g. "AddBackward0"
        front: Callable[[tuple, dict], tuple[tuple, dict]] | None = None,
        casts: dict[str, str | None] | None = None,  # what autocast does to a call, by device
        fast: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.operands = operands
        self.infer = infer
        self.eager = eager
        self.rules: Mapping[str, Callable[..., Any]] = rules or {}
        self.outputs = outputs
        self.scalar = scalar
        self.element, self.embeds = element, embeds
        self.reduce = reduce
        self.scatter = scatter
        self.extern = extern
        self.body = body
        self.views = views
        self.view_inverse = view_inverse
        self.sizes = sizes
        self.dynamic = dynamic
        self.adjoint = adjoint
        self.library = library
        self.fused, self.joint = fused, joint
        self.by_kernel = library or bool(fused)
        self.exact = scalar is not None and _is_exact(scalar)
        self.may_fail = may_fail
        self.effect = effect
        self.node_name = node_name
        self.front = front
        self.casts = casts
        self.fast = fast
        self.direct: Any = direct_calls.counting(self) if fast else None
        if self.name in REGISTRY:
            raise ValueError(f"op {self.name!r} is defined twice")
        REGISTRY[self.name] = self
        self.__name__ = self.name
        if self.name in TEXTS:
            self.__doc__ = TEXTS[self.name]
        self.needs = {name: _parameters(rule) for name, rule in self.rules.items()}
        self.joint_needs = _parameters(joint) if joint is not None else ()
        self.variadic = bool(self.operands) and self.operands[-1].startswith("*")
        if self.body is not None:
            self.body = autocast.not_cast(self.body)

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        try:
            if self.casts is not None and autocast.switches.on:
                return autocast.cast_call(self, self.casts, operands, attributes)
            if self.direct is not None and not attributes:
                found = self.direct(*operands)
                if found is not NotImplemented:
                    return found
            if attributes and self.front is not None and "out" in attributes:
                from tracejit.core.ops.out import written

                return written(self, self.name, operands, attributes)
            if self.front is not None:
                prepared, static = self.front(operands, attributes)
                return apply(self, prepared, static)
            return apply(self, operands, attributes)
        except Exception:
            return overriding.instead(self, operands, attributes)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self):
        return (op_named, (self.name,))

    def operand_name(self, k: int) -> str:
        """Return the name of operand number k; all of a variadic tail share one name."""
        if self.variadic and k >= len(self.operands) - 1:
            return self.operands[-1][1:]
        return self.operands[k]

    def differentiable(self, k: int) -> bool:
        return self.operand_name(k) in self.rules

    def backward_name(self) -> str:
        camel = "".join(part.capitalize() for part in self.name.strip("_").split("_"))
        return self.node_name or f"{camel}Backward0"


_FUNCTION = re.compile(r"[a-z]\w*(?=\()")
_EXACT = frozenset("if else not or and abs sqrt floor ceil trunc rint min max".split())


def _is_exact(scalar: str) -> bool:
    """Return True if an expression uses only operations that IEEE arithmetic defines to the bit."""
    return _EXACT.issuperset(_FUNCTION.findall(scalar.replace("{dtype}", "")))


Dispatch = Callable[[Op, tuple, dict], Any]


class Elsewhere(Exception):
    """Signal that an operand other than the first decides how an op runs; `run` does it."""

    def __init__(self, run: Dispatch):
        super().__init__()
        self.run = run


def _parameters(rule: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a rule's parameters. `inspect.signature` takes a hundred times longer."""
    code = getattr(rule, "__code__", None)
    if code is None or hasattr(rule, "__wrapped__") or code.co_flags & _STARRED:
        return tuple(inspect.signature(rule).parameters)
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]


def op_named(name: str) -> Op:
    return REGISTRY[name]


_default_dispatch: Dispatch | None = None


def install_default(dispatch: Dispatch) -> None:
    """Set the runner of ops without tensor operands (creation, random). Called once, by
    `eager/`."""
    global _default_dispatch
    _default_dispatch = dispatch


def _of_numbers(op: Op, operands: tuple, attributes: dict) -> Any:
    """Run arithmetic of two numbers, which gives a tensor. TypeError for other elementwise ops."""
    from tracejit.core.ops.creation import number_tensor

    if op.name not in ("add", "sub", "mul", "div"):
        raise TypeError(f"{op.name}(): expected at least one tensor among the operands")
    return apply(op, (number_tensor(operands[0]), *operands[1:]), attributes)


def apply(op: Op, operands: tuple, attributes: dict) -> Any:
    """Run `op`: the first operand whose class has a `dispatch` decides how."""
    for operand in operands:
        dispatch = getattr(type(operand), "dispatch", None)
        if dispatch is not None:
            return dispatch(op, operands, attributes)
    if op.kind == "pointwise":
        return _of_numbers(op, operands, attributes)
    if _default_dispatch is None:
        raise RuntimeError("no executor is installed: import tracejit before calling its ops")
    return _default_dispatch(op, operands, attributes)
