"""`backward` and `grad`: PyTorch's arguments and errors in front of the engine.

In: tensors and the gradients they start with. Out: `.grad` of leaves; or a tuple of gradients.
Called by users as `tensor.backward()`, `autograd.backward` and `autograd.grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.conditional_grad import ConditionalGrad
from tracejit.core.eager.engine import Root, TapeEdge, Task
from tracejit.core.eager.hooks import retain_grad
from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.nodes import AccumulateGrad, GradientEdge, Node, edge_of
from tracejit.core.eager.origins import check_use
from tracejit.core.eager.state import TensorState, shape_of
from tracejit.core.eager.tape import refresh
from tracejit.core.ops import creation
from tracejit.core.ops.shapes import known_same_shape, numel, shape_text
from tracejit.core.ops.types import COMPLEX, FLOATING, TensorType

if TYPE_CHECKING:
    from tracejit.core.eager.tensor import Tensor


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False, grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves they were made from.

    grad_tensors gives the gradient of each tensor, needed for those of more than one element;
    create_graph records the backward pass itself. With `inputs`, only these get gradients; results
    among them retain theirs from then on. Raises RuntimeError where a tensor does not require grad,
    or the graph was freed by an earlier backward. `autograd.graph.GradientEdge`s stand for tensors.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], requires_grad=True)
    >>> tracejit.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    given = grad_variables if grad_tensors is None else grad_tensors
    roots = _roots(_tuple(tensors), _tuple(given) if given is not None else None)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        Task(roots, retain, create_graph).run()
        return
    wanted = _themselves(inputs, None)
    if not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    places = [_place(x) for x in wanted]
    for x in wanted:
        if isinstance(x, TensorState):
            retain_grad(x)
    targets: dict[TapeEdge, Any] = {p: None for p in places if not isinstance(p[0], AccumulateGrad)}
    # As PyTorch: the nodes themselves run, and are freed.
    sinks = frozenset(node for node, _ in places)
    Task(roots, retain, create_graph, targets, sinks).run()


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of `outputs` (weighted by `grad_outputs`) with respect to
    `inputs`; no `.grad` changes.

    is_grads_batched: each of `grad_outputs` has one dimension more, the first, and so have the
    gradients: one for each of its slices.

    allow_unused gives None for inputs that outputs do not depend on, materialize_grads zeros;
    otherwise they are an error (RuntimeError). `autograd.graph.GradientEdge`s stand for tensors.

    >>> import tracejit
    >>> x = tracejit.tensor(3.0, requires_grad=True)
    >>> tracejit.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when "
                         "materialize_grads=True, but got: "
                         "allow_unused=False.")
    wanted = _themselves(inputs, _tuple(outputs))
    for x in wanted:
        if not isinstance(x, (TensorState, GradientEdge)):
            raise TypeError(f"grad: expected inputs to be tensors, got {type(x).__name__}")
        _place(x)
    if is_grads_batched:
        options = {"retain_graph": retain_graph, "create_graph": create_graph}
        starts = None if grad_outputs is None else _tuple(grad_outputs)
        return _batched[0](grad, _tuple(outputs), wanted, starts, allow_unused, materialize_grads,
                           options)
    roots = _roots(_tuple(outputs), _tuple(grad_outputs) if grad_outputs is not None else None)
    places = [_place(x) for x in wanted]
    targets: dict[TapeEdge, Any] = dict.fromkeys(places)
    Task(roots, create_graph if retain_graph is None else retain_graph, create_graph, targets).run()
    found = [targets[place] for place in places]
    if materialize_grads:
        return tuple(_zeros(x, create_graph) if g is None else g for x, g in zip(wanted, found))
    unused = [k for k, g in enumerate(found) if g is None]
    if unused and not allow_unused:
        raise RuntimeError(f"The differentiated Tensor at index {unused[0]} appears to not have "
                           "been used in the "
                           "graph. Set allow_unused=True if this is the desired behavior.")
    return tuple(found)


def _zeros(x: Any, requires_grad: bool) -> Any:
    if type(x) is GradientEdge:
        raise RuntimeError("materialize_grads cannot be used when the given input is a "
                           "GradientEdge")
    zeros = creation.zeros_of(x, TensorType(x._dtype, shape_of(x), x._device))
    return zeros.requires_grad_() if requires_grad else zeros


_batched: list[Callable[..., tuple]] = []


def install_batched(run: Callable[..., tuple]) -> None:
    """Set the function that computes `grad` with is_grads_batched."""
    _batched[:] = [run]


def grad_between(outputs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any],
                 create_graph: bool = False) -> tuple:
    """Compute gradients as `grad` does, but stop at the inputs and keep the tape.

    Inputs may be computed from one another. An input that outputs do not depend on gives None.
    """
    places = [_place(x) for x in inputs]
    task = task_between(outputs, places, grads, create_graph=create_graph)
    return tuple(map(task.targets.get, places))


def task_between(outputs: Sequence[Any], places: Sequence[TapeEdge], grads: Sequence[Any],
                 cuts: Mapping[TapeEdge, Callable[[Any], Any]] | None = None,
                 create_graph: bool = False, wanted: Collection[TapeEdge] | None = None) -> Any:
    """Compute gradients from `outputs` to `places` on the tape. `wanted`: those to return (None:
    all).

    Returns the engine's run, with its `targets` and their `order`.
    """
    targets: dict[TapeEdge, Any] = dict.fromkeys(places if wanted is None else wanted)
    targets |= dict.fromkeys(cuts or ())
    ends = frozenset(node for node, _ in places)
    task = Task(_roots(outputs, grads), True, create_graph, targets, ends=ends, cuts=cuts)
    task.run()
    return task


def _tuple(given: Any) -> tuple:
    return (given,) if isinstance(given, (TensorState, GradientEdge)) else tuple(given)


def _themselves(given: Any, outputs: tuple | None) -> tuple:
    """Resolve tensors whose gradients are wanted (`resolve_identity`). `outputs`: the gradients
    wanted are of these only."""
    return tuple([resolve_identity(x, outputs) if isinstance(x, TensorState) else x
                  for x in _tuple(given)])


def _refreshed(x: Any) -> Any:
    if x._view is not None and refresh(x):
        check_use(x)
    return x


def _place(x: Any) -> tuple[Node, int]:
    if type(x) is GradientEdge:
        return x.node, x.output_nr
    # A view made in no_grad mode of what needs gradients says that it does, without a history.
    if not (x._view is not None and refresh(x) or x._requires_grad):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge_of(x)


def _roots(tensors: Sequence[Any], grads: Sequence[Any] | None) -> list[Root]:
    if grads is None:
        grads = [None] * len(tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots = []
    for k, (x, g) in enumerate(zip(tensors, grads)):
        if type(x) is GradientEdge:
            roots.append((x.node, x.output_nr, _first_gradient(k, None, x.ownership_token, g)))
            continue
        if not _refreshed(x)._requires_grad:
            raise RuntimeError(f"element {k} of tensors does not require grad and does not have a "
                               "grad_fn")
        node, number = edge_of(x)
        kind = TensorType(x._dtype, shape_of(x), x._device)
        roots.append((node, number, _first_gradient(k, x, kind, g)))
    return roots


def _first_gradient(k: int, like: Any, kind: Any, given: Any) -> Any:
    """Return the gradient with which a backward starts at result `k`: `given`, checked, or ones.
    `kind` is the result's type, None if unknown."""
    if type(given) is ConditionalGrad:
        return given
    if given is None:
        if kind is None or kind.dtype.category < FLOATING:
            raise RuntimeError("grad can be implicitly created only for real scalar outputs")
        if numel(kind.shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if kind.dtype.category == COMPLEX:
            raise RuntimeError("grad can be implicitly created only for real scalar outputs but "
                               f"got {kind.dtype}")
        return creation.full_of(like, kind.shape, 1, kind.dtype, kind.device)
    if not isinstance(given, TensorState):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if kind is None:
        return given
    if given._dtype is not kind.dtype and COMPLEX in (given._dtype.category, kind.dtype.category):
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have "
                           f"the same dtype. Mismatch in dtype: grad_output[{k}] has a dtype of "
                           f"{given._dtype} and output[{k}] has a dtype of {kind.dtype}.")
    shape = kind.shape
    if not known_same_shape(shape_of(given), shape) and shape_of(given) != shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[{k}] has a shape of tracejit.Size("
                           f"{shape_text(shape_of(given))}) and output[{k}] has a shape of "
                           "tracejit.Size("
                           f"{shape_text(shape)}).")
    return given
