"""Loader parts under the places that PyTorch has for them: `utils.data._utils.collate`."""

import sys

from tracejit.utils.data import collate, pinning, worker

__path__: list[str] = []  # the places below are found as those of a package are
for _name, _file in (("collate", collate), ("pin_memory", pinning), ("worker", worker)):
    sys.modules[f"{__name__}.{_name}"] = _file
    globals()[_name] = _file
