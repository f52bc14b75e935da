"""tracejit, in a process that a program under `python -m tracejit run` has started.

In: nothing. Out: the module `tracejit` in the place of this one. Imported by such processes, which
find this folder before PyTorch.
"""

import sys
from pathlib import Path

try:
    from tracejit.debug import torch_scripts
except ModuleNotFoundError:  # the parent found tracejit in its working folder
    sys.path.append(str(Path(__file__).parents[3]))
    from tracejit.debug import torch_scripts

sys.modules["torch"] = torch_scripts.tracejit_as_torch_for_good()
