"""Graphs of calls: nodes in order, and the changes that transformations make; PyTorch's
`torch.fx.graph`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracejit.fx.code import (  # noqa: F401 - programs find them here
    CodeGen,
    PythonCode,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
)
from tracejit.fx.linting import check_graph, check_target
from tracejit.fx.naming import Namespace as _Namespace
from tracejit.fx.naming import name_of_target
from tracejit.fx.node import Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from tracejit.fx.graph_module import GraphModule
    from tracejit.fx.proxy import TracerBase

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _InsertPoint:
    """Place for new nodes, until the block ends."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """Nodes of a graph in order: what a transformation may erase while it walks."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        assert direction in ("_next", "_prev")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """Calls in order, from placeholders to the output.

    >>> import tracejit
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(tracejit.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=tracejit.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: GraphModule | None = None,
                 tracer_cls: type[TracerBase] | None = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._names = _Namespace()
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen: CodeGen = CodeGen()

    # -- reading -----------------------------------------------------------------------------
    @property
    def nodes(self) -> _node_list:
        """The nodes in order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the node of the result, which is the last one."""
        node = self._root.prev
        assert node.op == "output"
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Any]:
        """Return the nodes of an op; of the op "call_function" those of a target.

        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> graph.find_nodes(op="placeholder")
        [x]
        """
        if op == "call_function":
            assert target is not None
        return [n for n in self.nodes
                if n.op == op and (target is None or n.target == target)]

    def lint(self) -> None:
        """Raise if the graph is not well formed: order, owners, names, targets."""
        check_graph(self)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(str(n.format_node()) for n in self.nodes)])

    def print_tabular(self) -> None:
        """Print a table of the nodes; wants the package `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on "
                  "this machine. Run `pip install tabulate` to install the library.")
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # -- new nodes ---------------------------------------------------------------------------
    def create_node(self, op: str, target: Target, args: tuple | None = None,
                    kwargs: dict[str, Any] | None = None, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """Add a node at the insert point."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        assert isinstance(args, tuple), "args must be a tuple"
        assert isinstance(kwargs, dict), "kwargs must be a dict"
        wish = name if name is not None else self._target_to_str(target)
        node = Node(self, self._names.create_name(wish, None), op, target, args, kwargs, type_expr)
        self._names.associate_name_with_obj(node.name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Target | None) -> str:
        return name_of_target(target)

    def placeholder(self, name: str, type_expr: Any = None,
                    default_value: Any = inspect.Signature.empty) -> Node:
        """Add an argument of the function, maybe with a default."""
        given = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, given, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a read of an attribute of the module."""
        module = self.owning_module
        if module is not None:
            check_target(module, qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple | None = None,
                    kwargs: dict[str, Any] | None = None, type_expr: Any = None) -> Node:
        """Add a call of a submodule."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)  # raises if there is none
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: tuple | None = None,
                    kwargs: dict[str, Any] | None = None, type_expr: Any = None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple | None = None,
                      kwargs: dict[str, Any] | None = None, type_expr: Any = None,
                      name: str | None = None) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add what the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # -- copies ------------------------------------------------------------------------------
    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x,
                  ) -> Node:
        """Add a copy of a node, maybe of another graph, whose nodes are mapped to those of this."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        assert isinstance(args, tuple) and isinstance(kwargs, dict)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node],
                   return_output_node: bool = False) -> Argument | None:
        """Add copies of all nodes of a graph but the output; return what it would return.

        val_map  takes the copy of each node; nodes that it has already are not copied
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = copied
        copied._codegen = self._codegen.copy()
        known: dict[Node, Node] = {}
        found = copied.graph_copy(self, known, return_output_node=True)
        for node, twin in known.items():
            memo[id(node)] = twin
        if found is not None:
            result, node = found
            end = copied.output(result, node.type)
            end.meta = dict(node.meta)
            memo[id(node)] = end
        return copied

    # -- changes -----------------------------------------------------------------------------
    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses; RuntimeError for others."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had "
                               f"{len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase.graph != self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        following = to_erase._next, to_erase._prev
        to_erase._unlink()
        # a walk that is at the node goes on behind it
        to_erase._next, to_erase._prev = following
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes before this one, or at the beginning, within a `with` block."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph == self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes behind this one, or at the end, within a `with` block."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph == self, "Node to insert after is not in graph."
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes whose results nothing uses; return True if there were any.

        is_impure_node  True for a node that stays; without it those with `Node.is_impure()`
        """
        self.lint()
        stays = Node.is_impure if is_impure_node is None else is_impure_node
        erased = False
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
                erased = True
        return erased

    # -- code --------------------------------------------------------------------------------
    def python_code(self, root_module: str, *, verbose: bool = False, **shown: Any) -> PythonCode:
        """Return the graph as the text of a function.

        root_module  the name that attributes and modules are found under: "self"
        verbose      comments tell the lines of the program that made the nodes

        >>> graph = Graph()
        >>> _ = graph.output(graph.call_method("exp", (graph.placeholder("x"),)))
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            exp = x.exp();  x = None
            return exp
        """
        return self._codegen._gen_python_code(
            self.nodes, root_module, _Namespace(), verbose=verbose, **shown)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Replace what writes the graph's code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of placeholders for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return what a call returns, by the output's value."""
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Replace the function that changes the lines of code: `make_transformer(the last one)`.

        The result is a context that takes the change back.
        """
        last = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(last)

        @contextmanager
        def taken_back() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = last

        return taken_back()
