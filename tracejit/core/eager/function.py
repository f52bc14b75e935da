"""`autograd.Function`: ops whose forward and backward the user writes.

In: subclasses with static `forward` and `backward` (and maybe `setup_context`). Out: `apply`, which
runs forward off the tape and puts one node there; the node is the `ctx` that both methods see. With
create_graph backward runs on the tape, so double backward works.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from tracejit.core.eager.history import rebase, set_history
from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.nodes import FREED, Edge, Node, edge_of, grad_fn_of
from tracejit.core.eager.origins import check_use
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import Saved, SavedOutput, Unsaved, alias, settle_shapes
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tape import refresh
from tracejit.core.eager.views import AliasFamily, View, canonical
from tracejit.core.eager.writing import LEAF, bump_version, check_writable, write_memory
from tracejit.core.ops import creation
from tracejit.core.ops.cotangents import fit
from tracejit.core.ops.shapes import broadcast_dims, known_same_shape, shape_text
from tracejit.core.ops.types import FLOATING, TensorType


class FunctionCtx:
    """Context through which forward passes data to backward: `ctx.save_for_backward(*tensors)`, and
    attributes.

    TypeError for what is no tensor.

    >>> import tracejit
    >>> class Double(tracejit.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.factor = 2
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * ctx.factor
    >>> x = tracejit.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    saved_for_backward: tuple = ()
    saved_for_forward: tuple | None = None
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    materialize_grads = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs, intermediates or None) for backward; writes to them are
        noticed."""
        for x in tensors:
            if x is not None and not isinstance(x, TensorState):
                raise TypeError("save_for_backward can only save variables, but argument is of "
                                "type "
                                f"{type(x).__name__}")
        self.saved_for_backward = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_tensors`."""
        for x in tensors:
            if x is not None and not isinstance(x, TensorState):
                raise TypeError("save_for_forward can only save variables, but argument is of "
                                f"type {type(x).__name__}")
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare the inputs that forward wrote to; forward must return them."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare the outputs that have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what backward gets for outputs without gradient: zeros (the default) or None."""
        self.materialize_grads = value


class FunctionNode(Node, FunctionCtx):
    """Node of one `apply`: PyTorch's ctx."""

    function: Any
    needs_input_grad: tuple = ()
    _kept: tuple | None = None  # what backward unpacks; None while forward runs
    _freed = False
    _called_from: tuple[CodeType, int] | None = None  # the caller of `apply`, for errors
    _outputs: tuple = ()
    _inputs: tuple = ()

    @property
    def output_count(self) -> int:  # type: ignore[override]
        return len(self._outputs)

    @property
    def saved_tensors(self) -> tuple:
        """Tensors given to `save_for_backward`; in `jvp`, those given to `save_for_forward`."""
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self._freed:
            raise RuntimeError(FREED)
        if self._kept is None:
            return self.saved_for_backward
        return tuple(None if x is None else x.unpack() for x in self._kept)

    @property
    def saved_variables(self) -> tuple:
        """PyTorch's older name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning,
                      stacklevel=2)
        return self.saved_tensors

    def apply(self, grads: list) -> list:
        if self._freed:
            raise RuntimeError(FREED)
        settle_shapes(self._outputs)
        settle_shapes(self._inputs)
        if self.materialize_grads:
            like = next(g for g in grads if g is not None)
            grads = [g if g is not None or type(t) is not Unsaved
                     else creation.zeros_of(like, TensorType(t.dtype, t.shape, t.device))
                     for g, t in zip(grads, self._outputs)]
        found = _backward_of(type(self).function)(self, *grads)
        return self._checked(found if isinstance(found, tuple) else (found,))

    def _checked(self, found: Sequence[Any]) -> list:
        """Return the gradients in the inputs' shapes and dtypes. Raises RuntimeError or TypeError
        for wrong ones."""
        count = len(self.edges)
        if len(found) > count and any(g is not None for g in found[count:]) or len(found) < count:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients "
                               f"(expected {count}, "
                               f"got {len(found)})")
        results: list[Any] = []
        for k, (grad, kind) in enumerate(zip(found, self._inputs)):
            if grad is None or self.edges[k] is None:
                results.append(None)
                continue
            if not isinstance(grad, TensorState) and not hasattr(type(grad), "add_into"):
                raise TypeError(f"function {self.name()}: expected Variable or None (got "
                                f"{type(grad).__name__})")
            if not _expandable(kind.shape, tuple(grad.shape)):
                raise RuntimeError(f"Function {self.name()} returned an invalid gradient at index "
                                   f"{k} - got "
                                   f"{shape_text(tuple(grad.shape))} but expected shape compatible "
                                   "with "
                                   f"{shape_text(kind.shape)}")
            results.append(fit(grad, kind))
        return results

    def release(self) -> None:
        if self._kept:
            self._kept, self._freed = (), True


def _expandable(shape: Sequence[Any], grad: Sequence[Any]) -> bool:
    """Return True if a gradient of shape `grad` may be summed to `shape`."""
    if known_same_shape(shape, grad):
        return True
    if len(grad) < len(shape):
        return False
    repeated = broadcast_dims(grad, shape)
    lead = len(grad) - len(shape)
    return all(lead + k in repeated or shape[k] == grad[lead + k] for k in range(len(shape)))


class FunctionMeta(type):
    """Metaclass that gives every Function its own node class, named as in PyTorch."""

    def __init__(cls, name: str, bases: tuple, namespace: dict):
        super().__init__(name, bases, namespace)
        cls._tracejit_node_class = type(f"{name}Backward", (FunctionNode,), {"function": cls})


class Function(metaclass=FunctionMeta):
    """Base class of an op with a gradient of its own.

    >>> import tracejit
    >>> class Double(tracejit.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = tracejit.tensor(1.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    _tracejit_node_class: type

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are "
                      "all static, so you "
                      "should invoke them on the class itself. Instantiating an autograd function "
                      "will raise an error "
                      "in a future version.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. "
                           "Please use new-style autograd function with static forward method. "
                           "(Example: https://pytorch.org/docs/stable/autograd.html"
                           "#torch.autograd.Function)")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the op from (ctx, *inputs), or from (*inputs) if `setup_context` is defined."""
        raise NotImplementedError("You must implement the forward function for custom "
                                  "autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Save what backward needs, in a method of its own instead of in forward."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **named: Any) -> Any:
        """Return gradients of the inputs (None where there is none) from gradients of the
        outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your "
                                  "custom "
                                  "autograd.Function to use it with backward mode AD.")

    vjp = backward  # another name, under which it may be defined

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **named: Any) -> Any:
        """Return tangents of the outputs from tangents of the inputs, for forward mode."""
        raise NotImplementedError("You must implement the jvp function for custom "
                                  "autograd.Function to use it with forward mode AD.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward off the tape, and put the Function's node on it."""
        if _sets_up(cls):
            given = inspect.signature(cls.forward).bind(*args, **kwargs)
            given.apply_defaults()
            args, kwargs = given.args, given.kwargs
        for x in args:
            if active.grad_enabled and isinstance(x, TensorState) and x._view is not None:
                if refresh(x):
                    check_use(x)
        needs = tuple(isinstance(x, TensorState) and x.requires_grad for x in args)
        tracked = active.grad_enabled and any(needs)
        push = None
        if active.tracer is not None:
            active.tracer.hides(args)
            push = active.tracer.pushes(args)
        edges: list[Edge] = [edge_of(x) if tracked and need and x._requires_grad else None
                             for x, need in zip(args, needs)]
        node = cls._tracejit_node_class(tuple(edges))
        node.needs_input_grad = needs
        if tracked and active.tracer is None:
            frame = sys._getframe(1)
            node._called_from = frame.f_code, frame.f_lasti
        run = functools.partial(run_forward, cls) if push is None else push.forward(cls)
        with no_grad():
            found = run(node, args, kwargs)
        outputs = found if isinstance(found, tuple) else (found,)
        finished = tuple(_finish(node, args, outputs, tracked))
        if push is not None:
            push.results(cls.jvp, node, args, finished)
        node.saved_for_backward, node.saved_for_forward = (), None
        return finished if isinstance(found, tuple) else finished[0]


# Functions, not methods: a subclass may have any name of the user's.
def _sets_up(function: type[Function]) -> bool:
    """Return True if the user defined `setup_context`."""
    return function.setup_context is not Function.setup_context


def _backward_of(function: type[Function]) -> Callable[..., Any]:
    """Return the user's `backward` or `vjp`."""
    if function.vjp is Function.vjp:
        return function.backward
    if function.backward is not Function.backward:
        raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is "
                           "not allowed. You should only implement one of them.")
    return function.vjp


def run_forward(function: type[Function], node: Any, args: tuple, kwargs: dict) -> Any:
    """Run a Function's forward with the node as its context."""
    if not _sets_up(function):
        return function.forward(node, *args, **kwargs)
    found = function.forward(*args, **kwargs)
    function.setup_context(node, args, found)
    return found


class InplaceFunction(Function):
    """PyTorch's older base of Functions; use `Function`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


def _finish(node: Any, args: tuple, outputs: tuple, tracked: bool) -> list:
    """Give the outputs their history, and the node what was saved."""
    dirty = tuple(map(resolve_identity, node.dirty_tensors))
    if dirty:
        args, outputs = _actual(args), _actual(outputs)
    for x in dirty:
        if tracked:
            _check_dirty(x)
        if active.tracer is None:
            bump_version(x)  # forward may have written the array, which counts nothing
        else:
            write_memory(x, x)  # the tracer counts a write by recording one
    results = [_own(x, args, dirty) if isinstance(x, TensorState) else x for x in outputs]
    node._outputs = tuple(Unsaved(x, active.tracer) if isinstance(x, TensorState)
                          else x for x in results)
    node._inputs = tuple(Unsaved(x, active.tracer) if isinstance(x, TensorState)
                         else None for x in args)
    if tracked:
        node._kept = _save(node, args, outputs, results)
        fixed = {id(x) for x in node.non_differentiable}
        for k, (x, given) in enumerate(zip(results, outputs)):
            if isinstance(x,
                          TensorState) and x._dtype.category >= FLOATING and id(given) not in fixed:
                if type(x._view) is View and any(x is y for y in dirty):
                    _write_through(x, node, k)
                else:
                    set_history(x, node, k)
        for x in dirty:
            if type(x._view) is AliasFamily:
                x._view.generation += 1
    node.dirty_tensors = node.non_differentiable = ()
    return results


def _write_through(x: Any, node: Any, number: int) -> None:
    """Set the history of a view that forward wrote to, and that of its base."""
    written = alias(x)
    set_history(written, node, number)
    rebase(x, written)


def _actual(values: tuple) -> tuple:
    return tuple([canonical(x) if isinstance(x, TensorState) else x for x in values])


def _check_dirty(x: Any) -> None:
    if x._requires_grad and type(x._view) is not View and grad_fn_of(x) is None:
        raise RuntimeError(LEAF.replace("is being", "has been"))
    check_writable(x)


def _own(x: Any, args: tuple, dirty: tuple) -> Any:
    """Return an output as a tensor of its own. An input returned unchanged becomes an alias, unless
    it is dirty."""
    if any(x is y for y in dirty):
        return x
    return alias(x) if any(x is y for y in args) or x._requires_grad else x


def _save(node: Any, args: tuple, outputs: tuple, results: list) -> tuple:
    """Return what the node keeps of `save_for_backward`: outputs without a reference cycle."""
    kept: list[Any] = []
    for x in node.saved_for_backward:
        number = next((k for k, y in enumerate(outputs) if y is x), None)
        if x is None:
            kept.append(None)
        elif number is not None and not any(x is y for y in args):
            kept.append(SavedOutput(results[number], node, number))
        else:
            kept.append(Saved(x))
    return tuple(kept)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that cannot be differentiated again: doing so raises RuntimeError.

    >>> import tracejit
    >>> class Double(tracejit.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @tracejit.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = tracejit.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    @functools.wraps(backward)
    def run(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = backward(ctx, *grads)
        if not active.grad_enabled or not any(isinstance(g, TensorState)
                                              and g._requires_grad for g in grads):
            return found
        results = found if isinstance(found, tuple) else (found,)
        error = _DoubleBackwardError(tuple(edge_of(g) for g in grads
                                     if isinstance(g, TensorState) and g._requires_grad))
        made = [alias(x) if isinstance(x, TensorState) else x for x in results]
        for k, x in enumerate(made):
            if isinstance(x, TensorState):
                set_history(x, error, k)
        return tuple(made) if isinstance(found, tuple) else made[0]

    return run


class _DoubleBackwardError(Node):
    """Node behind the gradients of a once-differentiable function: running it raises."""

    __slots__ = ()

    def apply(self, grads: list) -> list:
        raise RuntimeError("trying to differentiate twice a function that was marked with "
                           "@once_differentiable")


