"""Counts of floating point operations; PyTorch's `torch.utils.flop_counter`.

In: ops as eager mode runs them. Out: operations by module and op. Only products and convolutions
count, as others are small beside them. A multiplication and an addition are two operations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tracejit.core.eager import dispatch
from tracejit.core.eager.recording import active, ever
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.record import Op
from tracejit.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = Callable[..., int]
flop_registry: dict[str, Formula] = {}
_SUFFIXES = ("", "K", "M", "B", "T")


def register_flop_formula(targets: Any) -> Callable[[Formula], Formula]:
    """Decorate the formula of an op, or of several, which are given by record or by name.

    The function is called with the shapes of the operands (None for what is no tensor), the op's
    attributes by name, and `out_shape`.
    """
    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_name(target)] = formula
        return formula

    return register


def _name(target: Any) -> str:
    if not isinstance(target, (str, Op)):
        raise ValueError("register_flop_formula(targets): expected each target to be an op or "
                         f"its name, got {target!r} of type {type(target)}")
    return target if isinstance(target, str) else target.name


@register_flop_formula(["matmul", "linear", "vecmat"])
def _product(a: Any, *others: Any, out_shape: Any, **attributes: Any) -> int:
    return 2 * math.prod(out_shape) * a[-1]


@register_flop_formula("outer")
def _outer(*vectors: Any, out_shape: Any, **attributes: Any) -> int:
    return 2 * math.prod(out_shape)


@register_flop_formula("conv")
def _convolution(a: Any, weight: Any, *others: Any, out_shape: Any, **attributes: Any) -> int:
    return 2 * math.prod(out_shape) * math.prod(weight[1:])


@register_flop_formula("conv_input")
def _to_input(grad: Any, weight: Any, *others: Any, out_shape: Any, **attributes: Any) -> int:
    return 2 * math.prod(grad) * math.prod(weight[1:])


@register_flop_formula("conv_weight")
def _to_weight(a: Any, grad: Any, *others: Any, out_shape: Any, **attributes: Any) -> int:
    return 2 * math.prod(grad) * math.prod(out_shape[1:])


class FlopCounterMode:
    """Context that counts. Captured functions run op by op inside, and count like others.

    mods            not needed: modules are found as they run
    depth           of modules in the table, None for all
    display         print the table at the end
    custom_mapping  formulas for this counter alone, as for `register_flop_formula`

    >>> import tracejit
    >>> model = tracejit.nn.Sequential(tracejit.nn.Linear(4, 5), tracejit.nn.ReLU())
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = model(tracejit.ones(3, 4))
    >>> counter.get_total_flops(), counter.get_flop_counts()["Sequential.0"]
    (120, {<op linear>: 120})
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True,
                 custom_mapping: dict[Any, Formula] | None = None) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: defaultdict[str, defaultdict[Op, int]] = _counts()
        self._formulas = {_name(op): formula for op, formula in (custom_mapping or {}).items()}
        self._tracker, self._inside = ModuleTracker(), False

    def get_total_flops(self) -> int:
        """Return the number of all operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Op, int]]:
        """Return operations by the name of the module, "Global" for all, and op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules with their ops, operations and their part of all."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if depth is not None and level > depth:
                continue
            counts = self.flop_counts[name]
            rows.append((" " * level + name, *_shown(sum(counts.values()), total)))
            for op, count in counts.items():
                rows.append((" " * level + f" - {op.name}", *_shown(count, total)))
        wide, middle, last = (max(map(len, column)) for column in zip(*rows))
        lines = [f"{a:{wide}}  {b:>{middle}}  {c:>{last}}" for a, b, c in rows]
        lines.insert(1, f"{'-' * wide}  {'-' * middle}  {'-' * last}")
        return "\n".join(lines)

    def __enter__(self) -> FlopCounterMode:
        self._stack, tracer = ExitStack(), active.tracer
        if tracer is not None and not tracer.mapped:
            tracer.break_graph(None, "the function counts its operations")
            self._stack.enter_context(tracer.paused())  # type: ignore[attr-defined]
        self.flop_counts = _counts()
        self._tracker.__enter__()
        self._before = active.op_by_op
        # Compiled programs run no ops that could be counted.
        ever.op_by_op = active.op_by_op = True
        self._run = dispatch.replace_run(self._counted)
        return self

    def __exit__(self, *exc: object) -> None:
        dispatch.replace_run(self._run)
        active.op_by_op = self._before
        self._tracker.__exit__(*exc)
        self._stack.close()
        if self.display:
            print(self.get_table(self.depth))

    def _counted(self, op: Op, operands: tuple, attributes: dict) -> Any:
        """Run an op; the ops in its body are not counted again."""
        formula = self._formulas.get(op.name) or flop_registry.get(op.name)
        # A composite that has a formula counts as a whole.
        if formula is None or self._inside:
            return self._run(op, operands, attributes)
        self._inside = True
        try:
            result = self._run(op, operands, attributes)
        finally:
            self._inside = False
        shapes = [tuple(x.shape) if hasattr(x, "shape") else None for x in operands]
        out = [tuple(x.shape) for x in result] if isinstance(result, tuple) else result.shape
        count = formula(*shapes, out_shape=out, **attributes)
        for name in self._tracker.parents:
            self.flop_counts[name][op] += count
        return result


def _counts() -> defaultdict[str, defaultdict[Op, int]]:
    return defaultdict(lambda: defaultdict(int))


def _shown(count: int, total: int) -> tuple[str, str]:
    """Return operations with a suffix for thousands, and their part of all."""
    order = max(0, min(len(_SUFFIXES) - 1, (len(str(count)) - 1) // 3))
    part = 0.0 if total == 0 else count / total
    return f"{count / 1000**order:.3f}{_SUFFIXES[order]}", f"{part:.2%}"


_sealing.seal_all(globals())
