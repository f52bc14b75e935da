"""The launcher of the MPI library that is installed, with its flags for more ranks than cores."""

from __future__ import annotations

import sys
from pathlib import Path

BIN = Path(sys.executable).parent
# Launchers of MPI have the same name, and flags of one break the other.
OPEN_MPI = (BIN / "prterun").exists()
MPIEXEC = [BIN / "mpiexec", *(["--allow-run-as-root", "--map-by", ":oversubscribe"] * OPEN_MPI)]
