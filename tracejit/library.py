"""Ops of the user's own: functions with a name under `tracejit.ops`, maybe with a gradient too.

In: a function of tensors, and its gradient. Out: the function under its name. PyTorch's
`torch.library`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import tracejit
import tracejit.ops
from tracejit.core.ops import sealing as _sealing

_defined: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """Op of the user's, called like the function it was made of."""

    def __init__(self, name: str, fn: Callable[..., Any], mutates: Iterable[str] | str) -> None:
        namespace, _, short = name.partition("::")
        if not namespace or not short:
            raise ValueError(f"custom_op: expected a name like 'mylib::op', got {name!r}")
        self._name, self._fn, self._mutates = name, fn, mutates
        self._signature = inspect.signature(fn)
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._apply = self._function()
        self.default, self.__name__, self.__doc__ = self, short, fn.__doc__
        _defined[name] = self
        if not hasattr(tracejit.ops, namespace):
            setattr(tracejit.ops, namespace, SimpleNamespace())
        setattr(getattr(tracejit.ops, namespace), short, self)

    def _function(self) -> Callable[..., Any]:
        """Return the op with its gradient, of all arguments in order."""
        parameters = self._signature.parameters.values()
        keyword = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        plain = len(self._signature.parameters) - len(keyword)

        class Own(tracejit.autograd.Function):
            @staticmethod
            def forward(*args: Any) -> Any:
                return self._fn(*args[:plain], **dict(zip(keyword, args[plain:])))

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
                if self._setup is not None:
                    options = dict(zip(keyword, inputs[plain:]))
                    extra = {"keyword_only_inputs": options} if keyword else {}
                    self._setup(ctx, inputs=inputs[:plain], output=output, **extra)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if self._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {self._name.replace('::', '.')}.default but "
                        "no autograd formula was registered. Please use register_autograd to add "
                        "one.")
                found = self._backward(ctx, *grads)
                found = found if isinstance(found, tuple) else (found,)
                return (*found, *(None for _ in keyword))

        Own.__name__ = Own.__qualname__ = self.__class__.__name__
        return Own.apply

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        if self._mutates:
            return self._fn(*args, **kwargs)
        bound.apply_defaults()
        return self._apply(*bound.args, *bound.kwargs.values())

    def register_autograd(self, backward: Callable[..., Any], /, *,
                          setup_context: Callable[..., Any] | None = None) -> None:
        """Register a gradient: `backward(ctx, *grads)` gives a gradient or None for each input.
        `setup_context(ctx, inputs, output)` saves what it needs."""
        if self._mutates:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator "
                               f"{self._name}: it writes to its arguments")
        self._backward, self._setup = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Return the function, without effect: capture looks into the op itself."""
        return fn

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None,
                        /) -> Callable[..., Any]:
        """Register a function for a device; the CPU's replaces the op's function."""
        if fn is None:
            return lambda given: self.register_kernel(device_types, given)
        kinds = (device_types,) if isinstance(device_types, str) else device_types
        if kinds is None or "cpu" in kinds:
            self._fn = fn
        return fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an op "namespace::name" of a function; also as a decorator.

    mutates_args  the names of arguments that it writes to, which then have no gradient

    >>> import tracejit
    >>> @tracejit.library.custom_op("tour::twice", mutates_args=())
    ... def twice(x: tracejit.Tensor) -> tracejit.Tensor:
    ...     return x * 2
    >>> tracejit.ops.tour.twice(tracejit.ones(1))
    tensor([2.])
    """
    if fn is None:
        return lambda given: CustomOpDef(name, given, mutates_args)
    return CustomOpDef(name, fn, mutates_args)


def _found(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _defined.get(op)
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Check that the op exists, without other effect: capture looks into the op itself."""
    _found(op)
    return (lambda given: given) if func is None else func


def register_autograd(op: Any, backward: Callable[..., Any], /, *,
                      setup_context: Callable[..., Any] | None = None, lib: Any = None) -> None:
    """Register the gradient of an op."""
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /,
                    **options: Any) -> Any:
    """Register an op's function for a device."""
    return _found(op).register_kernel(device_types, func)

_sealing.seal_all(globals())
