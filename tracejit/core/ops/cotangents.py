"""Calling an op's gradient rules: the one place that saves, un-broadcasts and casts.

In: an op's record, what it was applied to, and the gradients of its outputs. Out: the gradients of
the operands that are asked for. The tape and the graph differentiator both call `cotangents`; what
they must keep until then is told by `saved`. Rules are written in ops, so everything here works on
tensors, deferred tensors and graph values alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from tracejit.core.ops import autocast, creation, pointwise
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import broadcast_dims, known_same_shape
from tracejit.core.ops.types import COMPLEX, TensorType, dtype_of_number


class Saved(NamedTuple):
    """Positions of the operands and outputs that rules read. Of the others they need only a
    TensorType."""

    operands: tuple[int, ...]
    outputs: tuple[int, ...]


@cache
def saved_names(op: Op, needed: tuple[int, ...]) -> frozenset[str]:
    """Return the names of the operands and outputs that the rules of these operand positions
    read."""
    tensors = {name.lstrip("*") for name in op.operands} | set(op.outputs)
    rules = {op.operand_name(k) for k in needed if op.differentiable(k)}
    return frozenset(p for name in rules for p in op.needs[name] if p in tensors)


@lru_cache(maxsize=4096)
def saved(op: Op, needed: tuple[int, ...], count: int) -> Saved:
    """Return which of `count` operands, and which outputs, the gradients of `needed` read."""
    names = saved_names(op, needed)
    return Saved(tuple(k for k in range(count) if op.operand_name(k) in names),
                 tuple(k for k, name in enumerate(op.outputs) if name in names))


def cotangents(op: Op, grads: Sequence[Any], operands: Sequence[Any], outputs: Sequence[Any],
               attributes: dict[str, Any], needed: Sequence[int]) -> list[Any]:
    """Return gradients of the operands at positions `needed`, in that order; None where there is
    none.

    grads      of the outputs, None for those that nothing depends on; at least one is a tensor
    operands, outputs  tensors; what `saved` does not name may be a TensorType (outputs: or None)

    A rule of a variadic operand (`*tensors`) returns one gradient for each operand of the tail.

    Autocast does not reach into rules: they compute in the dtypes of what they are given. Rules are
    written for real numbers: grad times a derivative. For a complex derivative PyTorch multiplies
    by its conjugate: here, conj(conj(grad) * derivative).
    """
    if autocast.switches.on:
        with autocast.switched_off():
            return cotangents(op, grads, operands, outputs, attributes, needed)
    conjugated = not op.adjoint and _complex_slope(op, grads, operands, outputs, tuple(needed))
    if conjugated:
        grads = [None if g is None else pointwise.conj(g) for g in grads]
    call = _Call(op, grads, operands, outputs, attributes)
    results: dict[str, Any] = {}
    if op.joint is not None and len(needed) == len(op.rules):
        results = op.joint(*[call.value(p) for p in op.joint_needs])
    found: list[Any] = []
    for k in needed:
        name = op.operand_name(k)
        rule = op.rules.get(name)
        if rule is None:
            found.append(None)
            continue
        if name not in results:
            result = rule(*[call.value(p) for p in op.needs[name]])
            results[name] = _conjugate(result) if conjugated else result
        result = results[name]
        if op.variadic and k >= len(op.operands) - 1 and isinstance(result, (tuple, list)):
            result = result[k - len(op.operands) + 1]
        found.append(None if result is None else fit(result, operands[k]))
    return found


def _complex_slope(op: Op, grads: Sequence[Any], operands: Sequence[Any], outputs: Sequence[Any],
                   needed: tuple[int, ...]) -> bool:
    """Return True if the rules of these operands multiply gradients by complex values."""
    if not any(g is not None and g.dtype.category == COMPLEX for g in grads):
        return False
    read = saved(op, needed, len(operands))
    values = [*(operands[k] for k in read.operands), *(outputs[k] for k in read.outputs)]
    return any(_is_complex(x) for x in values)


def _is_complex(x: Any) -> bool:
    d = getattr(x, "dtype", None)
    return isinstance(x, complex) if d is None else d.category == COMPLEX


def _conjugate(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return [_conjugate(x) for x in result]
    return None if result is None else pointwise.conj(result)


class _Call(NamedTuple):
    """Application of an op, looked up by the parameter names of its rules."""

    op: Op
    grads: Sequence[Any]
    operands: Sequence[Any]
    outputs: Sequence[Any]
    attributes: dict[str, Any]

    def value(self, name: str) -> Any:
        if name == "grad":
            return self.grad(0)
        if name in self.op.outputs:
            return self.outputs[self.op.outputs.index(name)]
        if name.startswith("grad_") and name[5:] in self.op.outputs:
            return self.grad(self.op.outputs.index(name[5:]))
        found = self.operand(name)
        if found is not None:
            return found[0]
        if name.endswith("_type"):
            of = self.operand(name[:-5])
            if of is not None:
                return [type_of(x) for x in of[0]] if isinstance(of[0], tuple) else type_of(of[0])
            return type_of(self.outputs[self.op.outputs.index(name[:-5])])
        return self.attributes.get(name)

    def operand(self, name: str) -> tuple[Any] | None:
        """Return the operand of that name in a 1-tuple; a variadic tail is one tuple."""
        for k, own in enumerate(self.op.operands):
            if own == name:
                return (self.operands[k] if k < len(self.operands) else None,)
            if own == f"*{name}":
                return (tuple(self.operands[k:]),)
        return None

    def grad(self, k: int) -> Any:
        """Return the gradient of output k; zeros, made only when a rule asks, where nothing depends
        on it."""
        if self.grads[k] is not None:
            return self.grads[k]
        like = next(g for g in self.grads if g is not None)
        kind = type_of(self.outputs[k])
        assert kind is not None
        return creation.zeros_of(like, kind)


def type_of(x: Any) -> TensorType | None:
    """Return the TensorType of a tensor, a number or a TensorType; None of None."""
    if x is None or type(x) is TensorType:
        return x
    shape = getattr(x, "shape", None)
    if shape is None:
        return TensorType(dtype_of_number(x), ())
    return TensorType(x.dtype, tuple(shape), x.device)


def fit(grad: Any, operand: Any) -> Any:
    """Sum `grad` to the operand's shape and cast it to its dtype."""
    grad = sum_to_shape(grad, operand.shape)
    return grad if grad.dtype is operand.dtype else pointwise.convert(grad, operand.dtype)


def sum_to_shape(grad: Any, shape: Sequence[Any]) -> Any:
    """Undo broadcasting: sum `grad` over the dimensions along which `shape` was repeated."""
    if known_same_shape(grad.shape, shape):
        return grad
    repeated = broadcast_dims(grad.shape, shape)
    if not repeated:
        return grad
    lead = len(grad.shape) - len(shape)
    grad = grad.sum(repeated, True)
    return grad.reshape(tuple(shape)) if lead else grad
