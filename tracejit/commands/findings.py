"""Findings of the doctor, and the questions that need no other file of the package.

In: the standard library alone: it works where the package cannot be imported. Out: `Finding`s, as a
table or JSON. Called by `start` and `debug.doctor`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from typing import NamedTuple

SECRET = "TRACEJIT_JOB_KEY"  # lets a process join a job
NEEDED = ("numpy", "numba", "llvmlite", "scipy", "ml_dtypes")


class Finding(NamedTuple):
    """Line of the table: `state` is ok, absent (something optional), or broken."""

    subject: str
    state: str
    text: str
    fix: str = ""


def table(findings: Sequence[Finding]) -> str:
    """Return a line for each finding, and advice for those that are not ok."""
    width = max(len(finding.subject) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.subject:<{width}}  {finding.state:<6}  {finding.text}")
        if finding.fix:
            lines.append(f"{'':<{width}}  {'':<6}  -> {finding.fix}")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings as JSON: `ok`, and a list of objects with the table's columns."""
    return json.dumps({"ok": not is_broken(findings), "findings": [f._asdict() for f in findings]},
                      indent=1)


def is_broken(findings: Sequence[Finding]) -> bool:
    """Return True if anything is broken."""
    return any(finding.state == "broken" for finding in findings)


def one_line(error: BaseException) -> str:
    """Return an error's type and the first line of its text."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def version_of(package: str) -> str:
    """Return a package's version; empty where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except Exception:  # damaged metadata can raise anything
        return ""


def packages() -> Finding:
    """Import each package that tracejit needs."""
    texts: list[str] = []
    missing: list[str] = []
    failing: list[str] = []
    for name in NEEDED:
        version = version_of(name)
        try:
            importlib.import_module(name)
            texts.append(f"{name} {version}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a package's own import can raise anything
            (failing if version else missing).append(name)
            texts.append(f"{name} {version or 'missing'}" + f" ({one_line(error)})" * bool(version))
    fix = f"pip install {' '.join(missing)}" if missing else ""
    if failing:
        fix = f"pip install --force-reinstall {' '.join(missing + failing)}"
    return Finding("packages", "broken" if missing or failing else "ok", ", ".join(texts), fix)


def environment() -> Finding:
    """Name the variables that tracejit reads, and the home directory."""
    ours = {k: v for k, v in sorted(os.environ.items()) if k.startswith("TRACEJIT_")}
    if SECRET in ours:
        ours[SECRET] = "..."
    home = os.environ.get("HOME") or os.environ.get("USERPROFILE") or "not set"
    shown = ", ".join(f"{name}={value}" for name, value in ours.items())
    return Finding("environment", "ok", f"{shown or 'no TRACEJIT_ variable is set'}; HOME: {home}")


def interpreter() -> Finding:
    """Name the Python that runs."""
    return Finding("python", "ok", f"{platform.python_version()}, {platform.system()} "
                                   f"{platform.machine()}")
