"""`python -m tracejit doctor`: a table of what works on this machine."""

from __future__ import annotations

import argparse

from tracejit.commands import findings
from tracejit.debug import doctor


def main(options: argparse.Namespace) -> int:
    """Print what works and what is missing; return 1 where something is broken."""
    found = doctor.examine()
    print(findings.as_json(found) if options.json else findings.table(found))
    return 1 if findings.is_broken(found) else 0
