"""Derivatives of functions: `grad`, `vjp`, `jvp`.

In: functions of tensors. Out: functions that give derivatives. The function gets its arguments as
new tensors of the tape. Their `.requires_grad` outside does not matter. Gradients that are recorded
around the call go through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.eager import backward
from tracejit.core.eager.modes import enable_grad
from tracejit.core.eager.nodes import Node, edge_of, leads_elsewhere
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import alias
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import zeros_like
from tracejit.utils._pytree import tree_flatten, tree_map, tree_unflatten

Argnums = int | tuple[int, ...]


def grad(func: Callable[..., Any], argnums: Argnums = 0,
         has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives the gradient of `func`, which returns one number.

    argnums  by which arguments: an int, or a tuple of ints for a tuple of gradients
    has_aux  the function gives (number, tensors), and its gradient (gradient, tensors)

    RuntimeError where the result is no tensor of one number, or an argument is not there.

    >>> import tracejit
    >>> tracejit.func.grad(lambda x: x**3)(tracejit.tensor(2.0))
    tensor(12.)
    """
    value_too = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = value_too(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives (gradient, value) of `func`; takes the arguments of `grad`.
    Gradients have the shapes of the arguments.

    >>> import tracejit
    >>> tracejit.func.grad_and_value(lambda x: x**3)(tracejit.tensor(2.0))
    (tensor(12.), tensor(8.))
    """
    name = "grad_and_value(f)(*args)"

    @functools.wraps(func, updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        run = Differentiated(func, args, kwargs, argnums, has_aux, name)
        output = run.outputs
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim():
            raise RuntimeError(f"{name}: Expected f(*args) to return a scalar Tensor, got tensor "
                               f"with {output.dim()} dims. Maybe you wanted to use the vjp or "
                               "jacrev APIs instead?")
        found = run.pulled_back(None, keep=False)
        value = run.seen_outside(output)
        return found, (value, run.seen_outside(run.aux)) if has_aux else value

    return both


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple:
    """Return (results, function): the function takes gradients of the results, and gives those of
    `primals`. With `has_aux` the tuple ends with what else `func` gave.

    >>> import tracejit
    >>> value, pull_back = tracejit.func.vjp(tracejit.sin, tracejit.zeros(2))
    >>> pull_back(tracejit.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    run = Differentiated(func, primals, {}, tuple(range(len(primals))), has_aux,
                         "vjp(f, *primals)")
    _check_outputs("vjp(f, *primals)", run.outputs)

    def pull_back(*cotangents: Any, **unused: Any) -> Any:
        given: Any = cotangents if len(cotangents) != 1 else cotangents[0]
        return run.pulled_back(given)

    outputs = run.seen_outside(run.outputs)
    return (outputs, pull_back, run.seen_outside(run.aux)) if has_aux else (outputs, pull_back)


def jvp(func: Callable[..., Any], primals: tuple, tangents: tuple, *, strict: bool = False,
        has_aux: bool = False) -> tuple:
    """Return (results, change of the results as `primals` change by `tangents`). With `has_aux` the
    tuple ends with what else `func` gave.

    Runs backward twice: a gradient is linear in the gradient it starts from.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> tracejit.func.jvp(lambda x: x * x, (x,), (tracejit.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: Expected primals to be a tuple. E.g. it should be valid to "
                           "call f(*primals).")
    spec, given = tree_flatten(primals)[1], tree_flatten(tangents)
    if given[1] != spec:
        raise RuntimeError(f"{name}: Expected primals and tangents to have the same python "
                           "structure. For example, if primals is a tuple of 3 tensors, tangents "
                           f"also must be. Got primals with structure {spec} and tangents with "
                           f"structure {given[1]}")
    run = Differentiated(func, primals, {}, tuple(range(len(primals))), has_aux, name)
    _check_outputs(name, run.outputs)
    outputs = run.seen_outside(run.outputs)
    pushed = run.pushed_forward(given[0], strict)
    return (outputs, pushed, run.seen_outside(run.aux)) if has_aux else (outputs, pushed)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple:
    """Return (results, function of tangents): `jvp` at one place for many tangents, of the shapes
    of `primals`.

    >>> import tracejit
    >>> value, push = tracejit.func.linearize(tracejit.sin, tracejit.zeros(2))
    >>> push(tracejit.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    name = "linearize(f, *primals)"
    run = Differentiated(func, primals, {}, tuple(range(len(primals))), False, name)
    _check_outputs(name, run.outputs)

    def push(*tangents: Any) -> Any:
        return run.pushed_forward(tree_flatten(tangents)[0], False)

    return run.seen_outside(run.outputs), push


class Differentiated:
    """Run of a function on tensors by which its results can be differentiated.

    outputs, aux the results, with the history of their making
    """

    def __init__(self, func: Callable[..., Any], args: tuple, kwargs: dict, argnums: Argnums,
                 has_aux: bool, name: str):
        tracer: Any = active.tracer
        self.recorded = active.grad_enabled
        places = checked_argnums(argnums, len(args))
        self.single = isinstance(argnums, int)
        leaves, self.spec = tree_flatten([args[k] for k in places])
        self.own: set[Node] = set()
        with enable_grad():
            self.inputs = [self._input(x) for x in leaves]
            given = list(args)
            for k, x in zip(places, tree_unflatten(self.inputs, self.spec)):
                given[k] = x
            run = func if tracer is None else tracer.convert_call(func)
            self.outputs, self.aux = run(*given, **kwargs), None
        if has_aux:
            if not (isinstance(self.outputs, tuple) and len(self.outputs) == 2):
                raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) "
                                   "if has_aux is True")
            self.outputs, self.aux = self.outputs
            for x in tree_flatten(self.aux)[0]:
                if not isinstance(x, Tensor):
                    raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")

    def _input(self, x: Any) -> Any:
        """Return an argument as a tensor of this run: with its history, or as a new leaf."""
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if x.requires_grad:
            return x.view_as(x)
        found = alias(x).requires_grad_()
        self._leaf(found)
        return found

    def _leaf(self, x: Any) -> None:
        """Note a leaf that only this run has."""
        node = edge_of(x)[0]
        self.own.add(node)
        tracer: Any = active.tracer
        if tracer is not None and tracer.mapped:
            tracer.leaves.add(node)

    def pulled_back(self, cotangents: Any, keep: bool = True) -> Any:
        """Return gradients of the arguments from those of the outputs; one gradient where `argnums`
        is an int."""
        found = self._gradients(self._starts(cotangents), keep)
        recorded = active.grad_enabled
        grads = tree_unflatten([self._seen_outside(g, recorded) for g in found], self.spec)
        return grads[0] if self.single else tuple(grads)

    def _starts(self, cotangents: Any) -> list[Any]:
        outputs, spec = tree_flatten(self.outputs)
        if cotangents is None:
            return [None] * len(outputs)
        given, given_spec = tree_flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree "
                               "structure of outputs to the function. cotangents: "
                               f"{given_spec}, primal output: {spec}")
        return given

    def _gradients(self, starts: Sequence[Any], keep: bool = True,
                   again: bool = False) -> list[Any]:
        """Return gradients of the inputs, zeros where no output depends on one. `again`: they are
        differentiated once more."""
        pairs = [(x, g) for x, g in zip(tree_flatten(self.outputs)[0], starts) if x.requires_grad]
        if not pairs:
            return [zeros_like(x) for x in self.inputs]
        outputs, grads = zip(*pairs)
        around = _tracked() or self._others([*outputs, *(g for g in grads if g is not None)])
        create = again or active.grad_enabled and around
        return list(backward.grad(outputs, self.inputs, grads, retain_graph=keep or create,
                                  create_graph=create, materialize_grads=True))

    def pushed_forward(self, tangents: Sequence[Any], strict: bool) -> Any:
        """Return how the outputs change as the arguments change by `tangents`."""
        outputs, spec = tree_flatten(self.outputs)
        with enable_grad():
            starts = [zeros_like(x).requires_grad_() for x in outputs]
            for x in starts:
                self._leaf(x)
            # Linear in `starts`, so zeros do: only their history counts for the second backward.
            grads = self._gradients(starts, again=True)
            pairs = [(g, t) for g, t in zip(grads, tangents) if g.requires_grad]
        if strict and not pairs:
            raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is "
                               "independent of the inputs. This is not allowed with strict=True.")
        if not pairs:
            return tree_unflatten([zeros_like(x).detach() for x in outputs], spec)
        held = [g for g, _ in pairs]
        create = active.grad_enabled and (_tracked() or self._others([*held, *tangents]))
        found = backward.grad(held, starts, [t for _, t in pairs], retain_graph=True,
                              create_graph=create, materialize_grads=True)
        recorded = active.grad_enabled
        return tree_unflatten([self._seen_outside(x, recorded) for x in found], spec)

    # -- what others may see -----------------------------------------------------------------------
    def seen_outside(self, tree: Any) -> Any:
        """Return results for the caller: without the history that only this run has."""
        return tree_map(lambda x: self._seen_outside(x, self.recorded), tree)

    def _seen_outside(self, x: Any, recorded: bool) -> Any:
        if not isinstance(x, Tensor) or not x.requires_grad:
            return x
        if recorded and self._others([x]):
            return x
        return alias(x) if recorded else x.detach()

    def _others(self, tensors: Sequence[Any]) -> bool:
        """Return True if gradients of these tensors would reach more than this run's own
        arguments."""
        return leads_elsewhere([x for x in tensors if x.requires_grad], self.own)


def _tracked() -> bool:
    """Return True if a tape outside `vmap` records the ops on samples."""
    tracer: Any = active.tracer
    return tracer is not None and tracer.mapped and tracer.tracked


def checked_argnums(argnums: Any, count: int) -> tuple[int, ...]:
    """Return numbers of arguments, counted from the front. RuntimeError for one that is not
    there."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for k in numbers:
        if not isinstance(k, int):
            raise RuntimeError(f"argnum must be int, got: {type(k)}")
        if not -count <= k < count:
            raise RuntimeError(f"Got argnum={k}, but only {count} positional inputs")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    found = tuple(k % count for k in numbers)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def _check_outputs(name: str, outputs: Any) -> None:
    """Raise RuntimeError for results that are no floating point tensors."""
    leaves = tree_flatten(outputs)[0]
    if not leaves or len(leaves) == 1 and leaves[0] is None:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got "
                           f"output = {leaves})")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got "
                               f"unsupported type {type(x)}")
        if not (x.is_floating_point() or x.is_complex()):
            raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex "
                               f"Tensors, got Tensor with dtype {x.dtype}")
