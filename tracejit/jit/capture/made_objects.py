"""Objects of the user's classes that a call made: a replay makes them anew.

In: an object that a recorded call returned or stored, the sources of its state, the code that ran.
Out: True if a replay can make such an object without its constructor, which has run already; and
the object, still empty. Called by `epilogue`.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from types import FunctionType, SimpleNamespace
from typing import Any

from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.contents import kind_of_container
from tracejit.jit.capture.fingerprint import is_mutable_class, module_name
from tracejit.jit.capture.looking import (
    bases_of,
    class_attribute,
    instance_dict,
    is_a,
    names_in,
)

_KINDS = (object, dict, OrderedDict)


def can_be_made(value: Any, sources: Iterable[Source], entered: set[Any]) -> bool:
    """Return True if a replay can make such an object: its attributes and entries are all there is
    to it.

    `entered`: the code that ran in the call.
    """
    cls = type(value)
    if cls is SimpleNamespace:
        return True
    if not is_mutable_class(cls) or not any(kind_of_container(cls) is kind for kind in _KINDS):
        return False
    if any(module_name(base).partition(".")[0] == "tracejit" for base in bases_of(cls)):
        return False  # modules and optimizers have state beside their attributes
    return _was_constructed(cls, entered) and _was_there(cls, sources)


def _was_constructed(cls: type, entered: set[Any]) -> bool:
    """Return False if the class has an `__init__` in Python that did not run in the call."""
    constructor = class_attribute(cls, "__init__")
    return type(constructor) is not FunctionType or constructor.__code__ in entered


def _was_there(cls: type, sources: Iterable[Source]) -> bool:
    """Return True if the call did not make the class: its module or a source leads to it."""
    found: Any = sys.modules.get(module_name(cls))
    for name in cls.__qualname__.split("."):
        known = names_in(found) if is_a(found, type) else instance_dict(found)
        found = (known or {}).get(name)
    return found is cls or any(
        source.value is cls and (source.parent is not None or source.how in ("global", "cell"))
        for source in sources
    )


def blank(cls: type) -> Any:
    """Make an object of the class without attributes or entries; no constructor runs."""
    return SimpleNamespace() if cls is SimpleNamespace else kind_of_container(cls).__new__(cls)
