"""Empty modules for packages that a program imports and does not use.

torchvision and torchaudio are built for PyTorch's own libraries; what imports them here needs
names to exist, not to work.
"""

import importlib.abc
import importlib.machinery
import sys
import types


class _Named(type):
    """Classes whose every other attribute is its own name, as members of an enumeration are."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Empty(types.ModuleType):
    __path__: list = []
    __version__ = "0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Named(name, (), {})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, name):
        self.name = name

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] == self.name:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Empty(spec.name)

    def exec_module(self, module):
        pass


def stand_in(name):
    """Let `import name` and whatever lies under it succeed."""
    sys.meta_path.insert(0, _Finder(name))
