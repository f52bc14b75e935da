"""Nodes of graphs of calls, and maps over their arguments; PyTorch's `torch.fx.node`."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import tracejit
from tracejit.fx.immutable_collections import immutable_dict, immutable_list
from tracejit.fx.naming import public_name, qualified_name, type_repr

if TYPE_CHECKING:
    from tracejit.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
BaseArgumentTypes = (str, int, float, bool, complex, type(None), type(...))

_legal_ops = ("call_function", "call_method", "call_module", "get_attr", "output", "placeholder",
              "root")
_side_effectful_functions: set[Any] = {
    tracejit._assert, tracejit._assert_async, operator.setitem, builtins.print}
_RANDOM = frozenset("""bernoulli rand rand_like randint randint_like randn randn_like randperm
normal multinomial poisson manual_seed""".split())


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function: its calls stay in graphs where nothing uses their results.

    >>> has_side_effect(print) is print
    True
    """
    _side_effectful_functions.add(fn)
    return fn


class Node:
    """One call, argument, attribute or result of a graph.

    op       "placeholder", "get_attr", "call_function", "call_method", "call_module", "output"
    name     its name in code, unique in the graph
    target   the function, or the name of the method, module, attribute or argument
    args, kwargs  what the call is given; other nodes among it stand for their results
    users    the nodes that use this one: keys of a dict, in order
    type     the annotation, or None
    meta     notes of passes

    >>> import tracejit
    >>> from tracejit.fx import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(tracejit.relu, (x,))
    >>> y.op, y.name, y.args, list(x.users)
    ('call_function', 'relu', (x,), [relu])
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Target, args: tuple,
                 kwargs: dict[str, Any], return_type: Any = None) -> None:
        assert op in _legal_ops, f"op '{op}' is not in _legal_ops"
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type"
                                 f" {type(target).__name__} but a Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                             f"{type(target).__name__} but a str is expected")
        self.graph, self.name, self.op, self.target, self.type = (
            graph, name, op, target, return_type)
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self.meta: dict[str, Any] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    # -- order -------------------------------------------------------------------------------
    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node in front of this one."""
        assert self.graph == x.graph, "Attempting to move a Node into a different Graph"
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Move a node behind this one."""
        if x is not self:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def _is_before(self, other: Node) -> bool:
        node = self._next
        while node is not other and node.op != "root":
            node = node._next
        return node is other

    __lt__ = _is_before

    def __gt__(self, other: Node) -> bool:
        return other._is_before(self)

    # -- arguments ---------------------------------------------------------------------------
    @property
    def args(self) -> tuple:
        """Positional arguments. They change by assignment."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments by name. They change by assignment."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
        """Take arguments, and tell the nodes among them who uses them."""
        inputs: dict[Node, None] = {}

        def noted(node: Node) -> Node:
            inputs[node] = None
            return node

        new_args = map_arg(tuple(args), noted)
        new_kwargs = map_arg(dict(kwargs), noted)
        for node in self._input_nodes:
            node.users.pop(self, None)
        for node in inputs:
            node.users[self] = None
        self._args, self._kwargs, self._input_nodes = new_args, new_kwargs, inputs

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace a positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument."""
        assert 0 <= idx <= len(self.args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add an argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(self, replace_with: Node,
                              delete_user_cb: Callable[[Node], bool] | None = None, *,
                              propagate_meta: bool = False) -> list[Node]:
        """Let all users of this node use another, and return them.

        delete_user_cb  False for a user that keeps what it has
        propagate_meta  the other node, which has no notes yet, gets those of this one
        """
        if propagate_meta:
            assert not replace_with.meta, (
                "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                "replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use one node in place of another."""
        def replaced(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, replaced), map_arg(self.kwargs, replaced))

    # -- questions ---------------------------------------------------------------------------
    def is_impure(self, impure_random: bool = True) -> bool:
        """Return True if the node does something besides computing its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions:
                return True
            return impure_random and _is_random(self.target)
        if self.op == "call_module":
            assert self.graph.owning_module is not None, (
                "self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(str(self.target))
            return getattr(module, "_is_impure", False)
        return False

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that made the node, if its tracer recorded them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._names.create_name(candidate, None)
            self.graph._names.rename(self, self.name)

    def __repr__(self) -> str:
        return self.name

    def format_node(self, placeholder_names: list[str] | None = None,
                    maybe_return_typename: list[str] | None = None, *,
                    include_tensor_metadata: bool = False) -> str | None:
        """Return the node as a line; the two lists take what the graph's own line says.

        >>> from tracejit.fx import Graph
        >>> Graph().placeholder("x").format_node()
        '%x : [num_users=0] = placeholder[target=x]'
        """
        typed = f"{type_repr(self.type)} " if self.type else ""
        start = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}[target="
        if self.op == "placeholder":
            assert isinstance(self.target, str)
            if placeholder_names is not None:
                kind = f" : {type_repr(self.type)}" if self.type else ""
                placeholder_names.append(f"{self.target}{kind}")
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{start}{self.target}]{default}"
        if self.op == "get_attr":
            return f"{start}{shown_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (f"{start}{shown_target(self.target)}](args = {shown_argument(self.args)}, "
                f"kwargs = {shown_argument(self.kwargs)})")


def _is_random(target: Any) -> bool:
    name = public_name(target)
    return name is not None and name.rpartition(".")[2] in _RANDOM


def shown_target(target: Any) -> str:
    """Return a target as a line of a graph shows it.

    >>> import operator
    >>> shown_target(operator.add), shown_target(len), shown_target("a.b")
    ('operator.add', 'builtins.len', 'a.b')
    """
    if isinstance(target, str):
        return target
    if getattr(target, "__module__", None) in ("_operator", "math", "builtins"):
        return f"{target.__module__.removeprefix('_')}.{target.__name__}"
    return qualified_name(target)


def shown_argument(arg: Any) -> str:
    """Return an argument as a line of a graph shows it.

    >>> shown_argument(["a", (1,), {"k": None}])
    '[a, (1,), {k: None}]'
    """
    if isinstance(arg, Node):
        return f"%{arg.name}"
    if isinstance(arg, list):
        return f"[{', '.join(map(shown_argument, arg))}]"
    if isinstance(arg, tuple) and not hasattr(arg, "_fields"):
        items = ", ".join(map(shown_argument, arg))
        return f"({items}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {shown_argument(value)}' for key, value in arg.items())}}}"
    if isinstance(arg, (types.FunctionType, types.BuiltinFunctionType, type)):
        return shown_target(arg)
    return str(arg)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Return arguments with `fn(node)` in the place of each node.

    >>> from tracejit.fx import Graph
    >>> x = Graph().placeholder("x")
    >>> map_arg((x, [x, 1]), lambda node: node.name)
    ('x', ['x', 1])
    """
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Return arguments with `fn(x)` in the place of each thing that is no container.

    >>> map_aggregate((1, {"k": [2]}), str)
    ('1', {'k': ['2']})
    """
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)
