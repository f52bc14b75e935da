"""The version, once; `pyproject.toml` has the same, and a test compares the two."""

__version__ = "0.1.0"
cuda = hip = xpu = None  # the toolkits that PyTorch would have been built for
debug = False
