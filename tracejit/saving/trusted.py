"""Pickles that the caller trusts: their names are imported, and called as they say.

In: a file, and a function that finds storages by number. Out: the object. Names of PyTorch's mean
tracejit's.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from typing import Any

from tracejit.saving.names import qualified
from tracejit.saving.rebuilding import KNOWN


class TrustingUnpickler(pickle.Unpickler):
    """Unpickler of one pickle, which may run anything.

    storage  (persistent id) -> what it stands for
    allowed  full name -> class or function that stands for it, before all others
    """

    def __init__(self, file: Any, storage: Callable[[Any], Any], allowed: dict[str, Any],
                 **given: Any) -> None:
        super().__init__(file, **given)
        self.storage, self.allowed = storage, allowed

    def persistent_load(self, given: Any) -> Any:
        """Return the storage of that number."""
        return self.storage(given)

    def find_class(self, module: str, name: str) -> Any:
        """Return the object of a name. AttributeError and ModuleNotFoundError where there is
        none."""
        full = qualified(module, name)
        for names in (self.allowed, KNOWN):
            if full in names:
                return names[full]
        if module.split(".")[0] == "torch":
            module = "tracejit" + module.removeprefix("torch")
            # Modules of PyTorch's layers have other names here, but the classes are all in `nn`.
            if module.startswith("tracejit.nn.modules"):
                return getattr(importlib.import_module("tracejit.nn"), name)
        return super().find_class(module, name)
