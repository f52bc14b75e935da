"""Reads the variables of Slurm that say where a job's tasks are.

In: environment variables of a step. Out: tasks of a host, the first host, a port. Called by
`environment`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FIRST_PORT, _PORTS = 15000, 10000
_MOST_HOSTS = 1 << 16


def tasks_of_node(env: Mapping[str, str], node: int) -> int:
    """Return the number of tasks of a host from Slurm's list, such as "4(x2),1"; else -1.

    >>> tasks_of_node({"SLURM_STEP_TASKS_PER_NODE": "4(x2),1"}, 2)
    1
    """
    text = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE", "")
    counts: list[int] = []
    for part in text.split(",") if text else ():
        found = re.fullmatch(r"(\d+)(?:\(x(\d{1,6})\))?", part)
        if found is None:
            return -1
        counts += [int(found[1])] * int(found[2] or 1)
    return counts[node] if 0 <= node < len(counts) else -1


def hosts(text: str) -> list[str]:
    """Return the names of hosts in Slurm's short form; [] for what is none.

    >>> hosts("gpu[08-10,12],login")
    ['gpu08', 'gpu09', 'gpu10', 'gpu12', 'login']
    """
    found: list[str] = []
    parts = re.findall(r"(?:\[[^\]]*\]|[^,\[\]])+", text)
    if ",".join(parts) != text:  # a bracket is missing
        return []
    for part in parts:
        names = [""]
        for piece in re.findall(r"\[[^\]]*\]|[^\[\]]+", part):
            ends = _numbers(piece[1:-1]) if piece.startswith("[") else [piece]
            if not ends or len(names) * len(ends) > _MOST_HOSTS:
                return []
            names = [name + end for name in names for end in ends]
        found += names
    return found


def _numbers(text: str) -> list[str]:
    """Return the numbers of "08-10,12" as texts of the same width."""
    found: list[str] = []
    for part in text.split(","):
        bounds = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if bounds is None:
            return []
        low, high = int(bounds[1]), int(bounds[2] or bounds[1])
        if high - low >= _MOST_HOSTS:
            return []
        found += [str(k).zfill(len(bounds[1])) for k in range(low, high + 1)]
    return found


def first_host(env: Mapping[str, str]) -> str:
    """Return the host of task 0; loopback if all tasks are on one host, "" if it is unknown."""
    for name in ("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"):
        found = hosts(env.get(name, ""))
        if found:
            return found[0] if len(found) > 1 else "127.0.0.1"
    return ""


def port(env: Mapping[str, str]) -> int:
    """Return a port that all tasks of a step find alike, by the numbers of job and step; else 0."""
    job, step = env.get("SLURM_JOB_ID", ""), env.get("SLURM_STEP_ID", "")
    if not job.isdecimal():
        return 0
    return _FIRST_PORT + (int(job) + (int(step) if step.isdecimal() else 0)) % _PORTS
