"""Programs that work together with other processes, run in a process of their own.

MPI, once begun, changes how a process may fork, which other tests do. In: `apart`, a decorator over
those of `entries.py`. Out: what the child found. Called by `collectives.py` and `test_hints.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.errors.entries import ENTRIES, Entry
from tests.errors.pairs import PAIRS, check

ROOT = Path(__file__).resolve().parents[2]
CHECKS: dict[str, tuple[Callable[[Entry], None], Entry]] = {}


def apart(register: Callable) -> Callable:
    """Let the check of a program run in the child."""

    def marked(program: Callable) -> Callable:
        register(program)
        entry = ENTRIES[-1]
        CHECKS[entry.name] = entry.check, entry

        @functools.wraps(entry.check)
        def asked(entry: Entry) -> None:
            assert outcomes()[entry.name] == ""

        ENTRIES[-1] = dataclasses.replace(entry, check=asked)
        return program

    return marked


@functools.cache
def outcomes() -> dict[str, Any]:
    """Return, by program, "" or what failed; and the hints that the pairs apply as "hints"."""
    done = subprocess.run(
        [sys.executable, "-c", "from tests.errors import apart; apart.main()"], cwd=ROOT, text=True,
        capture_output=True, timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Run the programs and the pairs of processes here, and print what they gave."""
    from tests.errors import pairs_processes

    found: dict[str, Any] = {"hints": []}
    for name, (checked, entry) in CHECKS.items():
        found[name] = failure_of(lambda: checked(entry))  # noqa: B023
    for pair in PAIRS:
        assert pair.before.__module__ == pairs_processes.__name__
        found[pair.reason] = failure_of(lambda: found["hints"].append(check(pair)))  # noqa: B023
    sys.stdout.write("\n" + json.dumps(found) + "\n")


def failure_of(run: Callable[[], Any]) -> str:
    try:
        run()
    except BaseException:
        return traceback.format_exc()
    return ""
