"""Jacobians and Hessians of functions: rows of derivatives, computed all at once by `vmap`.

In: functions of tensors. Out: functions that give their derivatives by each element of an argument.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import eye
from tracejit.core.ops.joining import stack
from tracejit.func.derivatives import Argnums, Differentiated
from tracejit.func.vmap import vmap
from tracejit.utils._pytree import tree_flatten, tree_unflatten


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
           chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """Return a function that gives the Jacobian of `func`: a tensor for each output and each
    argument of `argnums`, of shape output.shape + argument.shape.

    chunk_size  how many rows to compute at once; None: all

    >>> import tracejit
    >>> tracejit.func.jacrev(lambda x: x * x)(tracejit.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian(func, argnums, has_aux, chunk_size, "jacrev")


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """Return what `jacrev` returns, of the same shape: no forward mode is used here, and the
    numbers are the same.

    >>> import tracejit
    >>> tracejit.func.jacfwd(tracejit.sin)(tracejit.zeros(1))
    tensor([[1.]])
    """
    return _jacobian(func, argnums, has_aux, None, "jacfwd")


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that gives the second derivatives of `func`.

    >>> import tracejit
    >>> tracejit.func.hessian(lambda x: (x**3).sum())(tracejit.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _jacobian(func: Callable[..., Any], argnums: Argnums, has_aux: bool, chunk_size: int | None,
              name: str) -> Callable[..., Any]:
    @functools.wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        _must_be_real(name, args, "inputs")
        run = Differentiated(func, args, kwargs, argnums, has_aux, f"{name}(f)(*args)")
        outputs, spec = tree_flatten(run.outputs)
        if not outputs or not all(isinstance(y, Tensor) for y in outputs):
            kinds = [type(y) for y in outputs]
            raise RuntimeError(f"{name}: Expected f to return Tensors, got {kinds}")
        _must_be_real(name, run.outputs, "outputs")
        found = [_rows(run, outputs, k, chunk_size) for k in range(len(outputs))]
        made = tree_unflatten(found, spec)
        return (made, run.seen_outside(run.aux)) if has_aux else made

    return jacobian


def _rows(run: Differentiated, outputs: list[Any], number: int, chunk_size: int | None) -> Any:
    """Return the derivatives of one output, in the structure of the arguments."""
    output = outputs[number]
    spec = tree_flatten(run.outputs)[1]

    def row(start: Any) -> Any:
        starts: list[Any] = [None] * len(outputs)
        for k, y in enumerate(outputs):
            starts[k] = start if k == number else y.new_zeros(tuple(y.shape))
        return run.pulled_back(tree_unflatten(starts, spec))

    count = output.numel()
    # A start with one 1 gives one row of the Jacobian.
    basis = eye(count, dtype=output.dtype, device=output.device).reshape(count, *output.shape)
    if chunk_size == 1 and count:  # one by one, without what `vmap` asks of backward functions
        rows = [tree_flatten(row(start)) for start in basis.unbind()]
        found = [stack(columns) for columns in zip(*(row for row, _ in rows))]
        spec_of_found = rows[0][1]
    else:
        found, spec_of_found = tree_flatten(vmap(row, chunk_size=chunk_size)(basis))
    return tree_unflatten([x.reshape(*output.shape, *x.shape[1:]) for x in found], spec_of_found)


def _must_be_real(name: str, tree: Any, what: str) -> None:
    for x in tree_flatten(tree)[0]:
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{name}: Expected all {what} to be real but received complex "
                               "tensor at flattened input idx: 0")
