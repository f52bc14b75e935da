"""Graphs of one call of a function, where they end and why; PyTorch's `torch._dynamo.explain`.

In: a function or a module, and arguments. Out: an `ExplainOutput`, which prints well. Called by:
users, who find it in `tracejit._dynamo`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracejit.jit import script
from tracejit.jit.capture.breaks import GraphBreak
from tracejit.jit.ir.graph import Graph


@dataclass
class ExplainOutput:
    """Result of `explain` for one call.

    graphs             captured graphs, in the order they run
    graph_count        number of graphs
    graph_break_count  number of times that capture ended before the function did
    break_reasons      reasons for that, with the user's lines
    op_count           number of ops in all graphs
    ops_per_graph      names of ops
    out_guards         conditions for the next call to run the same programs
    compile_times      seconds by stage, as text
    """

    graphs: list[Graph]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphBreak]
    op_count: int
    ops_per_graph: list[list[str]]
    out_guards: list[str]
    compile_times: str

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}",
                 f"Graph Break Count: {self.graph_break_count}",
                 f"Op Count: {self.op_count}", "Break Reasons:"]
        for k, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {k}:", *_indented(str(reason))]
        lines.append("Ops per Graph:")
        for k, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {k}:", *(f"    {name}" for name in ops)]
        lines += ["Out Guards:", *(f"  {guard}" for guard in self.out_guards)]
        return "\n".join([*lines, f"Compile Times: {self.compile_times}"])


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function captured, and report its graphs and breaks.

    f  a function or a module, which runs once, effects included

    Without further arguments, return a function that takes them.

    >>> import tracejit
    >>> found = explain(lambda x: (x + 1).exp())(tracejit.ones(2))
    >>> found.graph_count, found.graph_break_count, found.ops_per_graph
    (1, 0, [['add', 'exp']])
    """
    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        compiled = script(f)
        compiled(*args, **kwargs)
        report = compiled.report()
        ops = [[node.op.name for node in graph.nodes] for graph in report.graphs]
        seconds = (f"{stage} {taken:.3f}" for stage, taken in report.compile_seconds.items())
        return ExplainOutput(report.graphs, len(ops), len(report.breaks), report.breaks,
                             sum(map(len, ops)), ops, report.guards, ", ".join(seconds))

    return explained(*args, **kwargs) if args or kwargs else explained


def _indented(text: str) -> list[str]:
    return [f"    {line.strip()}" for line in text.splitlines()]
