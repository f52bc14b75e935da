"""Type checkers as a user of the package runs them.

In: files. Out: their errors as (file name, line, text). The package is found by its path and its
own errors are left out, as those of an installed one are.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests/types/programs").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MISTAKES = ROOT / "tests/types/mistakes"
_LINE = re.compile(r"^(.*?):(\d+): error: (.*)$")
Error = tuple[str, int, str]


def mypy(files: Iterable[Path], *options: str) -> list[Error]:
    """Run mypy with no configuration but these options."""
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent",
               "--ignore-missing-imports", "--no-error-summary", "--hide-error-context",
               f"--cache-dir={ROOT / '.mypy_cache/users'}", *options, *map(str, files)]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    run = subprocess.run(command, cwd=ROOT / "tests/types/mistakes", env=environment, text=True,
                         capture_output=True)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = [match.groups() for match in map(_LINE.match, run.stdout.splitlines()) if match]
    return [(Path(name).name, int(line), text) for name, line, text in found]


def pyright(files: Iterable[Path], folder: Path) -> list[Error]:
    """Run basedpyright, which brings its own node, with pyright's own rules."""
    settings = {"typeCheckingMode": "standard", "include": list(map(str, files)),
                "extraPaths": [str(ROOT), str(ROOT / "examples")],
                "reportMissingModuleSource": False, "reportMissingImports": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(folder),
               "--pythonpath", sys.executable]
    run = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    found = json.loads(run.stdout)
    return [(Path(x["file"]).name, x["range"]["start"]["line"] + 1, x["message"])
            for x in found["generalDiagnostics"] if x["severity"] == "error"]


def numbered(path: Path) -> set[int]:
    """Return the lines of a file that carry a number: those with a mistake."""
    lines = path.read_text().splitlines()
    return {k for k, line in enumerate(lines, 1) if re.search(r"# \d+", line)}
