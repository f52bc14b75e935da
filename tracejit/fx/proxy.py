"""Proxies: stand-ins for values, whose operations become nodes; PyTorch's `torch.fx.proxy`."""

from __future__ import annotations

import copy
import dataclasses
import dis
import inspect
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NoReturn

import tracejit
from tracejit.core.ops import overriding
from tracejit.fx.code import magic_methods
from tracejit.fx.graph import Graph
from tracejit.fx.naming import name_of_target, public_name
from tracejit.fx.node import Argument, BaseArgumentTypes, Node, Target
from tracejit.overrides import is_tensor_method_or_property

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope",
           "ScopeContextManager", "TraceError", "TracerBase"]

_PLAIN = (*BaseArgumentTypes, tracejit.dtype, tracejit.device, tracejit.Tensor,
          tracejit.memory_format, tracejit.layout)
_ITERATED = ("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
             "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
             "pytorch.org for a more detailed explanation of what types of control flow can be "
             "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
             "errors")
_KEY = "Keys for dictionaries used as an argument cannot contain a Node. Got key: {}"


class TraceError(ValueError):
    """Raised where a program decides by a value that is not known while it is traced."""


class Scope:
    """Module whose forward runs: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Block in which a tracer's scope is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        scope.__dict__.update(current_scope.__dict__)

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exc: Any) -> None:
        self._scope.__dict__.update(self._before.__dict__)


class TracerBase:
    """Makes nodes of what happens to proxies. Subclasses change how."""

    graph: Graph
    record_stack_traces = False  # True: nodes know the lines of the program that made them
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]

    def create_node(self, kind: str, target: Target, args: tuple, kwargs: dict[str, Argument],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node to the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return a stand-in for the result of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple, kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:
        """Add a node whose arguments may hold proxies, and return the proxy of its result."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        assert isinstance(args_, tuple) and isinstance(kwargs_, dict)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        found = proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _program_lines()
        return found

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of nodes: proxies become their nodes.

        NotImplementedError for objects that code cannot name.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (Node, _PLAIN)):
            return a
        if isinstance(a, tuple):
            items = [self.create_arg(x) for x in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if inspect.isfunction(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        found = self.create_arg(key)
        if isinstance(found, Node):
            raise RuntimeError(_KEY.format(found))
        return found

    def to_bool(self, obj: Proxy) -> bool:
        """Give the truth of a proxy: TraceError. Subclasses may know it."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """Iterate over a proxy: TraceError. Subclasses may know how many elements it has."""
        raise TraceError(_ITERATED)

    def keys(self, obj: Proxy) -> Any:
        """Give the keys of a proxy, which are a proxy."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a given graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()


class Proxy:
    """Stand-in for the result of a node: what happens to it becomes nodes.

    A proxy has no value, so it decides nothing: `if x:` and `for y in x:` raise TraceError.

    >>> import tracejit
    >>> from tracejit.fx import Graph
    >>> graph = Graph()
    >>> x = Proxy(graph.placeholder("x"))
    >>> tracejit.relu(x + 1).node.args
    (add,)
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        overriding.stand_gates()  # functions of tensors ask for classes like this one
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("tracer", "node", "__deepcopy__", "__setstate__", "__fx_create_arg__"):
            raise AttributeError(k)  # a proxy that is not made yet
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        count = _unpacked(sys._getframe(1))
        if count is not None:
            items: Any = self  # its class gets `__getitem__` below
            return iter([items[k] for k in range(count)])
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def keys(self) -> Any:
        """Return the keys, which are a proxy."""
        return self.tracer.keys(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want "
                           "this call to be recorded, please call torch.fx.wrap('len') at module "
                           "scope")

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: tuple = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        tracers: dict[Any, None] = {}
        _find_tracers([*args, *kwargs.values()], tracers)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to "
                               f"trace operations {orig_method}")
        tracer = next(iter(tracers))
        if public_name(orig_method) is None and is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs,
                                   name=name_of_target(orig_method))


class Attribute(Proxy):
    """Attribute of a proxy: a node once it is used, unless it is called, as methods are."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Proxy of a parameter whose shape is known: what asks for it gets the real one."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self) -> Any:
        return self.param.size()

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


def _operator(name: str, swapped: bool) -> Callable[..., Proxy]:
    target = getattr(operator, name)

    def method(self: Proxy, *others: Any) -> Proxy:
        args = (*others, self) if swapped else (self, *others)
        return self.tracer.create_proxy("call_function", target, args, {})

    return method


for _name in magic_methods:
    _bare = _name.rstrip("_")
    setattr(Proxy, f"__{_bare}__", _operator(_name, swapped=False))
    if _bare in """add sub mul floordiv truediv mod pow lshift rshift and or xor matmul""".split():
        setattr(Proxy, f"__r{_bare}__", _operator(_name, swapped=True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


def _find_tracers(values: Any, found: dict[Any, None]) -> None:
    for value in values:
        if isinstance(value, Proxy):
            found[value.tracer] = None
        elif isinstance(value, (list, tuple)):
            _find_tracers(value, found)
        elif isinstance(value, dict):
            _find_tracers(value.values(), found)
        elif isinstance(value, slice):
            _find_tracers((value.start, value.stop, value.step), found)


def _unpacked(frame: Any) -> int | None:
    """Return how many names the frame unpacks an iterable to (`a, b = x`), if it does so now."""
    code: CodeType = frame.f_code
    at = frame.f_lasti
    if dis.opname[code.co_code[at]] != "UNPACK_SEQUENCE":
        return None
    return code.co_code[at + 1]


def _program_lines() -> str:
    """Return the frames of the program, without those of the package."""
    frames = [f for f in traceback.extract_stack()
              if "/tracejit/" not in f.filename.replace("\\", "/")]
    return "".join(traceback.format_list(frames))


