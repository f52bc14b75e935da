"""Derivatives of functions at given places; PyTorch's `torch.autograd.functional`.

In: a function of tensors and its inputs, a tensor or a tuple. Out: products of its Jacobian or
Hessian with vectors, or the whole of them, in tuples where the function takes or gives tuples.
Where results do not depend on inputs the derivatives are zeros, and with `strict` a RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.eager.backward import grad
from tracejit.core.eager.modes import enable_grad, is_grad_enabled, set_grad_enabled
from tracejit.core.eager.state import TensorState
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.creation import eye, zeros_like
from tracejit.core.ops.joining import stack

Function = Callable[..., Any]


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """Return (results, v times the Jacobian); `v` may be left out for one result of one element.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> tracejit.autograd.functional.vjp(lambda x: x * x, x, tracejit.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    run = _Run("vjp", func, inputs, create_graph, strict)
    starts = run.vector(v, run.outputs, run.one_output, "the user-provided function returns a "
                        "single Tensor with a single element")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = run.gradients(run.outputs, run.inputs, starts, create_graph, OUTPUT,
                              run.with_graph("jacobian"))
    return run.results(), run.like_inputs(found)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """Return (results, the Jacobian times v). A gradient is linear in the gradient it starts from.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> tracejit.autograd.functional.jvp(lambda x: x.sum(), x, tracejit.ones(2))
    (tensor(3.), tensor(2.))
    """
    run = _Run("jvp", func, inputs, create_graph, strict)
    v = run.vector(v, run.inputs, run.one_input, "the input to the user-provided function is a "
                   "single Tensor with a single element")
    with enable_grad():
        # The gradients `back` are linear in `starts`: their product with v there is J v.
        starts = tuple(zeros_like(y).requires_grad_() for y in run.outputs)
        back = run.gradients(run.outputs, run.inputs, starts, True, OUTPUT)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = run.gradients(back, starts, v, create_graph, START, run.with_graph("jacobian"))
    return run.results(), run.shown(found, run.one_output)


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """Return (result, v times the Hessian) of a function that gives one number.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> tracejit.autograd.functional.vhp(lambda x: (x**3).sum(), x, tracejit.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    run, v = _of_one_number("vhp", func, inputs, v, create_graph, strict)
    with enable_grad():
        first = run.gradients(run.outputs, run.inputs, (None,), True, OUTPUT, LINEAR)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = run.gradients(first, run.inputs, v, create_graph, JACOBIAN,
                              run.with_graph("hessian"))
    return run.results(), run.like_inputs(found)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """Return (result, the Hessian times v). `vhp` takes less time, and is the same for smooth
    functions."""
    run, v = _of_one_number("hvp", func, inputs, v, create_graph, strict)
    with enable_grad():
        first = run.gradients(run.outputs, run.inputs, (None,), True, OUTPUT, LINEAR)
        # As in `jvp`: `second` is linear in `starts`, whatever their values.
        starts = tuple(zeros_like(x).requires_grad_() for x in run.inputs)
        second = run.gradients(first, run.inputs, starts, True, OUTPUT)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = run.gradients(second, starts, v, create_graph, HESSIAN_START,
                              run.with_graph("hessian"))
    return run.results(), run.like_inputs(found)


def jacobian(func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Compute d func(inputs) / d inputs, of shape output.shape + input.shape.

    For a tuple of inputs, return a tuple with one Jacobian for each; for a tuple of outputs, a
    tuple of those.

    vectorize  compute all rows at once
    strategy   "forward-mode" gives the same numbers; both are computed backward here

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> tracejit.autograd.functional.jacobian(lambda x: x * x, x)
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy, create_graph, strict, vectorize)
    run = _Run("jacobian", func, inputs, create_graph, strict)
    with enable_grad():
        rows = [run.rows(k, vectorize) for k in range(len(run.outputs))]
    shown = tuple(row[0] if run.one_input else tuple(row) for row in rows)
    return shown[0] if run.one_output else shown


def hessian(func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Compute second derivatives of a scalar function, of shape input.shape + input.shape.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> tracejit.autograd.functional.hessian(lambda x: (x * x * x).sum(), x)
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    single, _ = _tuple("inputs", "hessian", inputs)

    def number(*args: Any) -> Any:
        found = func(*args)
        _must_require_grad(_tuple("outputs of the user-provided function", "hessian", found)[1],
                           strict)
        _must_be_number("hessian", found)
        return found.reshape(())

    # The Hessian is the Jacobian of the first one, which must keep its graph.
    def first(*args: Any) -> Any:
        found = jacobian(number, args[0] if single else args, create_graph=True)
        for k, x in enumerate((found,) if single else found):
            if strict and not x.requires_grad:
                raise RuntimeError(LINEAR.format(k))
        return found

    return jacobian(first, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


# -- how it is done --------------------------------------------------------------------------------
OUTPUT = (
    "The output of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode."
)
OF_OUTPUT = (
    "Output {} of the user-provided function is independent of input {{}}. This is not allowed in "
    "strict mode."
)
JACOBIAN = OUTPUT.replace("output", "jacobian")
LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on the "
    "inputs (this would be violated by a linear function for example)."
)
START = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when "
    "using the double backward trick to compute forward mode gradients. This is not allowed in "
    "strict mode."
)
HESSIAN_START = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
    "This is not allowed in strict mode as it prevents from using the double backward trick to "
    "replace forward mode AD."
)


class _Run:
    """Evaluation of a function on inputs by which its results can be differentiated."""

    def __init__(self, name: str, func: Function, inputs: Any, create_graph: bool, strict: bool):
        self.name, self.create_graph, self.strict = name, create_graph, strict
        self.one_input, given = _tuple("inputs", name, inputs)
        with enable_grad():
            # A view keeps the caller's history, and yet is a tensor that only this run has.
            self.inputs = tuple(x.view_as(x) if create_graph and x.requires_grad
                                else x.detach().requires_grad_() for x in given)
            found = func(*self.inputs)
        self.one_output, self.outputs = _tuple("outputs of the user-provided function", name, found)
        _must_require_grad(self.outputs, strict)

    def vector(self, v: Any, like: tuple, single: bool, case: str) -> tuple:
        """Return the given vector, checked against the shapes of `like`; ones where it may be left
        out."""
        if v is None:
            if not single or like[0].numel() != 1:
                raise RuntimeError(f"The vector v can only be None if {case}.")
            return (zeros_like(like[0]) + 1,)
        _, given = _tuple("v", self.name, v)
        if len(given) != len(like) and single:
            raise RuntimeError("The given v should contain a single Tensor.")
        if len(given) != len(like):
            raise RuntimeError("v is a tuple of invalid length: should be "
                               f"{len(like)} but got {len(given)}.")
        for k, (one, other) in enumerate(zip(given, like)):
            if one.shape != other.shape:
                where = "" if single else f"Entry {k} in "
                raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got "
                                   f"{one.shape}.")
        return given

    def gradients(self, outputs: Sequence[Any], inputs: Sequence[Any], starts: Sequence[Any],
                  create: bool, absent: str, constant: str = "") -> tuple:
        """Return gradients, zeros for inputs on which the outputs do not depend.

        In strict mode such an input is an error with the text `absent`. A gradient that depends on
        nothing is one with the text `constant`, if there is one.
        """
        # Outputs without a history have no edge from which the engine could start.
        pairs = [(y, g) for y, g in zip(outputs, starts) if y.requires_grad]
        found: Sequence[Any] = [None] * len(inputs)
        if pairs:
            found = grad([y for y, _ in pairs], inputs, [g for _, g in pairs], retain_graph=True,
                         create_graph=create, allow_unused=True)
        for k, g in enumerate(found):
            if self.strict and g is None:
                raise RuntimeError(absent.format(k))
            if self.strict and constant and not g.requires_grad:
                raise RuntimeError(constant.format(k))
        return tuple(zeros_like(x).detach() if g is None else g for x, g in zip(inputs, found))

    def with_graph(self, what: str) -> str:
        """Return the error text for a result that depends on nothing and is to be differentiated
        again."""
        text = JACOBIAN.replace("jacobian", what).replace("mode.", "mode when create_graph=True.")
        return text if self.create_graph else ""

    def rows(self, number: int, vectorize: bool) -> list[Any]:
        """Return the Jacobian of output `number` for each input."""
        output = self.outputs[number]
        count, shape = output.numel(), tuple(output.shape)
        basis = eye(count, dtype=output.dtype, device=output.device).reshape(count, *shape)

        def row(start: Any) -> tuple:
            return self.gradients([output], self.inputs, [start], self.create_graph,
                                  OF_OUTPUT.format(number), self.with_graph("jacobian"))

        if vectorize and count:
            from tracejit.func.vmap import vmap

            # One backward for all rows: `vmap` maps it over the basis.
            found = list(vmap(row)(basis))
        else:
            # An output without elements has no rows to stack.
            found = [stack(column) for column in zip(*map(row, basis))] if count else [
                x.new_zeros((0, *x.shape)) for x in self.inputs]
        return [self._done(x.reshape(*shape, *x.shape[1:])) for x in found]

    def _done(self, x: Any) -> Any:
        return x if self.create_graph else x.detach()

    def shown(self, found: Sequence[Any], single: bool) -> Any:
        """Return a tensor or a tuple, as the caller gave or gets it."""
        done = tuple(map(self._done, found))
        return done[0] if single else done

    def results(self) -> Any:
        return self.shown(self.outputs, self.one_output)

    def like_inputs(self, found: Sequence[Any]) -> Any:
        return self.shown(found, self.one_input)


def _of_one_number(name: str, func: Function, inputs: Any, v: Any, create_graph: bool,
                   strict: bool) -> tuple[_Run, tuple]:
    run = _Run(name, func, inputs, create_graph, strict)
    v = run.vector(v, run.inputs, run.one_input, "the input to the user-provided function "
                   "is a single Tensor with a single element")
    _must_be_number(name, run.outputs[0] if run.one_output else run.outputs)
    return run, v


def _must_require_grad(outputs: tuple, strict: bool) -> None:
    for k, y in enumerate(outputs):
        if strict and not y.requires_grad:
            raise RuntimeError(f"Output {k} of the user-provided function does not require "
                               "gradients. The outputs must be computed in a differentiable "
                               "manner from the input when running in strict mode.")


def _must_be_number(name: str, found: Any) -> None:
    if not isinstance(found, TensorState):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if found.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a "
                           "single element")


def _tuple(what: str, name: str, given: Any) -> tuple[bool, tuple]:
    """Return (True for a single tensor, the given tensors as a tuple). TypeError for other
    values."""
    single = not isinstance(given, tuple)
    found = (given,) if single else given
    for k, x in enumerate(found):
        if not isinstance(x, TensorState):
            which = f"given {what}" if single else f"value at index {k}"
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of "
                            f"Tensors but the {which} has type {type(x)}.")
    return single, found


def _check_strategy(strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError("Expected strategy to be either \"forward-mode\" or \"reverse-mode\", "
                             f"got {strategy!r}")
    if strict and vectorize:
        raise RuntimeError("jacobian: `strict=True` and `vectorize=True` are not supported "
                           "together.")
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError("jacobian: `create_graph=True` and `strategy=\"forward-mode\"` "
                                  "are not supported together.")
    if strategy == "forward-mode" and strict:
        raise RuntimeError("jacobian: `strict=True` and `strategy=\"forward-mode\"` are not "
                           "supported together.")
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError("jacobian: `strategy=\"forward-mode\"` is only there with "
                                  "`vectorize=True`")


_sealing.seal_all(globals())
