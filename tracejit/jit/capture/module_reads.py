"""Reads of modules by tracejit's own code, which the user's code does not name.

In: a code object of tracejit's. Out: the attributes that it reads of modules, and the kinds of
objects that it tells apart. Also, in `METHODS`, the methods of modules that it calls: an instance
may replace them. Called by `watcher`, which passes over that code otherwise, by `attributes` and
`guards`. The code also reads the tables of modules, at which the state walker looks anyway.
"""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from tracejit.jit.capture.location import PACKAGE

METHODS = frozenset(
    "named_parameters parameters named_buffers buffers named_modules modules named_children "
    "children _named_members apply train _apply get_submodule extra_repr _get_name state_dict "
    "_save_to_state_dict _load_from_state_dict _tj_own_tensors _tj_hooks_of get_extra_state "
    "set_extra_state".split()
)


class Reads(NamedTuple):
    """Reads of modules by the functions of one file.

    modules  they tell modules, and objects that modules hold, apart by identity
    objects  they tell any objects apart
    names    attributes of modules, which may be missing
    common   attributes of other objects or classes
    """

    modules: bool = False
    objects: bool = False
    names: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()


_HOOKS = ("_state_dict_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks",
          "_load_state_dict_post_hooks")  # fmt: skip
_FILES = {
    PACKAGE + "func/functional_call.py": Reads(modules=True, objects=True),
    PACKAGE + "nn/module_conversion.py": Reads(),
    PACKAGE + "nn/module_listing.py": Reads(modules=True),
    PACKAGE + "nn/module_state.py": Reads(
        names=frozenset((*_HOOKS, "_non_persistent_buffers_set")),
        common=frozenset(("_version", "_metadata")),
    ),
}
_OF_MODULE = {PACKAGE + "nn/module.py": ("Module.__repr__", "Module.train")}


def reads_of_modules(code: CodeType) -> Reads | None:
    """Return the reads by a code object of tracejit's; None if it reads nothing but tables of
    modules.

    >>> from tracejit import nn
    >>> reads_of_modules(nn.Module.named_modules.__code__).modules
    True
    """
    if code.co_qualname in _OF_MODULE.get(code.co_filename, ()):
        return Reads()
    return _FILES.get(code.co_filename)


def has_methods(attributes: dict[str, object]) -> bool:
    """Return True if a module's own attributes replace a method that code of tracejit's calls."""
    return not METHODS.isdisjoint(attributes)
