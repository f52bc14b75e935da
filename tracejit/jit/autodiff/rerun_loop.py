"""Tests of a loop, found by running it again op by op: which tests hold in which iterations.

In: the node of a loop, with a body that gives the tests' values besides its own results.
Out: the `decide` function of `outer_saves.py`, for what the node holds. Made by `loop_vjp.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.recording import ended_to_hints
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.control import run_over_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.stacks import stack_run
from tracejit.jit.autodiff.outer_saves import SavePredicate, outcomes, sizes_of
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import RegionOverTensors, at_size, run_tensors


class RerunLoop:
    """Loop to run again. The last outputs of `body` are the values of the `tests`, in order."""

    def __init__(self, op: Op, attributes: dict, body: Graph, tests: Sequence[SavePredicate]):
        self.op, self.attributes, self.body, self.tests = op, attributes, body, tests

    def __call__(self, held: Sequence[Tensor], tests: Sequence[SavePredicate]) -> list[bool]:
        sizes = sizes_of(self.body)
        body = _Watched(self.body, sizes, self.tests)
        attributes = {
            name: at_size(ended_to_hints(x), sizes) for name, x in self.attributes.items()}
        with stack_run():
            run_over_tensors(self.op, ended_to_hints(held), **attributes, regions=(body,))
        number = {id(test): k for k, test in enumerate(self.tests)}
        return [_held(test, [row[number[id(test)]] for row in body.seen]) for test in tests]


class _Watched(RegionOverTensors):
    """Loop body that records which tests hold in each iteration."""

    def __init__(self, graph: Graph, sizes: dict[str, int], tests: Sequence[SavePredicate]):
        super().__init__(graph, sizes, run_tensors)
        self.tests, self.seen = tests, []  # type: tuple[Sequence[SavePredicate], list[list[bool]]]
        self.own = len(self.outputs) - sum(len(test.values) for test in tests)
        self.outputs = self.outputs[:self.own]

    def __call__(self, *inputs: Any) -> list[Any]:
        made = super().__call__(*inputs)
        self.seen.append(outcomes(self.tests, made[self.own:]))
        return made[:self.own]


def _held(test: SavePredicate, seen: list[bool]) -> bool:
    if test.iteration is None:
        return any(seen)
    return seen[test.iteration] if -len(seen) <= test.iteration < len(seen) else False
