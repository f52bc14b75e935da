"""Modules that hold modules: in a sequence, a list or a dict.

In: modules. Out: containers that the module they are assigned to lists with what they hold.
"""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracejit.nn.module import Module, module_text


def _position(length: int, index: Any) -> int:
    """Return an index as a position. Raise IndexError out of range."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _Numbered(Module):
    """Submodules named "0", "1" ..."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self._modules.items())[index])
        return list(self._modules.values())[_position(len(self), index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[list(self._modules)[_position(len(self), index)]] = module

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        for name in (
            names[index] if isinstance(index, slice) else [names[_position(len(self), index)]]
        ):
            del self._modules[name]
        # names are positions: they close up
        self._renumber(list(self._modules.values()))

    def _of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(*[module for _, module in items])

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        for k, module in enumerate(modules):
            self.add_module(str(k), module)

    def append(self, module: Module) -> Any:
        """Add a module at the end. Return the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before position `index`. Return the container."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end. Return the container."""
        # a list first: a container may be extended by itself
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: Any) -> Any:
        """Remove and return the module at a position."""
        found = self[key]
        del self[key]
        return found


class Sequential(_Numbered):
    """Modules called one after the other, each with the result of the one before.

    args  modules, or one ordered dict of names and modules

    Input: what the first module takes; output: what the last returns. Submodules have the names
    "0", "1" and so on, or those of the dict. Indices give modules, slices give a `Sequential`;
    `append`, `insert`, `extend` and `pop` change it. Raises IndexError for a position outside.

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for k, module in enumerate(args):
                self.add_module(str(k), module)

    def forward(self, input: Any) -> Any:
        module: Any
        for module in self._modules.values():
            input = module(input)
        return input

    def _of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(OrderedDict(items))

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before position `index`. Return the container. Raise IndexError for a
        position out of range, AssertionError for an object that is no module."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def __add__(self, other: Sequential) -> Sequential:
        """Return the modules of both. Raise ValueError for an object that is no Sequential."""
        return Sequential(*self, *_modules_of(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        self.extend(_modules_of(other))
        return self

    def __mul__(self, other: int) -> Sequential:
        """Repeat the modules, the same objects each time. Raise ValueError for less than once."""
        return Sequential(*[*self] * self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self.extend([*self] * (self._times(other) - 1))
        return self

    def _times(self, count: Any) -> int:
        if not isinstance(count, int):
            raise TypeError(
                f"unsupported operand type(s) for *: {type(self)} and {type(count)}"
            )
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return count


def _modules_of(other: Any) -> list[Module]:
    if not isinstance(other, Sequential):
        raise ValueError(
            "add operator supports only objects of Sequential class, but "
            f"{type(other)} is given."
        )
    return [*other]


class ModuleList(_Numbered):
    """List of modules, whose parameters belong to the module that holds the list. It has no
    `forward`: the holder calls its modules.

    modules  iterable of modules to begin with; default None

    Submodules have the names "0", "1" and so on. Indices give modules, slices give a `ModuleList`;
    `append`, `insert`, `extend` and `pop` change it. Raises IndexError for a position outside.

    >>> import tracejit
    >>> layers = tracejit.nn.ModuleList(tracejit.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)([module for _, module in items])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __repr__(self) -> str:
        """Print like any module, but modules in a row that print alike only once."""
        rows, first = [], 0
        for text, alike in itertools.groupby(map(repr, self)):
            count = len(list(alike))
            last = first + count - 1
            if count == 1:
                rows.append((f"({first})", text))
            else:
                rows.append((f"({first}-{last})", f"{count} x {text}"))
            first = last + 1
        return module_text(self._get_name(), self.extra_repr(), rows)


class ModuleDict(Module):
    """Modules by name, whose parameters belong to the module that holds the dict. It has no
    `forward`: the holder calls its modules.

    modules  mapping of names to modules, or pairs of both, to begin with; default None

    Names keep the order in which they were added. `keys`, `values`, `items`, `update`, `pop` and
    `clear` are those of a dict. Raises KeyError for a name that is not there.

    >>> import tracejit
    >>> layers = tracejit.nn.ModuleDict({"first": tracejit.nn.Linear(2, 3)})
    >>> layers["first"].out_features, list(layers)
    (3, ['first'])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:  # a subclass may have an update of its own
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return (name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def pop(self, key: str) -> Any:
        """Remove and return a module."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Remove all."""
        self._modules.clear()
