"""Modules whose forward is the code of a graph; PyTorch's `torch.fx.graph_module`."""

from __future__ import annotations

import copy
import importlib
import itertools
import linecache
import os
import weakref
from operator import attrgetter
from pathlib import Path
from types import FunctionType
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.fx.code import PythonCode, _PyTreeCodeGen
from tracejit.fx.graph import Graph
from tracejit.fx.linting import has_path
from tracejit.fx.naming import CUSTOM_BUILTINS, qualified_name
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter

__all__ = ["GraphModule", "reduce_graph_module"]

_counter = itertools.count()
_OF_GRAPHS = "graph_modules"  # module of the classes of graphs; there is no file of it


def _forward_from_src(src: str, globals: dict[str, Any]) -> FunctionType:
    """Run the code of a graph and return its function. Its lines can be read as a file's."""
    names = dict(globals)
    filename = f"<eval_with_key>.{next(_counter)}"
    linecache.cache[filename] = len(src), None, src.splitlines(keepends=True), filename
    exec(compile(src, filename, "exec"), names)
    function = names.pop("forward")
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function


def _owner(root: Any, path: str) -> tuple[Any, str]:
    """Return the module that has the last attribute of a path, and the attribute's name."""
    *above, name = path.split(".")
    for atom in above:
        root = getattr(root, atom)
    return root, name


def _put(root: Module, path: str, value: Any) -> None:
    """Set an attribute at a path, with plain modules on the way where there are none."""
    *above, name = path.split(".")
    for atom in above:
        if not isinstance(getattr(root, atom, None), Module):
            setattr(root, atom, Module())
        root = getattr(root, atom)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)


def _copy_attr(source: Any, target: Module, path: str) -> None:
    """Let one module have at a path what another one has there."""
    try:
        owner, name = _owner(source, path)
        value = getattr(owner, name)
    except AttributeError:
        return
    _put(target, path, value)


class GraphModule(Module):
    """Module whose forward makes the calls of a graph. Each has a class of its own.

    root        module, or dict, that has what the graph names; the new module has it, too
    class_name  how it is shown

    `graph` is the graph. Call `recompile()` after changing it.

    >>> import tracejit
    >>> graph = Graph()
    >>> _ = graph.output(graph.call_function(tracejit.neg, (graph.placeholder("x"),)))
    >>> module = GraphModule({}, graph)
    >>> module(tracejit.ones(2))
    tensor([-1., -1.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        plain = next(base for base in cls.__mro__ if "_is_of_one_graph" not in vars(base))

        class GraphModuleImpl(plain):  # type: ignore[misc, valid-type]
            _is_of_one_graph = True

        # The class runs the user's calls, so capture reads it as the user's, not as the package's.
        GraphModuleImpl.__module__ = (
            _OF_GRAPHS if plain.__module__ == __name__ else plain.__module__)
        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph,
                 class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        self.meta: dict[str, Any] = {}
        targets = [str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            self.meta.update(getattr(root, "meta", {}) if isinstance(root, GraphModule) else {})
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that "
                                       "target was not provided in ``root``!")
            for target in sorted(set(targets), key=lambda path: path.count(".")):
                _put(self, target, root[target])
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}

    # -- the graph -------------------------------------------------------------------------------
    @property
    def graph(self) -> Graph:
        """The graph that the module runs. Assignment recompiles."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of the function that runs."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to tracejit")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code again, after the graph has changed."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        made = self._graph.python_code("self")
        self._code = made.src
        cls: Any = type(self)
        cls.forward = _forward_from_src(made.src, made.globals)
        return made

    def print_readable(self, print_output: bool = True, **shown: Any) -> str:
        """Print the code as a class, with the lines of the program, and return it.

        >>> import tracejit
        >>> text = tracejit.fx.symbolic_trace(lambda x: x + 1).print_readable(False)
        >>> text.splitlines()[0]
        'class <lambda>(tracejit.nn.Module):'
        """
        code = self._graph.python_code("self", verbose=True).src.lstrip("\n")
        lines = [f"class {self._get_name()}(tracejit.nn.Module):", *_indented(code)]
        for _, child in self.named_children():
            if isinstance(child, GraphModule):
                lines += ["", *_indented(child.print_readable(False))]
        text = "\n".join(lines) + "\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    # -- submodules ------------------------------------------------------------------------------
    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; return False if something else is on the way."""
        *above, name = target.split(".")
        owner: Any = self
        for atom in above:
            if not hasattr(owner, atom):
                setattr(owner, atom, Module())
            owner = getattr(owner, atom)
            if not isinstance(owner, Module):
                return False
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path; return False if none is there."""
        if not has_path(self, target):
            return False
        owner, name = _owner(self, target)
        if not isinstance(owner, Module) or not isinstance(getattr(owner, name), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not call, nor read an attribute of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                atoms = str(node.target).split(".")
                used.update(".".join(atoms[:k]) for k in range(1, len(atoms) + 1))
                if node.op == "call_module":
                    inside = self.get_submodule(str(node.target)).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inside)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    # -- copies and files ------------------------------------------------------------------------
    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        state = {key: value for key, value in self.__dict__.items() if key != "_graph"}
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(state, memo))
        type(copied).__name__ = "GraphModule"
        graph = copy.deepcopy(self._graph, memo)
        graph._tracer_cls = self._graph._tracer_cls
        copied.graph = graph
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, copy.deepcopy(self.graph), self._get_name())
        copied.meta = dict(self.meta)
        return copied

    def __reduce__(self) -> Any:
        state = {key: value for key, value in self.__dict__.items() if key != "_graph"}
        made = self._graph.python_code("self")
        names = {name: _how_found(name, obj) for name, obj in made.globals.items()
                 if name not in CUSTOM_BUILTINS}
        state["_code"], state["_class_name"] = made.src, type(self).__name__
        state["_codegen"] = self._graph._codegen
        return reduce_graph_module, (state, names)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the code and the parameters to a folder: a package with a class `module_name`."""
        from tracejit.serialization import save

        place = Path(folder)
        place.mkdir(exist_ok=True, parents=True)
        save(self, place / "module.pt")
        place.joinpath("__init__.py").write_text(f"from .module import {module_name}\n")
        place.joinpath("module.py").write_text(
            "import pathlib\n\nimport tracejit\n\n\n"
            f"def {module_name}():\n"
            "    path = pathlib.Path(__file__).parent / 'module.pt'\n"
            "    return tracejit.load(path, weights_only=False)\n")


def _indented(text: str) -> list[str]:
    return [f"    {line}" if line.strip() else "" for line in text.rstrip().split("\n")]


def _how_found(name: str, obj: Any) -> tuple[str, str]:
    """Return the module that has an object, and its name there."""
    module, _, attribute = qualified_name(obj).rpartition(".")
    if getattr(obj, "__qualname__", "").endswith(attribute) and hasattr(obj, "__module__"):
        return obj.__module__ or "builtins", obj.__qualname__
    return module or "builtins", attribute


def reduce_graph_module(state: dict[str, Any], names: dict[str, tuple[str, str]]) -> GraphModule:
    """Make a module of its state and the code of its graph, whose names are imported."""
    from tracejit.fx.tracer import Tracer
    from tracejit.utils import _pytree

    found: dict[str, Any] = {name: obj for name, (_, obj) in CUSTOM_BUILTINS.items()}
    found["pytree"] = _pytree
    for name, (module, path) in names.items():
        found[name] = attrgetter(path)(importlib.import_module(module))

    class Plain(Module):
        forward = _forward_from_src(state["_code"], found)

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    root = Plain()
    root.__dict__.update(state)
    codegen, class_name = root.__dict__.pop("_codegen"), root.__dict__.pop("_class_name")
    graph = KeepModules().trace(root)
    graph._codegen = codegen
    graph._tracer_cls = state.get("_tracer_cls")
    made = GraphModule(root, graph, class_name)
    made.__dict__.update({key: value for key, value in root.__dict__.items()
                          if key not in ("_graph", "_code")})
    return made
