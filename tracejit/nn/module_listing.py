"""Parameters, buffers and submodules of a module, with their dotted names.

In: the three tables of a module. Out: iterators in order of registration; each object once, under
its first name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class Listing:
    """Part of Module that walks the tree."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield (dotted name, module) of this module (name "") and all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, below, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """Yield this module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, module) of the direct submodules."""
        seen: set = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Any]:
        """Yield the direct submodules."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self, members: Callable[[Any], Any], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        """Yield (dotted name, tensor) of each tensor that `members` finds in each module."""
        # by identity: tensors compare by elements
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_name, module in modules:
            for name, tensor in members(module):
                if tensor is None or id(tensor) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(tensor))
                yield (f"{module_name}.{name}" if module_name else name), tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over (dotted name, parameter), submodules' included unless `recurse=False`."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Yield the parameters, submodules' included unless `recurse=False`."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over (dotted name, buffer), submodules' included unless `recurse=False`."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yield the buffers, submodules' included unless `recurse=False`."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn` on every submodule, then on this module. Return the module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def get_submodule(self, target: str) -> Any:
        """Return the module of a dotted name, "" for this one. Raise AttributeError where there is
        none."""
        module: Any = self
        for name in filter(None, target.split(".")):
            if name not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = module._modules[name]
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module at a dotted name.

        strict  the name must be there already; else its last part may be new

        Raises ValueError for no name and for an object that is no module, AttributeError for names
        that are not there.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Listing):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Listing):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """Return the parameter of a dotted name. Raise AttributeError where there is none."""
        return self._tj_member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Any:
        """Return the buffer of a dotted name. Raise AttributeError where there is none."""
        return self._tj_member(target, "_buffers", "a buffer")

    def _tj_member(self, target: str, table: str, noun: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = (module._parameters if table == "_parameters" else module._buffers).get(name)
        if found is None:
            raise AttributeError(
                f"{type(module).__name__} has no attribute `{name}` that is {noun}"
            )
        return found
