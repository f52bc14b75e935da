"""Hooks that all modules call: where they are kept.

In: what `nn.modules.module.register_module_*_hook` registers, by number. Out: the table, which
modules read whenever they are called and captured calls guard.
"""

from __future__ import annotations

from collections.abc import Callable

# (what for, the hook, whether it takes keyword arguments, whether it is called after errors too)
everywhere: dict[int, tuple[str, Callable, bool, bool]] = {}
