"""`python -m tracejit`: the doctor, the kernel cache, the benchmark, PyTorch programs.

In: a command. Out: text on stdout and an exit status, 0 when all is well. Called from shells.
`commands/parsers.py` declares the commands, each is a file beside it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from tracejit.commands import failures, parsers, start


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    start.unwatch()
    own, rest = parsers.split(sys.argv[1:] if argv is None else argv)
    options = parsers.parser().parse_args(own)
    options.rest = rest
    command = importlib.import_module(f"tracejit.commands.{options.command}")
    return failures.status_of(f"tracejit {options.command}", lambda: command.main(options))


if __name__ == "__main__":
    sys.exit(main())
