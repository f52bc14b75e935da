"""Arguments of a trace that have a value, and arguments that are containers.

In: `concrete_args`. Out: placeholders and values. A value that a number or None had is checked by
the graph. Containers make a function of their leaves, and code that flattens and builds them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tracejit
from tracejit.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from tracejit.fx.naming import is_of_package
from tracejit.fx.proxy import Proxy
from tracejit.utils import _pytree

if TYPE_CHECKING:
    from tracejit.fx.tracer import Tracer


class PHBase:
    """Class of `PH`."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()  # in `concrete_args`: this leaf is an argument


class PHWithMeta(PHBase):
    """A `PH` whose placeholder gets attributes."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key

    def transfer_meta(self, node: Any) -> None:
        node.meta["ph_key"] = self.ph_key


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


_assert_is_none.__module__ = "tracejit.fx._symbolic_trace"  # as code finds it


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a user's function; those of the package's own are texts.

    >>> import tracejit
    >>> annotations_of(tracejit.nn.ReLU.forward)
    {}
    """
    if is_of_package(function):
        return {}
    return getattr(function, "__annotations__", {})


class Concrete:
    """Arguments of one trace.

    values  what is given for each name
    """

    def __init__(self, tracer: Tracer, function: Callable[..., Any], names: list[str],
                 given: dict[str, Any] | tuple | None) -> None:
        self.tracer = tracer
        self.signature = inspect.signature(function)
        self.annotations = annotations_of(function)
        if isinstance(given, tuple):
            if len(given) != len(names):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(given)} "
                                   "concrete arguments")
            given = dict(zip(names, given))
        self.values: dict[str, Any] = dict(given or {})

    def value(self, name: str) -> Any:
        """Return the proxy, or the value, of an argument."""
        if name not in self.values:
            return self.placeholder(name)
        leaves, spec = _pytree.tree_flatten(self.values[name])
        found = [self._leaf(f"{name}_{k}" if spec.children() else name, name, leaf, k)
                 for k, leaf in enumerate(leaves, 1)]
        return _pytree.tree_unflatten(found, spec)

    def _leaf(self, title: str, name: str, leaf: Any, count: int) -> Any:
        """Return a leaf: a proxy for PH, else its value, which the graph checks."""
        wish = f"{name}_{count}"
        default = self._default(name)
        proxy = self.tracer.create_proxy("placeholder", wish, default, {})
        if isinstance(leaf, PHBase):
            if isinstance(leaf, PHWithMeta):
                leaf.transfer_meta(proxy.node)
            return proxy
        text = f"{name} has been specialized to have value {leaf} but got another value"
        if type(leaf) in (int, float, bool):
            tracejit._assert(proxy == leaf, text)
        elif leaf is None:
            self.tracer.create_proxy("call_function", _assert_is_none, (proxy, text), {})
        return leaf

    def placeholder(self, name: str) -> Proxy:
        """Return the proxy of an argument that has no value."""
        args = () if name.startswith("*") else self._default(name)
        return self.tracer.create_proxy("placeholder", name, args, {},
                                        type_expr=self.annotations.get(name.lstrip("*")))

    def _default(self, name: str) -> tuple:
        default = self.signature.parameters[name].default
        return () if default is inspect.Parameter.empty else (default,)


def flattened(tracer: Tracer, function: Callable[..., Any], args: list[Any], names: list[str],
              is_module: bool, given: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Return a function of leaves and the leaves, if an argument is a container of them."""
    if not any(_pytree.tree_structure(value).children() for value in given.values()):
        return function, args
    root, trees = args[:int(is_module)], args[int(is_module):]
    leaves, in_spec = _pytree.tree_flatten(tuple(trees))

    def of_leaves(*values: Any) -> Any:
        own, rest = values[:int(is_module)], values[int(is_module):]
        result = function(*own, *_pytree.tree_unflatten(rest, in_spec))
        found, out_spec = _pytree.tree_flatten(result)
        tracer.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names[:len(trees)], in_spec, out_spec)))
        return found

    return of_leaves, root + leaves
