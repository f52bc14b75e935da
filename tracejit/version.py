"""Versions: of PyTorch, whose names and behaviour these are, and of tracejit itself.

Programs choose by `__version__` what they may use of PyTorch. `pyproject.toml` has tracejit's own
version too, and a test compares the two.
"""

from tracejit.torch_version import TorchVersion

tracejit = "0.1.0"
__version__ = TorchVersion(f"2.13.0+tracejit.{tracejit}")
git_version = "Unknown"
cuda = hip = xpu = None  # the toolkits that PyTorch would have been built for
debug = False
