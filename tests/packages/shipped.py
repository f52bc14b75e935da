"""The tests that packages ship in their sources, on tracejit beside PyTorch.

In: names of packages; those of PACKAGES without any. Out: a line for each: how many tests PyTorch
passes, how many of these tracejit passes, and which it does not. Called by `make test-packages`.
"""

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = {
    "linear_operator": "test",
    "gpytorch": "test",
    "skorch": "skorch/tests",
    "einops": "einops/tests",
    "torchsde": "tests",
}
# What tests ask of the environment: einops's, which of its backends they run; skorch's, that what
# needs models from the network fails at once.
ENVIRONMENT = {"EINOPS_TEST_BACKENDS": "numpy,torch", "HF_HUB_OFFLINE": "1"}
# Shown for each package; the rest is counted.
SHOWN = 40


def unpacked(name: str, folder: Path) -> Path:
    """Download the source distribution of the installed version; return its folder."""
    version = importlib.metadata.version(name)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            str(folder),
            f"{name}=={version}",
        ],
        check=True,
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (top,) = (path for path in folder.iterdir() if path.is_dir())
    # Some ship their tests without the file that makes the folder a package.
    (top / PACKAGES[name] / "__init__.py").touch()
    return top


def passing(top: Path, tests: str, library: str) -> set[str]:
    """Run the tests; return the names of those that pass."""
    report = top / f"{library}.xml"
    start = ["-m", "tracejit", "run"] if library == "tracejit" else []
    command = [
        sys.executable,
        *start,
        str(HERE / "run_tests.py"),
        "-q",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "--timeout=300",
        "--continue-on-collection-errors",
        f"--junitxml={report}",
        tests,
    ]
    subprocess.run(command, cwd=top, env={**os.environ, **ENVIRONMENT},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not report.exists():
        return set()
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}" for case in cases if len(case) == 0}


def main() -> None:
    for name in sys.argv[1:] or PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                top = unpacked(name, Path(folder))
            except subprocess.CalledProcessError:
                print(f"{name}: no source of the installed version, so nothing was compared",
                      flush=True)
                continue
            theirs, ours = (
                passing(top, PACKAGES[name], library) for library in ("torch", "tracejit")
            )
        if not theirs:
            print(f"{name}: no test passes on PyTorch, so nothing was compared", flush=True)
            continue
        missing = sorted(theirs - ours)
        share = 100 * (1 - len(missing) / len(theirs))
        print(
            f"{name}: {len(theirs)} pass on PyTorch, {len(theirs & ours)} of them here "
            f"({share:.2f} %)",
            flush=True,
        )
        print("".join(f"    {case}\n" for case in missing[:SHOWN]), end="", flush=True)


if __name__ == "__main__":
    main()
