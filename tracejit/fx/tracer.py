"""Symbolic tracing: a module's forward, or a function, runs once with proxies and leaves a graph.

In: a module or function, and arguments that have a value. Out: a `Graph` or `GraphModule`. Called
by users, and by subclasses that decide which modules are looked into.
"""

from __future__ import annotations

import collections
import inspect
import math
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import tracejit
from tracejit.core.eager.tensor import Tensor
from tracejit.fx.concrete_arguments import Concrete, annotations_of, flattened
from tracejit.fx.graph import Graph
from tracejit.fx.graph_module import GraphModule
from tracejit.fx.node import Argument
from tracejit.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from tracejit.fx.wrapping import Patcher, autowrap, patch_wrapped
from tracejit.nn.containers import Sequential
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter

_tracing: list[Tracer] = []  # the traces that run, the innermost last


class ProxyableClassMeta(type):
    """Metaclass: an object that is made of proxies while a trace runs is a call in the graph.

    >>> class Pair(metaclass=ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> Pair(1, 2).right
    2
    """

    def __init__(cls, name: str, bases: tuple, attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = super().__call__(*args, **kwargs)
        if _tracing:
            instance._fx_made_of = args, kwargs
        return instance


class Tracer(TracerBase):
    """Traces modules and functions.

    autowrap_modules    functions of these are recorded as they are
    autowrap_functions  so are these
    param_shapes_constant  True: shapes of parameters are plain numbers
    """

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value) for module in autowrap_modules for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids |= {id(f) for f in autowrap_functions}
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self._counts: dict[str, int] = collections.defaultdict(int)

    # -- what subclasses change ----------------------------------------------------------------
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return True if the module's call is one node: the package's own layers are.

        >>> import tracejit
        >>> Tracer().is_leaf_module(tracejit.nn.ReLU(), "relu")
        True
        """
        ours = type(m).__module__.startswith("tracejit.nn.")
        return ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of a submodule of the root; NameError if it is none."""
        paths = self.submodule_paths
        if paths is not None:
            found = paths.get(mod)
            if found is None:
                raise NameError("module is not installed as a submodule")
            return found
        for name, other in self.root.named_modules():
            if other is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple,
                    kwargs: dict[str, Any]) -> Any:
        """Make a node of a module's call, or look into its forward."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            count = self._counts[path]
            key = f"{scope.module_path}@{count}" if count else scope.module_path
            self._counts[path] += 1
            self.module_stack[key] = (path, scope.module_type)
            try:
                if not self.is_leaf_module(m, path):
                    return forward(*args, **kwargs)
                return self.create_proxy("call_module", path, args, kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return what the program reads as an attribute: a proxy in the place of a parameter."""
        if isinstance(attr_val, Parameter):
            return self._read(self.root.named_parameters(), attr_val, parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._read(self.root.named_buffers(), attr_val, parameter_proxy_cache)
        return attr_val

    def _read(self, named: Iterator[tuple[str, Any]], value: Any, known: dict[str, Proxy]) -> Any:
        name = next((name for name, tensor in named if tensor is value), None)
        if name is None:
            return value
        if name not in known:
            factory = None if not self.param_shapes_constant else (
                lambda node: ParameterProxy(self, node, name, value))
            known[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)
        return known[name]

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of nodes. Tensors become attributes of the root."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            given = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), given, {})
        if isinstance(type(a), ProxyableClassMeta) and hasattr(a, "_fx_made_of"):
            args, kwargs = a._fx_made_of
            return self.create_node("call_function", type(a), self.create_arg(args),
                                    self.create_arg(kwargs))
        return super().create_arg(a)

    def _constant(self, tensor: Tensor) -> str:
        """Return the attribute of the root that a tensor is, or makes it one."""
        known = self.tensor_attrs.get(tensor)
        if known is None:
            known = self.get_fresh_qualname("_tensor_constant")
            self.tensor_attrs[tensor] = known
            setattr(self.root, known, tensor)
        return known

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name that no attribute of the root has."""
        count = 0
        while hasattr(self.root, f"{prefix}{count}"):
            count += 1
        return f"{prefix}{count}"

    # -- arguments -----------------------------------------------------------------------------
    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | tuple | None = None,
                             ) -> tuple[Any, list[Any]]:
        """Return the function to call, and a proxy or a value for each of its arguments."""
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[int(is_module):count])
        given = Concrete(self, analysed, names, concrete_args)
        args = ([self.root] if is_module else []) + [given.value(name) for name in names]
        rest = list(code.co_varnames[count:])
        if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            if code.co_flags & inspect.CO_VARARGS:
                args.append(given.placeholder(f"*{rest.pop(0)}"))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(given.placeholder(f"**{rest.pop(0)}"))
            root_fn = _taking(analysed, len(args))
        return flattened(self, root_fn, args, names, bool(is_module), given.values)

    # -- the trace -----------------------------------------------------------------------------
    def trace(self, root: Module | Callable[..., Any],
              concrete_args: dict[str, Any] | None = None) -> Graph:
        """Run the root with proxies and return the graph of what it did.

        >>> import tracejit
        >>> graph = Tracer().trace(lambda x: tracejit.relu(x) + 1)
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_function', 'call_function', 'output']
        """
        fn: Any
        if isinstance(root, Module):
            self.root = root
            assert hasattr(type(root), self.traced_func_name), (
                f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = _tensors_of(self.root)
        self._counts.clear()
        assert isinstance(fn, FunctionType), f"{fn} is not a Python function"
        names = fn.__globals__
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        _tracing.append(self)
        try:
            with Patcher() as patcher:
                self._patch_modules(patcher)
                patch_wrapped(patcher)
                for searched in (names, *map(vars, self._autowrap_search)):
                    autowrap(patcher, searched, self._autowrap_function_ids)
                result = (self.create_arg(fn(*args)),)
            self.create_node("output", "output", result, {},
                             type_expr=annotations_of(fn).get("return"))
        finally:
            _tracing.pop()
            self.submodule_paths = None
        return self.graph

    def _patch_modules(self, patcher: Patcher) -> None:
        """Let calls of modules, and reads of their attributes, come to this tracer."""
        call, read = Module.__call__, Module.__getattr__
        cache: dict[str, Proxy] = {}
        tracer = self

        def called(mod: Any, *args: Any, **kwargs: Any) -> Any:
            names = getattr(getattr(mod, "forward", mod), "__globals__", {})
            autowrap(patcher, names, tracer._autowrap_function_ids)
            return tracer.call_module(mod, lambda *a, **k: call(mod, *a, **k), args, kwargs)

        def found(mod: Any, name: str) -> Any:
            return tracer.getattr(name, read(mod, name), cache)

        patcher.patch_method(Module, "__call__", called)
        patcher.patch_method(Module, "__getattr__", found)


def _tensors_of(root: Module) -> dict[Tensor, str]:
    """Return the tensors that modules have as plain attributes, with their paths."""
    found: dict[Tensor, str] = {}
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found[value] = f"{path}.{name}" if path else name
    return found


def _taking(function: Any, count: int) -> FunctionType:
    """Return a function whose first `count` variables are plain arguments."""
    flags = function.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = function.__code__.replace(co_argcount=count, co_posonlyargcount=0,
                                     co_kwonlyargcount=0, co_flags=flags)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                        function.__closure__)
    made.__annotations__ = dict(function.__annotations__)
    made.__module__ = function.__module__
    return made


def symbolic_trace(root: Module | Callable[..., Any],
                   concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return the graph of a module or function, as a module that runs it.

    concrete_args  values of arguments, by name: control flow may depend on them

    >>> import tracejit
    >>> traced = symbolic_trace(lambda x: tracejit.relu(x) + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = tracejit.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    >>> traced(tracejit.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, tracejit.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def is_fx_tracing() -> bool:
    """Return True while a trace runs.

    >>> is_fx_tracing()
    False
    """
    return bool(_tracing)
