"""`python -m tracejit bench`: the benchmark of a checkout."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import tracejit
from tracejit.commands.failures import UsageError


def main(options: argparse.Namespace) -> int:
    """Run the benchmark with the rest of the command line."""
    root = Path(tracejit.__file__).resolve().parent.parent
    if not (root / "bench" / "__main__.py").exists():
        raise UsageError("the benchmark is part of the source checkout, not of the installed "
                         "package")
    return subprocess.run([sys.executable, "-m", "bench", *options.rest], cwd=root).returncode
