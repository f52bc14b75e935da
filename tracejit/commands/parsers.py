"""Parsers of the command line: each command with its options, its help and examples.

In: the words behind `python -m tracejit`. Out: options, or an exit with status 2 and one line.
Called by `__main__`. `docs/command_line.md` is made from these texts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NoReturn

from tracejit import version

PROGRAM = "python -m tracejit"


class Parser(argparse.ArgumentParser):
    """Parser whose errors take one line. `examples` are lines of a shell."""

    def __init__(self, *args: object, examples: Sequence[str] = (), **kwargs: object):
        text = "".join(f"  {PROGRAM} {line}\n" for line in examples)
        super().__init__(
            *args, epilog=f"examples:\n{text}" if text else None, allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs,
        )  # type: ignore[misc]  # fmt: skip
        self.examples = list(examples)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        self.exit(2, f"{self.prog}: {message} (--help lists what there is)\n")


def parser() -> Parser:
    """Return the parser of all commands."""
    top = Parser(
        prog=PROGRAM, examples=["doctor", "run train.py --epochs 3"],
        description="Diagnoses this machine, checks and runs PyTorch programs, and keeps the "
                    "kernel cache.",
    )  # fmt: skip
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(dest="command", required=True, metavar="command",
                                  parser_class=Parser)
    _doctor(commands)
    _cache(commands)
    _check(commands)
    _run(commands)
    commands.add_parser(
        "bench", help="measure beside other libraries (in a checkout)", add_help=False,
        description="Runs `python -m bench` of the checkout. Its options follow; see "
                    "`python -m bench --help`.",
        examples=["bench --only gelu --peers none"],
    )  # fmt: skip
    return top


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words for the parser, and those for the program that a command runs.

    >>> split(["run", "-m", "package.train", "--lr", "1"])
    (['run', '-m', 'package.train'], ['--lr', '1'])
    """
    words = list(argv)
    if words[:1] == ["bench"]:
        return words[:1], words[1:]
    if words[:1] == ["run"]:
        count = 3 if words[1:2] == ["-m"] else 2
        return words[:count], words[count:]
    return words, []


def _version() -> str:
    of_torch = str(version.__version__).partition("+")[0]
    return f"tracejit {version.tracejit}, with the names of PyTorch {of_torch}"


def _doctor(commands: argparse._SubParsersAction[Parser]) -> None:
    made = commands.add_parser(
        "doctor", help="find out what works here, what is missing, how to get it",
        description="Asks about everything a captured call depends on, and compiles and runs one "
                    "kernel. Starts even if a package cannot be imported. Exit status: 0, or 1 "
                    "where something is broken.",
        examples=["doctor", "doctor --json | jq .findings"],
    )  # fmt: skip
    made.add_argument("--json", action="store_true", help="print the findings as JSON")


def _cache(commands: argparse._SubParsersAction[Parser]) -> None:
    caching = commands.add_parser(
        "cache", help="list, remove, ship the kernels on disk",
        description="Lists the kernels on disk, or does what an action says.",
        examples=["cache", "cache prune train_step", "cache export kernels.zip"],
    )  # fmt: skip
    actions = caching.add_subparsers(dest="action", metavar="action", parser_class=Parser)
    names = "captured functions, as `train_step`, `package.train.*`; default: all"
    listing = actions.add_parser(
        "list", help="list captured functions, with kernels, sizes, last use",
        description="Lists the captured functions that kernels were compiled for. A kernel that "
                    "several functions use is listed under the first.",
        examples=["cache list", "cache list 'model.*' --kernels"],
    )  # fmt: skip
    listing.add_argument("names", nargs="*", metavar="NAME", help=names)
    listing.add_argument("--kernels", action="store_true", help="list the kernels' names too")
    listing.add_argument("--json", action="store_true", help="print the list as JSON")
    pruning = actions.add_parser(
        "prune", help="remove kernels, the longest unused first",
        description="Removes kernels. Programs that need them compile them again.",
        examples=["cache prune --keep 100", "cache prune train_step"],
    )  # fmt: skip
    pruning.add_argument("names", nargs="*", metavar="NAME", help=names)
    pruning.add_argument("--keep", type=float, default=0.0, metavar="MB",
                         help="how much may stay, the last used first; default: 0")
    exporting = actions.add_parser(
        "export", help="write the kernels of this version and target into a file",
        description="Writes the kernels of this version and of TRACEJIT_TARGET into one file, and "
                    "prints its SHA-256.",
        examples=["cache export kernels.zip"],
    )  # fmt: skip
    exporting.add_argument("file", metavar="FILE", help="the archive to write")
    importing = actions.add_parser(
        "import", help="read kernels from a file into the cache",
        description="Checks an archive, and writes its kernels into the cache. Runs nothing. "
                    "Refuses other versions, other targets, changed content, and a file that "
                    "other users could have written.",
        examples=["cache import kernels.zip",
                  "cache import kernels.zip --sha256 DIGEST --for-all-users"],
    )  # fmt: skip
    importing.add_argument("file", metavar="FILE", help="an archive that `cache export` wrote")
    importing.add_argument("--sha256", default="", metavar="DIGEST",
                           help="the archive's digest as the export printed it; then its owner "
                                "does not matter")
    importing.add_argument("--for-all-users", action="store_true",
                           help="let other users read the cache, as in a container's image")


def _check(commands: argparse._SubParsersAction[Parser]) -> None:
    made = commands.add_parser(
        "check", help="list what a program uses of torch that tracejit lacks",
        description="Reads Python files, notebooks and folders, and runs nothing. Lists names of "
                    "torch, methods of tensors and keywords that are missing, the most used "
                    "first, and the other packages that are imported. A name that only raises "
                    "NotImplementedError is missing. Exit status: 0, or 1 where something is "
                    "missing or a file cannot be read.",
        examples=["check train.py", "check src notebooks/plot.ipynb --json"],
    )  # fmt: skip
    made.add_argument("paths", nargs="+", metavar="PATH",
                      help="a .py file, a notebook, or a folder of them")
    made.add_argument("--json", action="store_true", help="print what was found as JSON")


def _run(commands: argparse._SubParsersAction[Parser]) -> None:
    made = commands.add_parser(
        "run", help="run a PyTorch program on tracejit",
        description="Runs a script or a module as `__main__`. The import name `torch` means "
                    "tracejit, whose `__name__` is then `torch` too. All further words are the "
                    "program's own.",
        examples=["run train.py --epochs 3", "run -m package.train --epochs 3"],
    )  # fmt: skip
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("script", nargs="?", metavar="SCRIPT", help="the file to run")
    what.add_argument("-m", dest="module", metavar="MODULE", help="the module to run instead")


def every(top: Parser) -> Iterator[Parser]:
    """Yield a parser and those of its commands, in order."""
    yield top
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from every(one)
