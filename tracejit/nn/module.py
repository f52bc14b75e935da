"""Module: a tree of parameters, buffers and submodules with a `forward`.

In: attributes assigned in `__init__`; calls. Out: the result of `forward`, run between hooks. Users
subclass it; the layers of this package do too. Listing (`module_listing.py`), conversion
(`module_conversion.py`) and the state dict (`module_state.py`) are written as mixins over the three
tables kept here.

`_parameters`, `_buffers` and `_modules` are ordinary dicts in `__dict__`, `training` is an ordinary
attribute: capture guards and lifts what it finds there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tracejit.core.eager.global_hooks import everywhere
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.questions import typename
from tracejit.jit.capture.plain_arguments import plain_text
from tracejit.nn.module_conversion import Conversion
from tracejit.nn.module_global_hooks import (  # noqa: F401 - public in PyTorch's file
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from tracejit.nn.module_hooks import Hooks, call_with_hooks
from tracejit.nn.module_listing import Listing
from tracejit.nn.module_state import IncompatibleKeys as _IncompatibleKeys  # noqa: F401
from tracejit.nn.module_state import StateDict
from tracejit.nn.parameter import Buffer, Parameter

T_destination = TypeVar("T_destination", bound=dict[str, Any])
_TABLES = ("_parameters", "_buffers", "_modules")
# Answered last, so that a user's own attributes and submodules may have these names.
_OF_FORWARD = ("report", "graph", "graphs")  # what a compiled `forward` tells
_KINDS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks",
          "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs",
          "_forward_hooks_always_called")


class Module(Listing, Conversion, StateDict, Hooks):
    """Base class of models and layers; PyTorch's `nn.Module`.

    A subclass calls `super().__init__()`, assigns its parts as attributes and defines `forward`. A
    `Parameter`, a `Buffer` and a module become part of the tree: `parameters()`, `state_dict()`,
    `to()` and `train()` reach them. Calling the module runs `forward` between hooks, on whatever
    arguments and shapes `forward` takes. Raises TypeError for arguments of the constructor,
    NotImplementedError where `forward` is missing.

    >>> import tracejit
    >>> class Scale(tracejit.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = tracejit.nn.Parameter(tracejit.ones(1))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> [name for name, _ in Scale().named_parameters()]
    ['weight']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    dump_patches = False
    call_super_init = False  # True: the next class in order is initialised with what is given
    T_destination = T_destination

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            what = (f"got an unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else
                    f"takes 1 positional argument but {len(args) + 1} were given")
            raise TypeError(f"{type(self).__name__}.__init__() {what}")
        own = self.__dict__
        # into the dict: __setattr__ needs the tables, which are made here
        own["training"] = True
        for name in (*_TABLES, *_HOOKS):
            own[name] = {}
        own["_non_persistent_buffers_set"] = set()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of a call. Subclasses define it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if not (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or everywhere
        ):
            tracer = active.tracer
            if tracer is not None:
                return tracer.convert_call(self.forward)(*args, **kwargs)
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    _call_impl = _wrapped_call_impl = __call__

    # -- attributes ----------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in _TABLES:
            if table in own and name in own[table]:
                return own[table][name]
        if name in _OF_FORWARD:
            return getattr(self._tj_compiled_forward(), name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._tj_forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._tj_table("_modules")
            self._tj_forget(name, "_modules")
            own["_modules"][name] = registered("module", self, name, value)
        elif isinstance(value, Buffer) and self._tj_table("_buffers").get(name) is not value:
            made: Any = value
            self._tj_forget(name, "_buffers")
            self.register_buffer(name, made, made.persistent)
        elif not self._tj_assigned_in_table(name, value):
            object.__setattr__(self, name, value)

    def _tj_assigned_in_table(self, name: str, value: Any) -> bool:
        """Put a value where the name is already registered. Raise TypeError where it does not fit
        there."""
        own = self.__dict__
        kinds = {
            "_parameters": "tracejit.nn.Parameter",
            "_modules": "tracejit.nn.Module",
            "_buffers": "tracejit.Tensor",
        }
        for table, wanted in kinds.items():
            if name in own.get(table, ()):
                fits = value is None or table == "_buffers" and isinstance(value, Tensor)
                if not fits:
                    noun = {
                        "_parameters": "parameter",
                        "_modules": "child module",
                        "_buffers": "buffer",
                    }[table]
                    raise TypeError(
                        f"cannot assign '{typename(value)}' as {noun} '{name}' "
                        f"({wanted} or None expected)"
                    )
                own[table][name] = registered(_KINDS[table], self, name, value)
                return True
        return False

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = set(object.__dir__(self)).union(*(self.__dict__[table] for table in _TABLES))
        # members of lists have numbers as names, which are no attribute names
        return sorted(name for name in names if not name[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, {})
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    def _tj_table(self, name: str) -> dict[str, Any]:
        """Return one of the three tables. Raise AttributeError before `Module.__init__` ran."""
        if name not in self.__dict__:
            noun = {"_parameters": "parameters", "_buffers": "buffers", "_modules": "module"}[name]
            verb = "buffer" if noun == "buffers" else noun
            raise AttributeError(f"cannot assign {verb} before Module.__init__() call")
        return self.__dict__[name]

    def _tj_forget(self, name: str, but: str) -> None:
        """Remove a name from the plain attributes and from the tables but one, where it keeps its
        place."""
        own = self.__dict__
        own.pop(name, None)
        for table in _TABLES:
            if table in own and table != but:
                own[table].pop(name, None)
        if "_non_persistent_buffers_set" in own:
            own["_non_persistent_buffers_set"].discard(name)

    # -- registration --------------------------------------------------------------------------
    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None as the place of an absent one.

        Raises KeyError for a name with a dot, an empty or a taken one; TypeError for an object that
        is no Parameter; ValueError for a tensor with a history.
        """
        table = self._tj_table("_parameters")
        name = self._tj_checked_name(name, "parameter", table)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(tracejit.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                "be created explicitly. To express '{name}' as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        table[name] = registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained. `persistent=False` keeps it out of the state
        dict."""
        table = self._tj_table("_buffers")
        name = self._tj_checked_name(name, "buffer", table)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(tracejit.Tensor or None required)"
            )
        table[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under `name`."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, or None as the place of an absent one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        table = self._tj_table("_modules")
        name = self._tj_checked_name(name, "module", table)
        table[name] = registered("module", self, name, module)

    def _tj_checked_name(self, name: Any, kind: str, table: dict[str, Any]) -> str:
        name = plain_text(name)  # of a text that a recorded call makes
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        # a name in the same table is replaced
        if name not in table and (name in self.__dict__ or hasattr(self, name)):
            raise KeyError(f"attribute '{name}' already exists")
        return name

    # -- modes ---------------------------------------------------------------------------------
    def train(self, mode: bool = True) -> Module:
        """Set `training` here and in all submodules. Return the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """Call `train(False)`."""
        return self.train(False)

    # -- text ----------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """Return the text between the brackets of the module's own line. Subclasses define it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return module_text(
            self._get_name(),
            self.extra_repr(),
            ((f"({name})", repr(child)) for name, child in self._modules.items()),
        )

    # -- compiled forward ----------------------------------------------------------------------
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile `forward` of this module from now on; arguments as those of `compile`."""
        from tracejit.compiler import compile

        # an attribute of the object hides its class's forward
        object.__setattr__(self, "forward", compile(self.forward, *args, **kwargs))

    def _tj_compiled_forward(self) -> Any:
        found = self.__dict__.get("forward") or type(self).forward
        if not hasattr(found, "report"):
            raise AttributeError(
                f"{type(self).__name__}.forward is not compiled: decorate it, or use "
                "tracejit.script(module)"
            )
        bind = getattr(type(found), "__get__", None)
        return (
            found if bind is None or "forward" in self.__dict__ else bind(found, self, type(self))
        )


def _addindent(s_: str, numSpaces: int) -> str:
    """Indent every line of a text but the first. Empty lines stay empty."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + x if x.strip() else "" for x in rest)])


def module_text(name: str, extra: str, children: Iterable[tuple[str, str]]) -> str:
    """Return a module's text as PyTorch prints it: one line, or its children indented below."""
    lines = extra.split("\n") if extra else []
    below = [f"{label}: " + text.replace("\n", "\n  ") for label, text in children]
    if len(lines) == 1 and not below:
        return f"{name}({lines[0]})"
    body = "\n  ".join(lines + below)
    return f"{name}(\n  {body}\n)" if body else f"{name}()"


ModuleFunction = Callable[[Module], None]
