"""gradcheck: compare gradients of the tape with finite differences.

In: a function of tensors and its inputs (float64). Out: True, or a GradcheckError that shows both
Jacobians. Called by users and by the tests of every op.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.eager.backward import grad as gradients
from tracejit.core.eager.state import TensorState, of_result
from tracejit.core.memory import CPU
from tracejit.core.ops import creation, sealing
from tracejit.core.ops.pointwise_complex import pairs
from tracejit.core.ops.types import FLOATING, TensorType, dtype_of_numpy, float64


class GradcheckError(RuntimeError):
    """Error: numerical and analytical gradients differ, or a gradient is missing or not
    reproducible.

    >>> import tracejit
    >>> x = tracejit.ones(1, dtype=tracejit.float64, requires_grad=True)
    >>> try:
    ...     tracejit.autograd.gradcheck(lambda x: x * x.detach(), (x,))
    ... except tracejit.autograd.GradcheckError:
    ...     print("a gradient is wrong")
    a gradient is wrong
    """


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0,
              check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              **ignored: Any) -> bool:
    """Return True if the gradients of `func` at `inputs` agree with central differences.

    func returns one tensor or a tuple; inputs that require grad are checked, and should be float64.
    With raise_exception=False the answer is False instead of a GradcheckError.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], dtype=tracejit.float64, requires_grad=True)
    >>> tracejit.autograd.gradcheck(lambda x: x * x, (x,))
    True
    """
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _check(func, tuple(inputs), eps, atol, rtol, nondet_tol, check_undefined_grad,
               check_grad_dtypes)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable, inputs: tuple, eps: float, atol: float, rtol: float, nondet_tol: float,
           undefined: bool, dtypes: bool) -> None:
    checked = checked_inputs(inputs)
    found = _floating(func(*inputs))
    differences = [numerical(func, inputs, x, eps) for x in checked]
    differentiable = [j for j, y in enumerate(found) if y.requires_grad]
    if not differentiable:
        if any(np.abs(of_one).max(initial=0.0) > 0 for of_x in differences for of_one in of_x):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    again = _floating(func(*inputs))
    for number, j in enumerate(differentiable):
        analytical = _analytical(found[j], checked)
        repeated = _analytical(again[j], checked)
        for i in range(len(checked)):
            if np.abs(analytical[i] - repeated[i]).max(initial=0.0) > nondet_tol:
                raise GradcheckError("Backward is not reentrant, i.e., running backward with same "
                                     "input and "
                                     "grad_output multiple times gives different values (output "
                                     f"{number}, input {i}; "
                                     f"nondet_tol = {nondet_tol})")
            if not np.allclose(analytical[i], differences[i][j], rtol, atol, equal_nan=True):
                raise GradcheckError(f"Jacobian mismatch for output {number} with respect to input "
                                     f"{i},\n"
                                     f"numerical:{differences[i][j]}\n"
                                     f"analytical:{analytical[i]}\n")
        if dtypes:
            _check_dtypes(found[j], checked)
    if undefined:
        _check_undefined(func, inputs, checked)


def checked_inputs(inputs: tuple) -> list:
    """List the inputs that require grad. Raises ValueError if there is none."""
    checked = [x for x in inputs if isinstance(x, TensorState) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but "
                         "none of them have "
                         "requires_grad=True.")
    for i, x in enumerate(inputs):
        if isinstance(x, TensorState) and x._requires_grad and x._dtype.to_real() is not float64:
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating "
                          "point or complex. "
                          "This check will likely fail if all the inputs are not of double "
                          "precision floating point "
                          "or complex.", stacklevel=4)
    return checked


def _floating(found: Any) -> list:
    """List the floating point and complex outputs."""
    outputs = found if isinstance(found, (tuple, list)) else (found,)
    return [y for y in outputs if isinstance(y, TensorState) and y._dtype.category >= FLOATING]


def _differentiable(found: Any) -> list:
    return [y for y in _floating(found) if y.requires_grad]


def _analytical(output: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Return Jacobians (input parts, output parts), by one backward for each output part. A complex
    number has two parts."""
    width = len(parts(output))
    jacobians = [np.zeros((len(parts(x)), width)) for x in inputs]
    for k in range(width):
        start = unit(output, k)
        found = gradients((output,), inputs, (start,), retain_graph=True, allow_unused=True)
        for jacobian, g, x in zip(jacobians, found, inputs):
            if g is not None:
                if tuple(g.shape) != tuple(x.shape):
                    raise GradcheckError(f"grad has shape {tuple(g.shape)}, its input "
                                         f"{tuple(x.shape)}")
                jacobian[:, k] = parts(g)
    return jacobians


def parts(x: Any) -> np.ndarray:
    """Return the elements as float64, a complex one as two."""
    array = x.detach().numpy()
    if array.dtype.kind == "c":
        array = np.stack((array.real, array.imag), -1)
    return array.astype(np.float64).ravel()


def unit(x: Any, k: int) -> Any:
    """Make a tensor like x whose part `k` is 1, the others 0."""
    seed = np.zeros(x.numel(), x._dtype.numpy)
    seed.view(x._dtype.to_real().numpy)[k] = 1
    return _tensor(seed.reshape(tuple(x.shape)))


def _tensor(array: np.ndarray) -> Any:
    return of_result(array, dtype_of_numpy(array.dtype), CPU)


def numerical(func: Callable, inputs: tuple, x: Any, eps: float) -> list[np.ndarray]:
    """Compute central differences: each part of x is moved by eps in place and back.

    Returns one Jacobian (parts of x, parts of the output) for each output of floating point.
    """
    memory = pairs(np, x.array) if x._dtype.is_complex else x.array

    def values() -> list[np.ndarray]:
        return [parts(y) for y in _floating(func(*inputs))]

    rows = []
    for place in np.ndindex(*memory.shape):
        before = memory[place].copy()
        memory[place] = before + eps
        ups = values()
        memory[place] = before - eps
        rows.append([(up - down) / (2 * eps) for up, down in zip(ups, values())])
        memory[place] = before
    if not rows:
        return [np.zeros((0, len(y))) for y in values()]
    return [np.array(of_output) for of_output in zip(*rows)]


def _check_dtypes(output: Any, inputs: Sequence[Any]) -> None:
    start = creation.full_of(output, tuple(output.shape), 1, output._dtype)
    for x, g in zip(inputs, gradients((output,), inputs, (start,), retain_graph=True,
                                      allow_unused=True)):
        if g is not None and g._dtype is not x._dtype:
            raise GradcheckError(f"grad has dtype {g._dtype}, its input {x._dtype}")


def _check_undefined(func: Callable, inputs: tuple, checked: list) -> None:
    """Raise GradcheckError if zero gradients in give other gradients than zero or None."""
    outputs = _differentiable(func(*inputs))
    zeros = tuple(creation.zeros_of(y, TensorType(y._dtype, tuple(y.shape),
                                                  y._device)) for y in outputs)
    for g in gradients(outputs, checked, zeros, allow_unused=True):
        if g is not None and np.any(np.nan_to_num(g.detach().numpy(), nan=0.0) != 0):
            raise GradcheckError("Expected backward function to handle undefined output grads. "
                                 "Please look at 'Notes "
                                 "about undefined output gradients' in "
                                 "'tools/autograd/derivatives.yaml'")


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *,
                  eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  **ignored: Any) -> bool:
    """Return True if second derivatives agree with differences of first ones; see `gradcheck`.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], dtype=tracejit.float64, requires_grad=True)
    >>> tracejit.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = _differentiable(func(*inputs))
    if grad_outputs is None:
        grad_outputs = [_random_like(y, k) for k, y in enumerate(outputs)]
    several = isinstance(grad_outputs, (tuple, list))
    grad_outputs = tuple(grad_outputs) if several else (grad_outputs,)
    count = len(grad_outputs)

    def first(*args: Any) -> tuple:
        own = tuple(x.detach().requires_grad_() if isinstance(x, TensorState)
                    and x._dtype.category >= FLOATING
                    and not x.requires_grad else x for x in args)
        given = args[:-count]
        from tracejit.core.eager.modes import enable_grad

        with enable_grad():
            found = _differentiable(func(*given))
            wanted = [x for x in given if isinstance(x, TensorState) and x.requires_grad]
            result = gradients(found, wanted, own[-count:], create_graph=True, allow_unused=True)
        return tuple(g for g in result if g is not None and g.requires_grad)

    return gradcheck(first, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes)


def _random_like(y: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    values: Any = rng.standard_normal(tuple(y.shape)) * 0.5 + 1.0
    if y._dtype.is_complex:
        values = values + 1j * rng.standard_normal(tuple(y.shape))
    return _tensor(np.asarray(values, y._dtype.numpy)).requires_grad_(True)


sealing.seal_all({"__name__": __name__, "gradgradcheck": gradgradcheck})
