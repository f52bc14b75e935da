"""Every other supported Python of this machine: `python -m tests.pythons` prints their paths.

In: PATH and the folders of pyenv. Out: one path a line, of the first found of each version but the
one that runs this; on stderr, which versions were not there. `make test-pythons` runs the slice
of tests/slice.txt on each.
"""

import os
import subprocess
import sys
from pathlib import Path

VERSIONS = [(3, 11), (3, 12), (3, 13)]
NEXT = [(3, 14)]  # looked for and named, but run from when `requires-python` admits it
ASK = "import sys, venv, ensurepip; print(*sys.version_info[:2])"


def folders(path, home):
    """The folders to look in: those of PATH first, then those of pyenv's versions.

    Its shims on PATH stand for versions that may not be chosen, and fail when they are asked.
    """
    pyenv = sorted(Path(home, ".pyenv", "versions").glob("*/bin"), reverse=True)
    return [Path(one) for one in path.split(os.pathsep) if one] + pyenv


def answers(python):
    """The version that an interpreter says it is, or None where it does not start."""
    try:
        run = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, run.stdout.split())) if run.returncode == 0 else None


def found(versions, places, ask=answers):
    """The first interpreter of each version that starts and is what its name says."""
    paths = {}
    for version in versions:
        name = f"python{version[0]}.{version[1]}"
        candidates = (folder / name for folder in places)
        first = next((p for p in candidates if p.is_file() and ask(p) == version), None)
        if first is not None:
            paths[version] = first
    return paths


def main():
    versions = [one for one in VERSIONS + NEXT if one != sys.version_info[:2]]
    paths = found(versions, folders(os.environ.get("PATH", ""), Path.home()))
    for version in versions:
        name = f"Python {version[0]}.{version[1]}"
        if version not in paths:
            print(f"{name}: not on this machine", file=sys.stderr)
        elif version in NEXT:
            print(f"{name}: here, but not supported yet", file=sys.stderr)
        else:
            print(paths[version])


if __name__ == "__main__":
    main()
