"""Table of the hooks that all modules call.

In: hooks that `nn.modules.module.register_module_*_hook` registers, by number. Out: the table.
Modules read it whenever they are called, and captured calls guard it.
"""

from __future__ import annotations

from collections.abc import Callable

# (what for, the hook, whether it takes keyword arguments, whether it is called after errors too)
everywhere: dict[int, tuple[str, Callable, bool, bool]] = {}
