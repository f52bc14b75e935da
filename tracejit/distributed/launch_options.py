"""Options of the launcher: torchrun's names, in both spellings, and its variables as defaults.

In: arguments of the command line. Out: a namespace. Called by `run`.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from tracejit.core.memory.threads import available_threads

ENDPOINT_BACKENDS = ("static", "c10d")


class _FromEnvironment(argparse.Action):
    """Option whose default is a variable: --max-restarts is PET_MAX_RESTARTS."""

    def __init__(self, dest: str, default: Any = None, type: Any = None, **given: Any) -> None:
        told = os.environ.get(f"PET_{dest.upper()}")
        if told is not None:
            default = type(told) if type is not None else told
        super().__init__(dest=dest, default=default, type=type, **given)

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, values)


def _option(parser: argparse.ArgumentParser, name: str, **given: Any) -> None:
    """Add an option that may be written with - or _."""
    spelled = dict.fromkeys([f"--{name}", f"--{name.replace('-', '_')}"])
    parser.add_argument(*spelled, action=_FromEnvironment, **given)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the launcher's options; `parse` adds the program and its arguments."""
    made = argparse.ArgumentParser(
        prog="tracejitrun", description="Start the processes of a job, and watch over them."
    )
    _option(made, "nnodes", default="1", help="number of hosts")
    _option(made, "nproc-per-node", default="1", help="processes on this host; auto or cpu: one "
                                                      "for each core")  # fmt: skip
    _option(made, "node-rank", type=int, default=0, help="number of this host, from 0 on")
    _option(made, "master-addr", default="127.0.0.1", help="address of host 0")
    _option(made, "master-port", type=int, default=29500, help="port on host 0 for the job")
    _option(made, "local-addr", default=None, help="address of this host; not needed")
    made.add_argument("--standalone", action="store_true", help="one host, on a free port")
    _option(made, "max-restarts", type=int, default=0, help="start all again so often")
    _option(made, "monitor-interval", type=float, default=0.1,
            help="seconds between looks at the processes")  # fmt: skip
    _option(made, "rdzv-backend", default="static", help="static or c10d: both mean the master")
    _option(made, "rdzv-endpoint", default="", help="address:port of host 0")
    _option(made, "rdzv-id", default="none", help="name of the job")
    _option(made, "rdzv-conf", default="", help="taken, and without effect")
    _option(made, "start-method", default="spawn", choices=["spawn", "fork", "forkserver"],
            help="taken, and without effect: each process is a new interpreter")  # fmt: skip
    _option(made, "role", default="default", help="name of the processes' role")
    _option(made, "log-dir", default=None, help="folder for a log file of each process and stream")
    _option(made, "redirects", default="0", help="streams that go to files: 0 none, 1 stdout, 2 "
                                                 "stderr, 3 both; or by rank: 0:1,1:3")  # fmt: skip
    _option(made, "tee", default="0", help="streams that go to files and to the terminal")
    made.add_argument("-r", dest="redirects", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
    made.add_argument("-t", dest="tee", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
    made.add_argument("-m", "--module", action="store_true", help="the program is a module's name")
    made.add_argument("--no-python", "--no_python", action="store_true",
                      help="the program is a command")  # fmt: skip
    return made


def parse(
    arguments: list[str] | None = None, reader: argparse.ArgumentParser | None = None
) -> argparse.Namespace:
    """Return the options, with numbers where texts were given. Exits where they contradict."""
    reader = parser() if reader is None else reader
    reader.add_argument("program", help="script, module or command")
    reader.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return checked(reader, reader.parse_args(arguments))


def checked(reader: argparse.ArgumentParser, found: argparse.Namespace) -> argparse.Namespace:
    """Return options with numbers where texts were given. Exits where they contradict."""
    low, _, high = str(found.nnodes).partition(":")
    if high and high != low:
        reader.error("--nnodes: the number of hosts is fixed; give one number")
    try:
        found.nnodes = int(low)
        found.nproc_per_node = processes(str(found.nproc_per_node))
        streams(found.redirects, found.nproc_per_node)
        streams(found.tee, found.nproc_per_node)
    except ValueError as error:
        reader.error(str(error))
    if found.rdzv_backend not in ENDPOINT_BACKENDS:
        reader.error(f"--rdzv-backend {found.rdzv_backend} is not available: static and c10d are")
    if found.rdzv_endpoint:
        address, _, port = found.rdzv_endpoint.rpartition(":")
        found.master_addr, found.master_port = (
            (address, int(port)) if address else (port, found.master_port)
        )
    if found.standalone:
        found.nnodes, found.node_rank = 1, 0
        found.master_addr, found.master_port = "127.0.0.1", 0
    if not 0 <= found.node_rank < found.nnodes:
        reader.error(f"--node-rank {found.node_rank} is not below --nnodes {found.nnodes}")
    if found.module and found.no_python:
        reader.error("--module and --no-python contradict each other")
    return found


def processes(text: str) -> int:
    """Return the number of processes that a text stands for; ValueError for others.

    >>> processes("3")
    3
    """
    if text in ("auto", "cpu"):
        return available_threads()
    if not text.isdecimal() or not int(text):
        raise ValueError(f"--nproc-per-node: expected a number, auto or cpu, got {text!r}")
    return int(text)


def streams(text: str, count: int) -> list[int]:
    """Return for each local rank which streams are meant: bit 1 is stdout, bit 2 stderr.

    >>> streams("3", 2), streams("0:1,1:3", 2)
    ([3, 3], [1, 3])
    """
    if text.isdecimal() and int(text) <= 3:
        return [int(text)] * count
    found = [0] * count
    for part in text.split(","):
        rank, _, value = part.partition(":")
        if not rank.isdecimal() or value not in ("0", "1", "2", "3") or int(rank) >= count:
            raise ValueError(f"expected 0 to 3, or pairs like 0:1,1:3, got {text!r}")
        found[int(rank)] = int(value)
    return found
