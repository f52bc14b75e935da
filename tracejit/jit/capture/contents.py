"""Contents of containers, read and stored without running the user's methods.

In: lists, deques, tuples, dicts and sets, of classes derived from them too. Out: their elements,
keys and length; stores. Called by the state walk, guards and effects: looking at a source must
change nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from tracejit.jit.capture.dynamic_names import is_user_class
from tracejit.jit.capture.fingerprint import is_mutable_class
from tracejit.jit.capture.looking import bases_of, class_attribute, names_in

_READERS = ("__getitem__", "__len__", "__iter__")
_MISSING = object()


def kind_of_container(cls: type) -> Any:
    """Return the class of Python's own that a container's class is or derives from.

    >>> import collections
    >>> kind_of_container(collections.Counter)
    <class 'dict'>
    """
    return (next(base for base in bases_of(cls) if not is_mutable_class(base))
            if is_mutable_class(cls) else cls)


def reads_itself(cls: type) -> bool:
    """Return True if a container's class overrides a method by which it is read."""
    kind = kind_of_container(cls)
    return any(class_attribute(cls, name) is not class_attribute(kind, name) for name in _READERS)


def hashes_plainly(key: Any) -> bool:
    """Return True if `hash(key)` runs no method of the user's."""
    owner = next(c for c in bases_of(type(key)) if "__hash__" in names_in(c))
    return not is_user_class(owner)


def item(container: Any, key: Any) -> Any:
    """Return `container[key]` without running `__missing__`; raise KeyError if there is none."""
    kind = kind_of_container(type(container))
    if not issubclass(kind, dict):
        return kind.__getitem__(container, key)
    if hashes_plainly(key):
        found = kind.get(container, key, _MISSING)
    else:  # the user's `__hash__` must not run: find the key by identity
        found = next((x for k, x in kind.items(container) if k is key), _MISSING)
    if found is _MISSING:
        raise KeyError(key)
    return found


def length(container: Any) -> int:
    """Return the number of elements."""
    return kind_of_container(type(container)).__len__(container)


def elements(container: Any) -> tuple:
    """Return the elements of a list, tuple or set; the keys of a dict."""
    return tuple(kind_of_container(type(container)).__iter__(container))


def items(container: dict) -> list[tuple]:
    """Return the (key, value) pairs of a dict."""
    return list(kind_of_container(type(container)).items(container))


def put(container: Any, key: Any, value: Any) -> None:
    """Set `container[key] = value`."""
    kind_of_container(type(container)).__setitem__(container, key, value)


def refill_sequence(container: Any, values: Sequence[Any]) -> None:
    """Replace the elements of a list or a deque."""
    kind = kind_of_container(type(container))
    if kind is deque:
        deque.clear(container)
        deque.extend(container, values)
    else:
        kind.__setitem__(container, slice(None), values)


def _same_key(one: Any, other: Any) -> bool:
    """Return True if two keys are one or equal; hashes go first, as `==` of tensors is a tensor."""
    return one is other or hash(one) == hash(other) and one == other


def refill_dict(container: dict, entries: dict) -> None:
    """Replace the entries of a dict by these, in this order."""
    kind = kind_of_container(type(container))
    keys = elements(container)
    # Old keys that come first, in the same order, may stay where they are.
    if len(entries) < len(keys) or not all(map(_same_key, keys, entries)):
        kind.clear(container)
    for key, value in entries.items():
        kind.__setitem__(container, key, value)
