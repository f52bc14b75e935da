"""What this installation can run on; PyTorch's `torch.backends`, as far as it applies here.

In: nothing. Out: `backends.cpu`, `backends.cuda`, `backends.cudnn`, each with the questions scripts
ask of it.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tracejit import cuda as _cuda


def _blas() -> str:
    """The library NumPy's products run on, as NumPy names it."""
    built = np.show_config(mode="dicts") or {}
    return str(built.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown"))


cpu = SimpleNamespace(is_available=lambda: True, blas=_blas)
cuda = SimpleNamespace(is_available=_cuda.is_available, is_built=lambda: True)
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
# Scripts ask before they set its switches; there is no cuDNN here, so the answer is no.
cudnn = SimpleNamespace(
    is_available=lambda: False,
    version=lambda: None,
    enabled=False,
    benchmark=False,
    deterministic=True,
)
