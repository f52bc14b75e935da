"""L-BFGS: quasi-Newton steps from the last differences of parameters and gradients.

In: a closure that gives the loss and its gradients, called several times in a step. Out: the
parameters moved; the loss before the step. Algorithms 7.4 (two-loop recursion) and 3.5, 3.6 (strong
Wolfe line search) of Nocedal and Wright, Numerical Optimization, with PyTorch's stopping rules.

Values decide if the search goes on. Under `script` each call of the closure is thus a program of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tracejit
from tracejit.core.eager.modes import enable_grad, no_grad
from tracejit.optim.optimizer import Optimizer, of_reals, require_rate

# Length along the direction; loss, gradient and slope there.
_Point = tuple[Any, float, Any, Any]

_CURVATURE = 1e-10  # differences with less are not remembered
_DECREASE, _SLOPE = 1e-4, 0.9  # the constants of the Wolfe conditions
_NARROW = 1e-9  # a bracket of smaller steps is not searched, whatever `tolerance_change` says


class LBFGS(Optimizer):
    """Quasi-Newton method with little memory: one group of parameters moves along -H @ gradient. H
    is built from the last `history_size` differences.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                length of steps without a line search; default 1
    max_iter, max_eval  iterations, and calls of the closure, in one step; default 20, and 5/4 of it
    tolerance_grad    stop where no gradient is larger; default 1e-7
    tolerance_change  stop where no change is larger; default 1e-9
    history_size      number of differences kept, each as long as all parameters; default 100
    line_search_fn    None (default): steps of length `lr`; "strong_wolfe": a search along the
                      direction

    `step(closure)` needs a function that clears gradients, computes the loss (), calls `backward`
    and returns the loss. Raises ValueError for more than one group, TypeError without a closure,
    RuntimeError for an unknown line search. The source is Nocedal and Wright, "Numerical
    optimization" (2006), algorithms 3.5 and 7.4.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([4.0]))
    >>> optimizer = tracejit.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((p - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), round(p.item(), 4)
    (9.0, 1.0)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        require_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # -- all parameters as one vector ------------------------------------------------------------
    def _gradient(self) -> Any:
        return tracejit.cat(
            [of_reals(tracejit.zeros_like(p) if p.grad is None else p.grad.to_dense()).reshape(-1)
             for p in self._params]
        )  # fmt: skip

    def _move(self, length: Any, direction: Any) -> None:
        start, length = 0, float(length)
        for p in map(of_reals, self._params):
            count = p.numel()
            p.add_(direction[start : start + count].reshape(p.shape), alpha=length)
            start += count

    def _place(self, where: list[Any]) -> None:
        for p, saved in zip(self._params, where):
            p.copy_(saved)

    # -- a step ----------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make several iterations. `closure` clears gradients, computes the loss and calls
        backward.

        TypeError without a closure.
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with no_grad():
            return self._step(enable_grad()(closure))

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = float(first)
        state["func_evals"] += 1
        used = 1
        gradient = self._gradient()
        if _value(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        memory = _Memory(state, group["history_size"])
        rate = float(group["lr"])
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = memory.direction(gradient, state["n_iter"] == 1)
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            length: Any = rate
            if state["n_iter"] == 1:
                with np.errstate(all="ignore"):
                    # no curvature is known: this step has at most length `rate` in the 1-norm
                    length = min(1.0, 1.0 / _value(gradient.abs().sum())) * rate
            slope = _value(gradient.dot(direction))
            state["d"], state["t"] = direction, float(length)
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                search = _Search(self, closure, direction, loss, gradient, slope)
                with np.errstate(all="ignore"):
                    point = search.run(length, group["max_eval"] - used)
                length, loss, gradient, calls = *point[:3], search.calls
                self._move(length, direction)
            else:
                self._move(length, direction)
                calls = 0
                # the last iteration's loss would not be looked at
                if number != group["max_iter"]:
                    loss, calls = float(closure()), 1
                    gradient = self._gradient()
            state["t"] = float(length)
            used += calls
            state["func_evals"] += calls
            if number == group["max_iter"] or used >= group["max_eval"]:
                break
            if (
                _value(gradient.abs().max()) <= group["tolerance_grad"]
                or _value((direction * state["t"]).abs().max()) <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first


class _Memory:
    """Last differences of parameters and gradients, kept in the optimizer's state."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.state, self.size = state, size

    def direction(self, gradient: Any, first: bool) -> Any:
        """Remember the differences of the last step. Return -H @ gradient."""
        state = self.state
        if first:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1
            return gradient.neg()
        turned = gradient - state["prev_flat_grad"]
        moved = state["d"] * state["t"]
        curvature = _value(turned.dot(moved))
        # else H would not stay positive definite
        if curvature > _CURVATURE:
            kept = (state["old_dirs"], state["old_stps"], state["ro"])
            if len(state["old_dirs"]) == self.size:
                for known in kept:
                    known.pop(0)
            for known, new in zip(kept, (turned, moved, float(1.0 / curvature))):
                known.append(new)
            state["H_diag"] = float(curvature / _value(turned.dot(turned)))
        rows = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        q, weights = gradient.neg(), []
        # algorithm 7.4: from the newest difference to the oldest, then back
        for turned, moved, inverse in reversed(rows):
            weight = moved.dot(q) * inverse
            weights.append(weight)
            q = q - turned * weight
        q = q * state["H_diag"]
        for (turned, moved, inverse), weight in zip(rows, reversed(weights)):
            q = q + moved * (weight - turned.dot(q) * inverse)
        return q


class _Search:
    """Looks along a direction for a length that satisfies the strong Wolfe conditions."""

    def __init__(
        self, optimizer: LBFGS, closure: Callable[[], Any], direction: Any, loss: float,
        gradient: Any, slope: float,
    ) -> None:  # fmt: skip
        self.optimizer, self.closure, self.direction = optimizer, closure, direction
        self.start = [p.clone() for p in optimizer._params]
        self.origin: _Point = (0, loss, gradient, slope)
        self.calls = 0

    def at(self, length: Any) -> _Point:
        """Return (length, loss, gradient, slope) there. The parameters stay where they started."""
        self.optimizer._move(length, self.direction)
        loss = float(self.closure())
        gradient = self.optimizer._gradient()
        self.optimizer._place(self.start)
        self.calls += 1
        return length, loss, gradient, _value(gradient.dot(self.direction))

    def run(self, length: Any, most: int) -> _Point:
        """Return the point found, after at most `most` steps and one more call of the closure."""
        bracket, steps = self._bracket(length, most)
        if len(bracket) == 1:
            return bracket[0]
        low, high = _lower_first(bracket)
        size = _value(self.direction.abs().max())
        stuck = False
        while steps < most:
            first, second = bracket[0][0], bracket[1][0]
            if abs(second - first) * size < _NARROW:
                break
            wanted, stuck = _within(bracket, stuck)
            point = self.at(wanted)
            steps += 1
            if not self._falls(point) or point[1] >= bracket[low][1]:
                bracket[high] = point
                low, high = _lower_first(bracket)
                continue
            found = self._is_flat(point)
            # the loss rises towards the other end: a minimum lies between here and the best
            if not found and point[3] * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
            if found:
                break
        return bracket[low]

    def _bracket(self, length: Any, most: int) -> tuple[list[_Point], int]:
        """Return two points with a good one between, or a good one alone, and the number of
        steps."""
        before, point = self.origin, self.at(length)
        for steps in range(most):
            # The first two points are not compared: PyTorch begins with the third.
            if not self._falls(point) or steps > 1 and point[1] >= before[1]:
                return [before, point], steps
            if self._is_flat(point):
                return [point], steps
            # the slope has turned: a minimum lies between
            if point[3] >= 0:
                return [before, point], steps
            least = point[0] + 0.01 * (point[0] - before[0])
            wanted = _cubic(before, point, least, point[0] * 10)
            before, point = point, self.at(wanted)
        return [self.origin, point], most

    def _falls(self, point: _Point) -> bool:
        """Return False if the loss is above the line that the first Wolfe condition draws."""
        return not point[1] > self.origin[1] + _DECREASE * point[0] * self.origin[3]

    def _is_flat(self, point: _Point) -> bool:
        return bool(abs(point[3]) <= -_SLOPE * self.origin[3])


def _value(tensor: Any) -> Any:
    """Return the element as a NumPy number of the tensor's dtype.

    Arithmetic with Python's numbers keeps that dtype, and division by zero gives inf or NaN.
    Tensors without dimensions behave alike.
    """
    return tensor.dtype.numpy.type(float(tensor))


def _lower_first(bracket: list[_Point]) -> tuple[int, int]:
    return (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)


def _within(bracket: list[_Point], stuck: bool) -> tuple[Any, bool]:
    """Return the next step in a bracket, and True if it is near an end for the first time."""
    ends = [point[0] for point in bracket]
    least, most = min(ends), max(ends)
    wanted = _cubic(bracket[0], bracket[1], least, most)
    margin = 0.1 * (most - least)
    if not min(most - wanted, wanted - least) < margin:
        return wanted, False
    # near an end once is allowed; twice, or outside, the step is moved inwards
    if not (stuck or wanted >= most or wanted <= least):
        return wanted, True
    near_top = abs(wanted - most) < abs(wanted - least)
    return (most - margin if near_top else least + margin), False


def _cubic(one: _Point, other: _Point, least: Any, most: Any) -> Any:
    """Return the minimum, within bounds, of the cubic through two values and slopes."""
    (x1, f1, _, g1), (x2, f2, _, g2) = one, other
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    # no real minimum, or NaN: the middle
    if not square >= 0:
        return (least + most) / 2.0
    d2 = np.sqrt(square)
    if x1 <= x2:
        found = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        found = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(found, least), most)
