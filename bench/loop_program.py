"""A program with a loop: its tensor form, its jax form, its arrays and its sizes.

In: the functions of a program. Out: calls without arguments, of which the first compiles. Used by
`bench.loop_worker` in every contender's process, so it imports NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench import measure
from bench.measure import Call

Sizes = dict[str, int]
Arrays = list[np.ndarray]
Floor = Callable[[dict[str, Any], Sizes], float]


@dataclass(frozen=True)
class Program:
    """One row of the table. `length` and `body` name the sizes that the first call may grow with.

    `leaves`: how many of the arrays get gradients. `unequal`: the share of numbers that may differ
    by more than the tolerance, where a last bit decides an integer.
    """

    name: str
    full: Sizes
    tiny: Sizes
    arrays: Callable[[Sizes], Arrays]
    tensors: Callable[[Any, Sizes], Any]
    jax: Callable[[Any, Sizes], Any]
    leaves: int = 0
    length: str = ""
    body: str = ""
    tolerance: float = 1e-4
    unequal: float = 0.0
    torch: bool = True
    floor: Floor | None = None

    @property
    def double(self) -> bool:
        """Return True if the arrays are float64."""
        return any(array.dtype == np.float64 for array in self.arrays(self.tiny))

    def torch_call(self, space: Any, wrap: Any, sizes: Sizes) -> Call:
        """Start the program under PyTorch's names; `wrap` compiles or does not."""
        given = [space.from_numpy(array) for array in self.arrays(sizes)]
        function = self.tensors(space, sizes)
        if not self.leaves:
            run = wrap(function)

            def call() -> Any:
                with space.no_grad():
                    return run(*given)

            return call
        for leaf in given[: self.leaves]:
            leaf.requires_grad_()

        def step(*given: Any) -> Any:
            value = function(*given)
            return [value.detach(), *space.autograd.grad(value, given[: self.leaves])]

        run = wrap(step)
        return lambda: run(*given)

    def jax_call(self, jax: Any, sizes: Sizes) -> Call:
        """Start the program in jax, compiled as a whole."""
        jax.config.update("jax_enable_x64", self.double)
        given = [jax.numpy.asarray(array) for array in self.arrays(sizes)]
        function = self.jax(jax, sizes)
        if self.leaves:
            function = jax.value_and_grad(function, argnums=tuple(range(self.leaves)))
        run = jax.jit(function)
        return lambda: jax.tree_util.tree_leaves(jax.block_until_ready(run(*given)))


def numbers_of(result: Any) -> np.ndarray:
    """Return all numbers of a result in a row, as float64."""
    if isinstance(result, (list, tuple)):
        return np.concatenate([numbers_of(part) for part in result])
    return measure.as_numbers(result).reshape(-1)


def difference(result: Any, reference: Any, program: Program) -> float:
    """Return how far results are apart, relative to each part's largest number."""
    parts = [result] if not isinstance(result, (list, tuple)) else result
    others = [reference] if not isinstance(reference, (list, tuple)) else reference
    if len(parts) != len(others):
        return float("inf")
    return max((measure.difference(numbers_of(part), numbers_of(other), program.unequal)
                for part, other in zip(parts, others)), default=0.0)
