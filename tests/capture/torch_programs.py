"""The programs, over PyTorch: their own source, with its imports replaced.

In: a module of programs. Out: a module whose `tj` is `torch`. Called by `test_programs_oracle.py`,
once PyTorch is there.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from types import ModuleType

IMPORT = re.compile(r"^(import|from) tracejit\b", re.MULTILINE)
SHARED = re.compile(r"^from tests\.capture\.(program_inputs) import (.*)$", re.MULTILINE)


@functools.cache
def over_torch(module: ModuleType) -> ModuleType:
    """The module, compiled from its source with `torch` for `tracejit`.

    Modules of inputs that it shares with others are taken over `torch` as well.
    """
    text = IMPORT.sub(r"\1 torch", inspect.getsource(module))
    made = ModuleType(module.__name__ + "_over_torch")
    made.__file__ = module.__file__
    sys.modules[made.__name__] = made  # where dataclasses look for annotations
    for match in SHARED.finditer(text):
        over_torch(sys.modules["tests.capture." + match[1]])
    text = SHARED.sub(r"from tests.capture.\1_over_torch import \2", text)
    exec(compile(text, str(module.__file__), "exec"), vars(made))
    return made
