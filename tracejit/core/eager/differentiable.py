"""Autograd's view of a tensor: requires_grad, grad, grad_fn, hooks, backward, detach, data.

In: user code. Out: the tape and the engine behind PyTorch's names, with its errors. Mixed into
Tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tracejit.core.eager import backward as backward_pass
from tracejit.core.eager import hooks
from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.nodes import Node, RemovableHandle, grad_fn_of
from tracejit.core.eager.origins import check_use
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import detached
from tracejit.core.eager.state import CUT, TensorState, shape_of
from tracejit.core.eager.tape import refresh
from tracejit.core.eager.views import AliasFamily, chain_of, family_of, standing_for
from tracejit.core.eager.writing import get_data, set_data
from tracejit.core.ops.shapes import shape_text
from tracejit.core.ops.types import FLOATING

NOT_FLOATING = "only Tensors of floating point dtype can require gradients"
NOT_LEAF = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
    "variable "
    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
)
INFERENCE = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute "
    "won't be populated during autograd.backward(). If you indeed want the .grad field to be "
    "populated "
    "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
    "Tensor "
    "by mistake, make sure you access the leaf Tensor instead."
)


class Differentiable(TensorState):
    """Part of Tensor for autograd."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """True if operations with this tensor, of any shape, are recorded for gradients. Assigning
        sets it for a leaf.

        >>> import tracejit
        >>> tracejit.ones(2, requires_grad=True).requires_grad
        True
        """
        if self._view is not None and refresh(self):
            return True
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def module_load(self, other: Any, assign: bool = False) -> Any:
        """Return the tensor with which `load_state_dict` exchanges this one, given that of the
        state dict, of the same shape.

        Used after `__future__.set_swap_module_params_on_conversion(True)`; subclasses may override
        it.

        >>> import tracejit
        >>> tracejit.zeros(2).module_load(tracejit.ones(2))
        tensor([1., 1.])
        """
        return other.detach() if assign else self.copy_(other).detach()

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Make a leaf collect gradients, or stop it; returns the tensor.

        >>> import tracejit
        >>> tracejit.tensor([1.0]).requires_grad_()
        tensor([1.], requires_grad=True)
        """
        if self._view is not None or active.tracer is not None:
            self = resolve_identity(self)
        if requires_grad == self.requires_grad:
            return self
        if self.grad_fn is not None:
            raise RuntimeError(NOT_LEAF)
        if requires_grad and self._dtype.category < FLOATING:
            raise RuntimeError(NOT_FLOATING)
        if self._view is not None and family_of(self).inference and not active.inference:
            raise RuntimeError(INFERENCE)
        hooks.announce(self)
        self._requires_grad = bool(requires_grad)
        if requires_grad and type(self._view) is AliasFamily:
            self._view.generation += 1  # views that there are get a history once they are written
        for x in standing_for(self):
            x._view.generation = -1  # its history is out of date
        return self

    @property
    def is_leaf(self) -> bool:
        """True for a tensor, of any shape, that no recorded operation made.

        >>> import tracejit
        >>> x = tracejit.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """Node of the operation that made this tensor, of any shape; None for a leaf.

        >>> import tracejit
        >>> (tracejit.ones(2, requires_grad=True) * 2).grad_fn.name()
        'MulBackward0'
        """
        if self._view is not None or active.tracer is not None:
            self = resolve_identity(self)
            if self._view is not None and refresh(self):
                check_use(self)
        return grad_fn_of(self)

    @property
    def grad(self) -> Any:
        """Gradient that `backward` added up, in the same shape; None where there is none. It may be
        assigned.

        >>> import tracejit
        >>> x = tracejit.ones(2, requires_grad=True)
        >>> x.sum().backward()
        >>> x.grad
        tensor([1., 1.])
        """
        tracer = active.tracer
        if tracer is not None or self._view is not None:
            self = resolve_identity(self)
        if self._grad is None and self._node is not None and self._requires_grad:
            if grad_fn_of(self) is not None and not hooks.retains_grad(self):
                warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
        if tracer is not None:
            tracer.grad_read(self)
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        self = resolve_identity(self)
        if value is not None:
            _check_grad(self, value)
        if active.tracer is not None:
            active.tracer.grad_written(self)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    _grad_fn = grad_fn

    @property
    def data(self) -> Any:
        """Tensor of the same shape over the same memory, without history; writes to it are not
        recorded. Assigning exchanges the memory.

        >>> import tracejit
        >>> tracejit.ones(2, requires_grad=True).data
        tensor([1., 1.])
        """
        return get_data(self)

    @data.setter
    def data(self, value: Any) -> None:
        set_data(resolve_identity(self), value)

    @property
    def retains_grad(self) -> bool:
        """True for a result, of any shape, whose gradient `retain_grad` keeps.

        >>> import tracejit
        >>> tracejit.ones(2).retains_grad
        False
        """
        self = resolve_identity(self)
        if active.tracer is not None and self._traced is None:
            active.tracer.break_graph(
                self, "the function reads retains_grad of a tensor made outside it")
        return hooks.retains_grad(self)

    def detach(self) -> Any:
        """Return a tensor without history over the same memory.

        >>> import tracejit
        >>> x = tracejit.tensor([1.0], requires_grad=True)
        >>> (x * 2).detach().requires_grad
        False
        """
        return detached(self)

    def detach_(self) -> Any:
        """Make the tensor a leaf without history, in place; its shape stays. RuntimeError for
        views.

        >>> import tracejit
        >>> x = tracejit.ones(2, requires_grad=True) * 2
        >>> x.detach_().requires_grad
        False
        """
        self = resolve_identity(self)
        if active.inference and not (self._view is not None and family_of(self).inference):
            return self  # such a tensor keeps its history there
        if chain_of(self)[1]:
            raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are "
                               "using DistributedDataParallel"
                               " (DDP) for training, and gradient_as_bucket_view is set as True, "
                               "gradients are views of "
                               "DDP buckets, and hence detach_() cannot be called on these "
                               "gradients.")
        if active.tracer is not None:
            active.tracer.refuses_views(self)
        if active.tracer is not None and active.tracer.severed(self) is not self:
            raise NotImplementedError("detach_() of a tensor that is mapped over; use detach()")
        hooks.announce(self)
        if active.tracer is not None and self._requires_grad and self._traced is not None:
            active.tracer.forgets(self)
        number = 0 if grad_fn_of(self) is None else CUT
        self._node, self._output_nr, self._requires_grad = None, number, False
        for x in standing_for(self):
            x._view.generation = -1  # views keep their histories
        return self

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """Add the gradients of this tensor to `.grad` of the leaves it was made from; see
        `autograd.backward`.

        gradient  of the same shape; None where the tensor has one element: 1

        >>> import tracejit
        >>> x = tracejit.tensor([1., 2.], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        grads = None if gradient is None else (gradient,)
        backward_pass.backward((self,), grads, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self) -> None:
        """Keep the gradient of this result in `.grad` too, in its shape.

        >>> import tracejit
        >>> x = tracejit.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad
        tensor([1., 1.])
        """
        hooks.retain_grad(self)

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(grad)` in backward. Its result, if not None, replaces the gradient, in the
        same shape.

        >>> import tracejit
        >>> x = tracejit.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        return hooks.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> RemovableHandle:
        """Call `hook(tensor)` after a gradient of its shape was added to this leaf's `.grad`.

        >>> import tracejit
        >>> x = tracejit.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
        """
        return hooks.register_post_accumulate_grad_hook(self, hook)


def _check_grad(x: TensorState, value: Any) -> None:
    if not isinstance(value, TensorState) and not hasattr(type(value), "add_into"):
        raise TypeError("assigned grad expected to be a Tensor or None but got grad of type "
                        f"{type(value).__name__}")
    if value is x:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.dtype is not x._dtype:
        raise RuntimeError(f"assigned grad has data of a different type: expected {x._dtype}, got "
                           f"{value.dtype}")
    if value.device != x._device:
        raise RuntimeError("assigned grad has data located on a different device")
    if tuple(value.shape) != tuple(shape_of(x)):
        raise RuntimeError("attempting to assign a gradient of size "
                           f"'{shape_text(tuple(value.shape))}' to a tensor of "
                           f"size '{shape_text(shape_of(x))}'. Please ensure that the gradient and "
                           "the tensor are the "
                           "same size")


