"""Graphs run node by node; PyTorch's `torch.fx.interpreter`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracejit.fx.graph import Graph
from tracejit.fx.graph_module import GraphModule
from tracejit.fx.node import Argument, Node, Target, map_aggregate, map_arg
from tracejit.fx.proxy import Proxy
from tracejit.fx.tracer import Tracer
from tracejit.nn.module import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph, one method for each op. Subclasses change what a node does.

    garbage_collect_values  values are dropped after their last use
    graph                   another graph than the module's

    >>> import tracejit
    >>> traced = tracejit.fx.symbolic_trace(lambda x: tracejit.relu(x) + 1)
    >>> class Loud(Interpreter):
    ...     def run_node(self, n):
    ...         print(n.name)
    ...         return super().run_node(n)
    >>> Loud(traced).run(tracejit.tensor([-1.0]))
    x
    relu
    add
    output
    tensor([1.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True,
                 graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None,
            enable_io_processing: bool = True) -> Any:
        """Run all nodes and return the output's value.

        initial_env           values that nodes have already
        enable_io_processing  arguments and result go through the graph's code generator
        """
        self.env = {} if initial_env is None else dict(initial_env)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _tell_node(error, node)
                raise
            for used in self.user_to_last_uses.get(node, ()):
                self.env.pop(used, None)
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run all nodes with the arguments of a list, which is emptied."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Run one node: call the method that its op names."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # -- ops -----------------------------------------------------------------------------------
    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the next argument, or its default."""
        assert isinstance(target, str)
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was "
                               "not passed in!") from None

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        assert isinstance(target, str)
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        assert not isinstance(target, str)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        owner, *rest = args
        assert isinstance(target, str)
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        assert isinstance(target, str)
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the result."""
        return args[0]

    # -- values --------------------------------------------------------------------------------
    def fetch_attr(self, target: str) -> Any:
        """Return the attribute of the module at a path; RuntimeError if there is none."""
        found: Any = self.module
        atoms = target.split(".")
        for k, atom in enumerate(atoms):
            if not hasattr(found, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[:k + 1])}")
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """Return a node's arguments with values in the place of nodes."""
        args, kwargs = self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)
        assert isinstance(args, tuple) and isinstance(kwargs, dict)
        return args, kwargs

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Return arguments with values in the place of nodes; RuntimeError for those without."""
        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run Graph.lint()"
                                   " to diagnose such issues")
            return self.env[node]

        return map_arg(args, value)


def _tell_node(error: Exception, node: Node) -> None:
    """Add to an error's message which node ran."""
    text = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
    said = f"{error.args[0]}\n\n{text}" if error.args else text
    error.args = (said, *error.args[1:])


class Transformer(Interpreter):
    """Runs a graph with proxies, which makes another graph. Subclasses change what becomes of ops.

    >>> import tracejit
    >>> class Negating(Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = tracejit.neg if target is tracejit.sigmoid else target
    ...         return super().call_function(target, args, kwargs)
    >>> traced = tracejit.fx.symbolic_trace(lambda x: tracejit.sigmoid(x))
    >>> [node.name for node in Negating(traced).transform().graph.nodes]
    ['x', 'neg', 'output']
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        made = self.new_graph

        class TransformerTracer(Tracer):
            def __init__(self) -> None:
                super().__init__()
                self.graph = made
                self.tensor_attrs = {}

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer()
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """Return the proxy of an argument."""
        assert isinstance(target, str)
        return Proxy(self.new_graph.placeholder(target, None, *args), self.tracer)

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """Return the proxy of an attribute."""
        assert isinstance(target, str)
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Make a node of a call of a submodule."""
        assert isinstance(target, str)
        return self.tracer.call_module(self.fetch_attr(target), self.fetch_attr(target).forward,
                                       args, kwargs)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Make a node of a call of a function."""
        assert callable(target)
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the module of the new graph."""
        result = self.run(enable_io_processing=False)
        if result is not None:
            def node(x: Any) -> Any:
                return x.node if isinstance(x, Proxy) else x

            last = self.graph.output_node()
            made = self.new_graph.output(map_aggregate(result, node), last.type)
            made.meta = dict(last.meta)
        return GraphModule(self.module, self.new_graph, self.module._get_name())
