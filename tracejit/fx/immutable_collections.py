"""Lists and dicts of a node's arguments, which change only by assignment to the node; PyTorch's
`torch.fx.immutable_collections`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tracejit.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]

_HELP = """object does not support mutation. If you are attempting to modify the kwargs or args \
of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""
_OF_LISTS = """__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove
reverse sort""".split()
_OF_DICTS = "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split()


def _refused(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} {_HELP}")


def _without(names: list[str]) -> Callable[[type], type]:
    """Decorate a class: these methods raise."""
    def decorate(cls: type) -> type:
        for name in names:
            setattr(cls, name, _refused)
        return cls

    return decorate


@_without(_OF_LISTS)
class immutable_list(list):
    """List that does not change.

    >>> immutable_list([1, 2]) == [1, 2]
    True
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


@_without(_OF_DICTS)
class immutable_dict(dict):
    """Dict that does not change.

    >>> immutable_dict(a=1)["a"]
    1
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


_pytree.register_pytree_node(
    immutable_list, lambda x: (list(x), None), lambda children, _: immutable_list(children))
_pytree.register_pytree_node(
    immutable_dict, lambda x: (list(x.values()), list(x)),
    lambda children, keys: immutable_dict(zip(keys, children)))
