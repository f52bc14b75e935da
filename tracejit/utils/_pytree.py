"""Trees of containers: `tree_flatten` gives leaves and a structure, `tree_unflatten` the tree
again.

In: nested lists, tuples, dicts, named tuples, and types that were registered. Out: leaves in order
and a `TreeSpec`. Anything else, None too, is a leaf.

>>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
>>> leaves
[1, 2, 3]
>>> tree_unflatten([x * 10 for x in leaves], spec)
{'a': 10, 'b': (20, [30])}
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any, NamedTuple

from tracejit.core.eager.size import Size
from tracejit.core.ops import sealing as _sealing


@dataclass(frozen=True)
class SequenceKey:
    """Step down a path: a place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the element there."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """Step down a path: a key of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the value there."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """Step down a path: a field of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the field's value."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """Functions that flatten and unflatten nodes of a type."""

    type: Any
    flatten_fn: Callable[[Any], tuple[Any, Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


def _mapping(cls: Any, flatten: Callable[[Any], Any], unflatten: Callable[..., Any]) -> NodeDef:
    def keyed(tree: Any) -> tuple:
        values, context = flatten(tree)
        return [(MappingKey(key), value) for key, value in zip(tree, values)], context

    return NodeDef(cls, flatten, unflatten, keyed)


def _sequence(cls: Any, context: Callable[[Any], Any], unflatten: Callable[..., Any]) -> NodeDef:
    return NodeDef(
        cls, lambda tree: (list(tree), context(tree)), unflatten,
        lambda tree: ([(SequenceKey(k), x) for k, x in enumerate(tree)], context(tree)))


_NAMED = NodeDef(
    namedtuple,
    lambda tree: (list(tree), type(tree)),
    lambda children, cls: cls(*children),
    lambda tree: ([(GetAttrKey(name), x) for name, x in zip(tree._fields, tree)], type(tree)),
)


Context = PyTree = Any
_MAPPINGS = (dict, OrderedDict, defaultdict)
SUPPORTED_NODES: dict[Any, NodeDef] = {
    list: _sequence(list, lambda tree: None, lambda children, context: list(children)),
    tuple: _sequence(tuple, lambda tree: None, lambda children, context: tuple(children)),
    Size: _sequence(Size, lambda tree: None, lambda children, context: Size(children)),
    deque: _sequence(deque, lambda tree: tree.maxlen,
                     lambda children, most: deque(children, maxlen=most)),
    dict: _mapping(dict, lambda tree: (list(tree.values()), list(tree)),
                   lambda children, keys: dict(zip(keys, children))),
    OrderedDict: _mapping(OrderedDict, lambda tree: (list(tree.values()), list(tree)),
                          lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: _mapping(
        defaultdict, lambda tree: (list(tree.values()), [tree.default_factory, list(tree)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children))),
    namedtuple: _NAMED,
}  # fmt: skip

# What classes derived from dict are registered with.
_, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict]


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Let instances of a class be nodes: `flatten_fn` gives (children, context) of one.

    Arguments about saving structures are accepted and not used. Raises ValueError for a class that
    is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _get_node_type(tree: Any) -> Any:
    cls = type(tree)
    # A registered named tuple keeps its own functions.
    if cls not in SUPPORTED_NODES and cls.__bases__ == (tuple,) and isinstance(
            getattr(cls, "_fields", None), tuple):
        return namedtuple  # stands for all of them
    return cls


class TreeSpec:
    """Structure of a tree: the type of a node, what else the type needs, and the specs of its
    children.

    type, context None for a leaf num_leaves, num_nodes, num_children
    """

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self._children = type, context, children_specs
        leaf = type is None
        self.num_leaves: int = 1 if leaf else sum(c.num_leaves for c in children_specs)
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children_specs)
        self.num_children = len(children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def __repr__(self) -> str:
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.is_leaf():
            return "*"
        indent += 2
        inner = (",\n" + " " * indent).join(c._shown(indent) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        # Not the leaf counts: they follow from the children.
        return (self.type is other.type and self.context == other.context
                and self._children == other._children)

    def __hash__(self) -> int:
        # Contexts are lists of keys, which have no hash.
        return hash((self.type, repr(self.context), tuple(self._children)))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return a tree of this structure. ValueError for too few leaves, or too many."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(given)} but "
                             "the spec refers to a pytree that holds "
                             f"{self.num_leaves} items ({self}).")
        return self._made(iter(given))

    def _made(self, leaves: Iterator[Any]) -> Any:
        if self.is_leaf():
            return next(leaves)
        children = [c._made(leaves) for c in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of a tree at the places of this structure's leaves.

        Raises ValueError where the tree has another structure above them.
        """
        if self.is_leaf():
            return [tree]
        return [leaf for spec, child in zip(self._children, self._matching(tree))
                for leaf in spec.flatten_up_to(child)]

    def _matching(self, tree: Any) -> list[Any]:
        found = _get_node_type(tree)
        # Mappings of different types match by key, as in PyTorch, in whatever order.
        if self.type in _MAPPINGS and found in _MAPPINGS:
            return self._matching_items(tree)
        if found is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {found!r}.")
        children, context = SUPPORTED_NODES[found].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got "
                             f"{len(children)}.")
        # As in PyTorch, deques of different length limits match.
        if self.type is not deque and context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return children

    def _matching_items(self, tree: Any) -> list[Any]:
        keys = self.context[1] if self.type is defaultdict else self.context
        if len(tree) != len(keys):
            raise ValueError(f"Node arity mismatch; expected {len(keys)}, but got {len(tree)}.")
        if set(tree) != set(keys):
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): "
                             f"{extra}.")
        return [tree[key] for key in keys]


PyTreeSpec = TreeSpec
_LEAF = TreeSpec(None, None, [])


def LeafSpec() -> TreeSpec:
    """Return the structure of a leaf."""
    return _LEAF


_Stop = Callable[[Any], bool] | None


def tree_is_leaf(tree: Any, is_leaf: _Stop = None) -> bool:
    """Return True for a leaf, or a node that `is_leaf` takes for one."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def _flatten(tree: Any, leaves: list[Any], is_leaf: _Stop) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    found = _get_node_type(tree)
    children, context = SUPPORTED_NODES[found].flatten_fn(tree)
    return TreeSpec(found, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: _Stop = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves in order, and the structure."""
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return the tree of these leaves. ValueError for a wrong number, TypeError for no
    structure."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: _Stop = None) -> list[Any]:
    """Return the leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: _Stop = None) -> Iterable[Any]:
    """Return an iterator over the leaves in order."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: _Stop = None) -> TreeSpec:
    """Return the structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _Stop = None) -> Any:
    """Return the same structure with `func(leaf, *parts of the others at its place)` for leaves.

    >>> tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _Stop = None) -> Any:
    """Call `func` on the leaves for its side effects; return the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    # A deque of length 0 runs the map without keeping its results.
    deque(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]), maxlen=0)
    return tree


def _chosen(which: Any) -> Callable[[Any], bool]:
    if isinstance(which, (type, tuple, UnionType)):
        return lambda x: isinstance(x, which)
    if callable(which):
        return which
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def _only(which: Any, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    chosen = _chosen(which)
    return lambda x: func(x) if chosen(x) else x


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any,
                  is_leaf: _Stop = None) -> Any:
    """Map leaves of some types, or those for which a predicate holds; others stay.

    >>> tree_map_only(int, lambda x: -x, [1, "a"])
    [-1, 'a']
    """
    return tree_map(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any,
                   is_leaf: _Stop = None) -> Any:
    """Call `tree_map_` for leaves of some types, or those for which a predicate holds."""
    return tree_map_(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: _Stop = None) -> bool:
    """Return True if `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: _Stop = None) -> bool:
    """Return True if `pred` holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any,
                  is_leaf: _Stop = None) -> bool:
    """Return True if `pred` holds for all leaves of some types.

    >>> tree_all_only(int, lambda x: x > 0, [1, "a"])
    True
    """
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any,
                  is_leaf: _Stop = None) -> bool:
    """Return True if `pred` holds for a leaf of some types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of a call's arguments."""
    return tree_leaves((args, kwargs))


def tree_flatten_with_path(tree: Any, is_leaf: _Stop = None) -> tuple[list[tuple], TreeSpec]:
    """Return (path, leaf) for each leaf, and the structure; a path is a tuple of steps.

    Raises ValueError for a registered type that does not name its children.
    """
    return list(_with_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def _with_paths(path: tuple, tree: Any, is_leaf: _Stop) -> Iterator[tuple]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    found = _get_node_type(tree)
    keyed = SUPPORTED_NODES[found].flatten_with_keys_fn
    if keyed is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {found}. Please pass a "
                         "flatten_with_keys_fn argument to register_pytree_node.")
    for key, child in keyed(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: _Stop = None) -> list[tuple]:
    """Return (path, leaf) for each leaf."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any,
                       is_leaf: _Stop = None) -> Any:
    """Map a function that gets the leaf's path first, as `tree_map` does."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    return spec.unflatten(map(func, paths, leaves, *[spec.flatten_up_to(r) for r in rests]))


def keystr(kp: tuple) -> str:
    """Return a path as text.

    >>> keystr((MappingKey("a"), SequenceKey(0)))
    "['a'][0]"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: tuple) -> Any:
    """Return the part of a tree at a path.

    >>> key_get({"a": [1, 2]}, (MappingKey("a"), SequenceKey(1)))
    2
    """
    for key in kp:
        obj = key.get(obj)
    return obj


_sealing.seal_all(globals())
