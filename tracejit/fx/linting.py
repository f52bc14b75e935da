"""Checks of graphs: `Graph.lint`, and targets that the module lacks."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.tensor import Tensor
from tracejit.nn.module import Module

if TYPE_CHECKING:
    from tracejit.fx.graph import Graph
    from tracejit.fx.node import Node


def check_graph(graph: Graph) -> None:
    """Raise RuntimeError if an argument is of another graph, or comes later, or names repeat.

    ValueError or RuntimeError for targets that are of the wrong type, or that the module lacks.
    """
    seen: set[Node] = set()
    names: set[str] = set()
    for node in graph.nodes:
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        for arg in node.all_input_nodes:
            _check_argument(graph, node, arg, seen)
        seen.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
    if graph.owning_module is not None:
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _check_path(graph.owning_module, node)


def _check_argument(graph: Graph, node: Node, arg: Node, seen: set[Node]) -> None:
    if arg.graph is not graph:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an "
            "argument! If you are copying nodes from another graph, make sure to use "
            f"``arg_transform`` on node_copy() to remap values\n{graph}")
    if arg not in seen:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check "
            f"that Nodes in the graph are topologically ordered\n{graph}")


def _check_path(module: Any, node: Node) -> None:
    """Walk the path of a target, and say where it ends."""
    atoms = str(node.target).split(".")
    found = module
    for k, atom in enumerate(atoms):
        above = ".".join(atoms[:k])
        if not hasattr(found, atom):
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute "
                               f"{atom} of {above}")
        found = getattr(found, atom)
        if node.op == "call_module" and not isinstance(found, Module):
            raise RuntimeError(f"Node {node} target {node.target} {atom} of {above} does not "
                               "reference an nn.Module")
        if node.op == "get_attr" and k == len(atoms) - 1 and not isinstance(
                found, (Module, Tensor)):
            warnings.warn(f"Node {node} target {node.target} {atom} of {above} does not reference "
                          "an nn.Module, nn.Parameter, or buffer, which is what 'get_attr' Nodes "
                          "typically target", stacklevel=4)


def check_target(module: Any, path: str) -> None:
    """Warn if a module has no attribute at a path."""
    if not has_path(module, path):
        warnings.warn(
            "Attempted to insert a get_attr Node with no underlying reference in the owning "
            "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
            "GraphModule.add_parameter to add the necessary Parameter, or "
            "nn.Module.register_buffer to add the necessary buffer", stacklevel=3)


def has_path(module: Any, path: str) -> bool:
    """Return True if a module has an attribute at a path.

    >>> has_path(Module(), "training.real"), has_path(Module(), "0.weight")
    (True, False)
    """
    try:
        attrgetter(path)(module)
    except AttributeError:
        return False
    return True
