"""L-BFGS: quasi-Newton steps from the last differences of parameters and gradients.

In: a closure that gives the loss and its gradients, called several times in a step. Out: the
parameters moved; the loss before the step. Algorithms 7.4 (two-loop recursion) and 3.5, 3.6 (strong
Wolfe line search) of Nocedal and Wright, Numerical Optimization, with PyTorch's stopping rules.

Whether to go on is decided by values, so that under `script` each call of the closure is a program
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tracejit
from tracejit.eager.modes import enable_grad, no_grad
from tracejit.optim.optimizer import Optimizer, of_reals, require_rate

_CURVATURE = 1e-10  # differences with less are not remembered
_DECREASE, _SLOPE = 1e-4, 0.9  # the constants of the Wolfe conditions


class LBFGS(Optimizer):
    """One group of parameters, moved along -H @ gradient, H being built from `history_size`
    differences.

    max_iter, max_eval   iterations, and calls of the closure, in one step; max_eval None: 5/4
    tolerance_grad       stop where no gradient is larger; tolerance_change: nor any change
    line_search_fn       None: steps of length `lr`; "strong_wolfe": a search along the direction

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

    Raises ValueError for more than one group, RuntimeError for an unknown line search.
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

    def _move(self, length: float, direction: Any) -> None:
        start = 0
        for p in map(of_reals, self._params):
            count = p.numel()
            p.add_(direction[start : start + count].reshape(p.shape), alpha=length)
            start += count

    def _place(self, where: list[Any]) -> None:
        for p, saved in zip(self._params, where):
            p.copy_(saved)

    # -- a step ----------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Several iterations; `closure` clears gradients, computes the loss and calls backward.

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
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        memory = _Memory(state, group["history_size"])
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = memory.direction(gradient, state["n_iter"] == 1)
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            length = group["lr"]
            if state["n_iter"] == 1:
                reach = float(gradient.abs().sum())
                length = (1.0 / reach if reach > 1.0 else 1.0) * group["lr"]
            slope = float(gradient.dot(direction))
            state["d"], state["t"] = direction, length
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                search = _Search(self, closure, direction, loss, gradient, slope)
                length, loss, gradient, calls = search.run(length, group["tolerance_change"])
                self._move(length, direction)
            else:
                self._move(length, direction)
                calls = 0
                if number != group["max_iter"]:
                    loss, calls = float(closure()), 1
                    gradient = self._gradient()
            state["t"] = length
            used += calls
            state["func_evals"] += calls
            change = float((direction * length).abs().max())
            if (
                used >= group["max_eval"]
                or float(gradient.abs().max()) <= group["tolerance_grad"]
                or change <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first


class _Memory:
    """The last differences, kept in the optimizer's state."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.state, self.size = state, size

    def direction(self, gradient: Any, first: bool) -> Any:
        """-H @ gradient, after remembering what the last step has shown."""
        state = self.state
        if first:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1
            return gradient.neg()
        turned = gradient - state["prev_flat_grad"]
        moved = state["d"] * state["t"]
        curvature = float(turned.dot(moved))
        if curvature > _CURVATURE:
            kept = (state["old_dirs"], state["old_stps"], state["ro"])
            if len(state["old_dirs"]) == self.size:
                for known in kept:
                    known.pop(0)
            for known, new in zip(kept, (turned, moved, 1.0 / curvature)):
                known.append(new)
            state["H_diag"] = curvature / float(turned.dot(turned))
        rows = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        q, weights = gradient.neg(), []
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
        self.origin: Any = (0.0, loss, gradient, slope)
        self.calls = 0

    def at(self, length: float) -> tuple[float, float, Any, float]:
        """(length, loss, gradient, slope) there; the parameters stay where they started."""
        self.optimizer._move(length, self.direction)
        loss = float(self.closure())
        gradient = self.optimizer._gradient()
        self.optimizer._place(self.start)
        self.calls += 1
        return length, loss, gradient, float(gradient.dot(self.direction))

    def run(
        self, length: float, tolerance: float, most: int = 25
    ) -> tuple[float, float, Any, int]:
        """(length, loss, gradient, calls of the closure)"""
        _, loss, _, slope = self.origin
        before, bracket = self.origin, None
        point: Any = self.at(length)
        for count in range(most):
            rises = point[1] > loss + _DECREASE * point[0] * slope
            if rises or count > 0 and point[1] >= before[1]:
                bracket = [before, point]
                break
            if abs(point[3]) <= -_SLOPE * slope:
                return point[0], point[1], point[2], self.calls
            if point[3] >= 0:
                bracket = [before, point]
                break
            low = point[0] + 0.01 * (point[0] - before[0])
            following = _cubic(before, point, low, point[0] * 10)
            before, point = point, self.at(following)
        if bracket is None:
            bracket = [self.origin, point]
        low, high = sorted(bracket, key=lambda p: p[1])
        size = float(self.direction.abs().max())
        stuck = False
        for _ in range(most):
            if abs(high[0] - low[0]) * size < tolerance:
                break
            ends = sorted((low[0], high[0]))
            wanted = _cubic(low, high, *ends)
            margin = 0.1 * (ends[1] - ends[0])
            if min(ends[1] - wanted, wanted - ends[0]) < margin:
                # close to an end for the second time, or beyond it: move away from it
                if stuck or wanted >= ends[1] or wanted <= ends[0]:
                    near_top = abs(wanted - ends[1]) < abs(wanted - ends[0])
                    wanted = ends[1] - margin if near_top else ends[0] + margin
                    stuck = False
                else:
                    stuck = True
            else:
                stuck = False
            point = self.at(wanted)
            if point[1] > loss + _DECREASE * point[0] * slope or point[1] >= low[1]:
                high = point
                low, high = (low, high) if low[1] <= high[1] else (high, low)
                continue
            if abs(point[3]) <= -_SLOPE * slope:
                return point[0], point[1], point[2], self.calls
            if point[3] * (high[0] - low[0]) >= 0:
                high = low
            low = point
        return low[0], low[1], low[2], self.calls


def _cubic(one: tuple, other: tuple, least: float, most: float) -> float:
    """Where the cubic through two values and slopes is smallest, within bounds."""
    if one[0] > other[0]:
        one, other = other, one
    (x1, f1, _, g1), (x2, f2, _, g2) = one, other
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if square < 0:
        return (least + most) / 2
    d2 = square**0.5
    found = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    return min(max(found, least), most)
