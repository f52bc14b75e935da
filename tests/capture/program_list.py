"""Which functions of a module are programs. Called by each `programs_*.py`."""

from __future__ import annotations

import inspect


def programs_in(names):
    """The functions defined in a module that take `jit` alone, in order; `names`: its globals."""
    module, functions = names["__name__"], filter(inspect.isfunction, list(names.values()))
    own = [f for f in functions if f.__module__ == module]
    return [f for f in own if [*inspect.signature(f).parameters] == ["jit"]]
