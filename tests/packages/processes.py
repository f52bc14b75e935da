"""Packages that start several processes: what two learn on tracejit, one learns on PyTorch.

In: names of ways, or none for all of them. Out: a line for each, and 1 if one differs. Called by
`make test-packages`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from table import agree

HERE = Path(__file__).parent / "processes"
SECONDS = 180
RUN = ["-m", "tracejit", "run"]
LIGHTNING, ACCELERATE = str(HERE / "lightning_ddp.py"), str(HERE / "accelerate_loop.py")
LAUNCH = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
# By name: Python's arguments for one process on PyTorch, and for two on tracejit.
WAYS: dict[str, tuple[list[str], list[str]]] = {
    "pytorch_lightning, strategy ddp": ([LIGHTNING, "1", "{}"], [*RUN, LIGHTNING, "2", "{}"]),
    "accelerate, notebook_launcher": (
        [ACCELERATE, "{}", "nobody"], [*RUN, ACCELERATE, "{}", "notebook"],
    ),
    "accelerate, debug_launcher": (
        [ACCELERATE, "{}", "nobody"], [*RUN, ACCELERATE, "{}", "debug"],
    ),
    "accelerate launch": (
        [ACCELERATE, "{}", "nobody"], [*RUN, *LAUNCH, ACCELERATE, "{}", "nobody"],
    ),
    "accelerate under tracejitrun": (
        [ACCELERATE, "{}", "nobody"],
        ["-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2", *RUN,
         ACCELERATE, "{}", "nobody"],
    ),
}  # fmt: skip


def ran(arguments: list[str]) -> dict[str, Any]:
    """Run Python with the arguments; return the result that the program writes, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        command = [sys.executable, *(one.replace("{}", str(path)) for one in arguments)]
        environment = {**os.environ, "ACCELERATE_USE_CPU": "1"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {"error": f"no result after {SECONDS} s"}
        if done.returncode or not path.exists():
            return {"error": done.stderr.decode(errors="replace").strip()[-2000:]}
        return json.loads(path.read_text())


def compared(name: str) -> str:
    """Return "yes" if two processes of tracejit learn what one of PyTorch learns, else why not."""
    theirs, ours = (ran(arguments) for arguments in WAYS[name])
    for library, found in (("PyTorch", theirs), ("tracejit", ours)):
        if "error" in found:
            return f"{library}: {found['error']}"
    if (theirs.pop("processes"), ours.pop("processes")) != (1, 2):
        return "not two processes"
    wrong = [key for key in theirs if not agree(ours[key], theirs[key])]
    return "yes" if not wrong else f"differs: {', '.join(wrong)}"


def main() -> int:
    answers = {}
    for name in sys.argv[1:] or WAYS:
        answers[name] = compared(name)
        print(f"{name}: {answers[name]}", flush=True)
    return int(any(answer != "yes" for answer in answers.values()))


if __name__ == "__main__":
    sys.exit(main())
