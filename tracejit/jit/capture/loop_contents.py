"""Items of lists and dicts from before a loop that its body assigns: `s[k] = ...`, `d["h"] += ...`.

In: the containers that an earlier attempt saw written. Out: while the body is recorded, the
containers themselves hold placeholders, so each name and attribute that leads to one finds them.
After the loop they hold its results. Keys and length stay, or one iteration runs outside. Called by
`loop_body.py`, `loop_region.py` and `loops.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.access_path import key_of
from tracejit.jit.capture.looking import is_a, is_exactly
from tracejit.jit.capture.loop_attempts import WrittenContainer
from tracejit.jit.capture.rolled import StackedList
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.tree import number_kind, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from tracejit.jit.capture.loop_body import LoopBodyTrace

OUTER_ITEM = "it assigns an item of an outer object"


class Contents:
    """Contents of a container before the loop, and the name of each item as a carried variable."""

    def __init__(self, container: Any, label: str):
        self.container, self.label = container, label
        self.before = _items(container)
        self.names = {key: f"{label}[{key!r}]" for key in self.before}
        self.starts = dict(self.before)  # what the container holds as an iteration starts

    def start(self, body: LoopBodyTrace) -> None:
        """Put placeholders into the container."""
        for key, value in self.before.items():
            name = self.names[key]
            if number_kind(value) is not None and body.is_lifted(name):
                self.starts[key] = body.start_number(name, value)
                continue
            leaves: list[Tensor] = []
            spec = tree_flatten(value, leaves)
            starts = body.start_tensors(name, value, spec, leaves)
            if starts:
                self.starts[key] = tree_unflatten(spec, iter(starts))
        _fill(self.container, self.starts)

    def finish(self, body: LoopBodyTrace) -> None:
        """Compare with what the container holds after the iteration."""
        after = _items(self.container)
        if [*after] != [*self.before]:
            raise body.peel(f"{self.label} has other keys after an iteration")
        for key, value in after.items():
            name = self.names[key]
            if value is self.starts[key]:
                body.unchanged(name)
            else:
                body.compare(name, self.before[key], value)

    def restore(self) -> None:
        """Put back what the container held."""
        _fill(self.container, self.before)

    def store(self, found: dict[str, Any]) -> None:
        """Store the values after the loop; `found`: those of the items that changed, by name."""
        for key, name in self.names.items():
            if name in found:
                self.container[key] = found[name]


def contents_of(body: LoopBodyTrace, variables: dict[str, Any]) -> Iterator[Contents]:
    """Yield the contents of the containers that the body writes. `variables`: what names hold."""
    labels = {id(value): name for name, value in reversed(variables.items())}
    for place in body.written:
        kind = "dict" if type(place.container) is dict else "list"
        unnamed = sum(label.startswith(f"outer {kind}") for label in labels.values())
        number = f" {unnamed + 1}" if unnamed else ""
        label = labels.setdefault(id(place.container), f"outer {kind}{number}")
        yield Contents(place.container, label)


def may_write_item(tracer: Any, container: Any, key: Any) -> bool:
    """Return True if the loop that is recorded carries the contents of a list or dict from before
    it. Raise `WrittenContainer` if it may learn to; return False if it may not."""
    if not _is_fixed(container, key):
        return False
    missing = None  # the outermost loop that does not know of it, and its container
    while getattr(tracer, "body", None) is not None and not tracer.is_created_here(container):
        container = tracer.body.original(container)
        if any(place.container is container for place in tracer.body.written):
            break
        missing, tracer = (tracer.body, container), tracer.parent
    else:
        if tracer.root is not tracer and not tracer.is_created_here(container):
            return False  # a branch decides if it is written
    if missing is not None:
        raise WrittenContainer(*missing, OUTER_ITEM)
    return True


def _is_fixed(container: Any, key: Any) -> bool:
    """Return True for an item that is the same in each iteration."""
    if type(container) is dict:
        return key_of(key) is key
    if not is_exactly(container, (list, StackedList)) or getattr(container, "_tail", None):
        return False
    return type(key.concretize() if is_a(key, SymNumber) else key) is int


def _items(container: Any) -> dict[Any, Any]:
    return dict(container) if type(container) is dict else dict(enumerate(list.__iter__(container)))


def _fill(container: Any, items: dict[Any, Any]) -> None:
    if type(container) is dict:
        container.clear()
        container.update(items)
    else:
        list.__setitem__(container, slice(None), [*items.values()])
