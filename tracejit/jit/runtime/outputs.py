"""Results that are views: of the caller's tensors, of each other, of tensors that nobody holds.

In: the tensors a recorded call leaves behind. Out: `Lines`, which finds for each view its parent
and the steps from there, and `ResultTensor`, which makes a result on replay. A later write to a
view or its parent then reaches the history of the others as in eager mode. Called by `build` and
`entry`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracejit.core.eager.dispatch import INFERENCE
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.nodes import edge_of
from tracejit.core.eager.origins import mark
from tracejit.core.eager.saved import alias, over_same_memory
from tracejit.core.eager.state import make
from tracejit.core.eager.tape import OpNode, grad_fn_of, refresh
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import AliasFamily, View, family_of
from tracejit.core.ops.record import Op
from tracejit.jit.capture.epilogue import ReplayFrame
from tracejit.jit.capture.storage import FunctionalStorage, FunctionalTensor, substitute
from tracejit.jit.ir.graph import Value
from tracejit.jit.runtime.call_nodes import NoGradient, record_no_gradient


class CreationMeta(NamedTuple):
    """Facts about how a view was made.

    origin  how it was made, if it may not be used in every way; output: see `views.View`
    missed  how often its memory was written since
    """

    origin: str | None
    output: tuple[str, int] | None
    missed: int


class Rung(NamedTuple):
    """View that a step of known sizes leads to: its layout, and its record."""

    offset: int  # in the root
    shape: tuple
    strides: tuple | None
    dtype: Any
    op: Op
    attributes: dict
    made: CreationMeta


# (op, numbers of the results that are further operands, attributes, how the view was made)
Step = tuple[Op, Sequence[int], dict, CreationMeta]


@dataclass
class ResultTensor:
    """Tensor a call made: where its memory is, the views that lead to it, its history.

    `root` is the number of the program's output, or reads a tensor of the caller's.
    """

    root: int | Callable[[ReplayFrame], Any]
    steps: Sequence[Step] = ()
    alias: bool = False  # made as an alias, since the root is another tensor
    base: bool = True  # the user sees no view, whatever the steps are
    of: int = -1  # the result that it is a view of
    shared: bool = False  # its history is its parent's, seen through the views
    # kind of a history that is freed inside the call, or leads nowhere
    end: type[NoGradient] | None = None
    leaf: bool = False  # requires grad without history
    inference: bool = False  # made in inference mode
    counted: tuple[int, int] | None = None  # `.data`: result it counts with, or -1; writes so far
    tracked: int = -1  # position among the joint graph's outputs, or -1
    # (sizes, offset in the root, shape, strides, dtype) that the last steps led to
    layout: tuple[dict[str, int], int, tuple, tuple | None, Any] | None = None
    # the sizes, and what each step led to, where the user sees views
    ladder: tuple[dict[str, int], list[Rung]] | None = None

    def own_output(self) -> int:
        """Return the number of the program's output that is this tensor without further work, or
        -1.
        """
        around = (self.steps or self.alias or self.of >= 0 or self.end or self.leaf
                  or self.inference or self.counted)
        return self.root if type(self.root) is int and not around else -1

    def depends(self) -> int:
        """Return the result that must be made first, or -1."""
        return self.of if self.counted is None else self.counted[0]

    def operands(self) -> list[int]:
        """Return the results that its views take as further operands, such as an index."""
        return [k for _, operands, *_ in self.steps for k in operands]

    def stands_alone(self) -> bool:
        """Return True if the tensor can be made of one output of the program and nothing else."""
        return (type(self.root) is int and self.of < 0 and self.depends() < 0 and not self.shared
                and not self.operands())

    def make(
        self, tensors: list[Any], roots: list[Tensor], sizes: dict[str, int], frame: Any
    ) -> Tensor:
        if self.of >= 0:
            tensor = tensors[self.of]
        else:
            root = self.root
            tensor = roots[root] if type(root) is int else root(frame)  # type: ignore[operator]
            if self.alias:
                tensor = alias(tensor)
        if self.steps:
            tensor = self._seen(tensor, tensors, sizes)
        if self.end is not None:
            record_no_gradient(tensor, self.end)
        elif self.leaf:
            tensor._requires_grad = True
        elif self.inference:
            tensor._view = INFERENCE
        if self.counted is not None:
            other, writes = self.counted
            tensor = over_same_memory(tensor)  # other results must not count in its family
            tensor._view = AliasFamily(writes) if other < 0 else family_of(tensors[other])
        return tensor

    def _seen(self, root: Tensor, tensors: list[Any], sizes: dict[str, int]) -> Any:
        known = self.layout
        if known is not None and known[0] is sizes and root._strides is None:
            _, offset, shape, strides, dtype = known
            return make(root._storage, root._offset + offset, shape, strides, dtype, root._device)
        if self.ladder is not None and self.ladder[0] is sizes and _is_fresh(root):
            return _climbed(root, self.ladder[1])
        fresh, tensor = _is_fresh(root), root
        with no_grad():
            for op, operands, attributes, made in self.steps:
                given = {k: substitute(v, sizes) for k, v in attributes.items()}
                tensor = op(tensor, *[tensors[k] for k in operands], **given)
                if type(tensor._view) is View:
                    mark(tensor, made.origin)
                    tensor._view.output = made.output
                    tensor._view.version -= made.missed
        if not self.base:
            if fresh and type(self.root) is int and not self.operands():
                self.ladder = _ladder_of(root, tensor, sizes, self.steps)
            return tensor
        found = alias(tensor)
        fixed = type(self.root) is int and root._strides is None and not self.operands()
        if fixed and found._storage is root._storage and found._view is None:
            offset = found._offset - root._offset
            self.layout = sizes, offset, found._shape, found._strides, found._dtype
        return found


def _is_fresh(root: Tensor) -> bool:
    """Return True if a tensor is an output of the program that nothing else has looked at."""
    return root._strides is None and root._view is None and not root._requires_grad


def _ladder_of(root: Tensor, tensor: Tensor, sizes: dict[str, int], steps: Sequence[Step]
               ) -> tuple[dict[str, int], list[Rung]] | None:  # fmt: skip
    """Return the steps that led from a fresh root to a view; None if one of them is no view."""
    found: list[Rung] = []
    for *_, made in reversed(steps):
        view = tensor._view
        if type(view) is not View or view.op is None or tensor._storage is not root._storage:
            return None
        found.append(Rung(tensor._offset - root._offset, tensor._shape, tensor._strides,
                          tensor._dtype, view.op, view.attributes, made))
        tensor = view.parent
    return (sizes, found[::-1]) if tensor is root else None


def _climbed(root: Tensor, rungs: Sequence[Rung]) -> Any:
    """Return the view at the end of a ladder, as dispatch makes it."""
    root._view = family = AliasFamily()
    tensor: Any = root
    version = root._storage.version
    for rung in rungs:
        parent = tensor
        if parent is not root:
            parent._view.viewed = True
        tensor = make(root._storage, root._offset + rung.offset, rung.shape, rung.strides,
                      rung.dtype, root._device)
        tensor._view = view = View(parent, rung.op, (), rung.attributes, family)
        view.origin, view.output = rung.made.origin, rung.made.output
        view.version = version - rung.made.missed
    return tensor


def follow(tensor: Any, steps: int) -> None:
    """Give a view the history of its ancestor, `steps` views above."""
    x = tensor
    for _ in range(steps):
        x._view.generation = -1
        x = x._view.parent
    refresh(tensor)


def order_of(results: Sequence[ResultTensor]) -> list[int]:
    """Return the numbers of the results to make, each after those that it depends on."""
    found: dict[int, None] = {}

    def add(number: int) -> None:
        if number >= 0 and results[number].own_output() < 0 and number not in found:
            for other in (results[number].depends(), *results[number].operands()):
                add(other)
            found[number] = None

    for number in range(len(results)):
        add(number)
    return list(found)


@dataclass
class Line:
    """Chain from a tensor to a view of it.

    tensors  the view first, then the views between it and the parent, which are no results
    shared   its history is the parent's, seen through the views
    """

    parent: Tensor
    tensors: list[Tensor]
    shared: bool = False

    def steps(self, numbers: Callable[[tuple], list[int]]) -> list[Step]:
        """Return the steps from the parent on.

        numbers  gives the numbers of the results that are a view's further operands
        """
        return [(op, numbers(operands), attributes, _made(x))
                for x in reversed(self.tensors)
                for op, operands, attributes in x._traced.views[-1:]]

    def renew(self) -> None:
        """Forget the history of the views between, and follow the parent's new one if it is
        shared."""
        for x in self.tensors[1:]:
            x._node, x._output_nr, x._requires_grad = None, 0, False
            x._view.generation = -1
        if self.shared:
            follow(self.tensors[0], len(self.tensors))


@dataclass
class Lines:
    """Results that are views of something, by id.

    Parents that nobody holds are added to the results. So are tensors that views take as operands
    where only the program knows the value, such as an index.
    """

    tracer: Any
    results: list[Tensor]
    apart: set[FunctionalStorage]  # memory that may be another's if a flag holds: no lines there
    lines: dict[int, Line] = field(default_factory=dict)
    places: dict[Value, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shown = {id(x) for x in self.results}
        for x in list(self.results):
            line = self._line(x, shown)
            if line is not None:
                self.lines[id(x)] = line
                line.shared = _is_shared(line)
        hidden = {id(line.parent): line.parent for line in self.lines.values()
                  if line.parent._traced is not None and id(line.parent) not in shown}
        for line in self.lines.values():
            line.shared = line.shared and id(line.parent) not in hidden
        self.results += hidden.values()
        for line in self.lines.values():
            for x in line.tensors:
                self.places |= zip(x._traced.views[-1][1], x._view.operands)
        for x in self.results:
            for v in [v for _, operands, _ in x._traced.views for v in operands]:
                if v not in self.places:
                    self.places[v] = self.tracer.tensor_of(v)
        self.results += self.places.values()
        while lent := [line for line in self.lines.values() if line.shared and self._lent(line)]:
            for line in lent:
                line.shared = False

    def _lent(self, line: Line) -> bool:
        """Return True if the history of another result, which is no such view, leads through this
        view's node.

        The history is cut at the node, so that gradients arrive at the view.
        """
        view = grad_fn_of(line.tensors[0])
        todo = [node for node in (grad_fn_of(x) for x in self.results if not self.shares(x))
                if node is not None]
        seen = set(todo)
        while todo:
            for edge in todo.pop().edges:
                if edge is not None and edge[0].sequence >= self.tracer.first_node:
                    if edge[0] is view:
                        return True
                    if edge[0] not in seen:
                        seen.add(edge[0])
                        todo.append(edge[0])
        return False

    def _line(self, tensor: Tensor, shown: set[int]) -> Line | None:
        found: list[Tensor] = []
        x = tensor
        while type(x._view) is View and x._traced is not None and (not found or id(x) not in shown):
            at, above = x._traced, self._traced(x._view.parent)
            if above is None or not _follows(at, above) or at.memory in self.apart:
                return None
            found.append(x)
            x = x._view.parent
        return Line(x, found) if found else None

    def _traced(self, tensor: Tensor) -> FunctionalTensor | None:
        known = self.tracer.lifted.get(id(tensor))
        return tensor._traced if known is None else known.traced

    def between(self) -> list[Tensor]:
        """Return the tensors that are no results, but lie between one and its parent."""
        found = {id(x): x for line in self.lines.values() for x in line.tensors[1:]}
        return list(found.values())

    def of(self, tensor: Tensor) -> Line | None:
        return self.lines.get(id(tensor))

    def shares(self, tensor: Tensor) -> bool:
        """Return True if a result's history is that of the tensor it is a view of."""
        line = self.of(tensor)
        return line is not None and line.shared

    def renew(self, order: list[int]) -> None:
        """Let views follow, now that their parents have their history. `order`: numbers of the
        results."""
        for line in filter(None, (self.of(self.results[k]) for k in order)):
            line.renew()


def _made(x: Tensor) -> CreationMeta:
    view: Any = x._view
    return CreationMeta(view.origin, view.output, x._traced.memory.version - view.version)


def _follows(at: FunctionalTensor, above: FunctionalTensor) -> bool:
    """Return True if the last view of `at` leads to it from `above`."""
    return (at.memory is above.memory and len(at.views) == len(above.views) + 1
            and all(a is b for a, b in zip(at.views, above.views)))


def _is_shared(line: Line) -> bool:
    """Return True if only views without hooks lie between a tensor and its parent on the tape."""
    for x in line.tensors:
        node, parent = grad_fn_of(x), x._view.parent
        if not (isinstance(node, OpNode) and node.op is x._view.op and node.extras is None
                and x._requires_grad and parent._requires_grad
                and node.edges[0] == edge_of(parent)):
            return False
    return True
