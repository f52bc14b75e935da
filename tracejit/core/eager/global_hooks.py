"""Table of the hooks that all modules call.

In: hooks that `nn.modules.module.register_module_*_hook` registers, by number. Out: the table.
Modules read it whenever they are called, and captured calls guard it.
"""

from __future__ import annotations

from collections.abc import Callable

# number -> (kind, hook, takes keyword arguments, runs after errors too)
everywhere: dict[int, tuple[str, Callable, bool, bool]] = {}
