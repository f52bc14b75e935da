"""`python -m tracejit`: what works here, the kernel cache, the benchmark, PyTorch scripts.

In: a subcommand. Out: text on stdout and an exit status, 0 when all is well. Called from shells.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path


def doctor(options: argparse.Namespace) -> int:
    """Print what works on this machine and what is missing; return 1 where something is broken."""
    from tracejit.debug import doctor

    findings = doctor.examine()
    print(doctor.table(findings))
    return 1 if any(finding.state == "broken" for finding in findings) else 0


def cache(options: argparse.Namespace) -> int:
    """List the kernels on disk, or remove the longest unused ones."""
    from tracejit.jit.runtime import cache_folder, cache_upkeep

    if options.action == "prune":
        removed = cache_upkeep.prune(int(options.keep * 1e6))
        print(f"removed {removed / 1e6:.2f} MB")
        return 0
    packs = sorted(cache_upkeep.entries(), key=lambda pack: pack.used)
    print(cache_folder.root_directory() or "no cache directory can be used")
    for pack in packs:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(pack.used))
        place = f"{pack.path.parent.name}/{pack.path.name}"
        print(f"  {used}  {pack.kernels:>4} kernels {pack.nbytes / 1e3:>9.1f} kB  {place}")
    total, kernels = sum(pack.nbytes for pack in packs), sum(pack.kernels for pack in packs)
    print(f"{kernels} kernels in {len(packs)} files, {total / 1e6:.2f} MB")
    return 0


def bench(options: argparse.Namespace) -> int:
    """Run the benchmark of a checkout with the rest of the command line."""
    root = Path(__file__).resolve().parent.parent
    if not (root / "bench" / "__main__.py").exists():
        print("the benchmark is part of the source checkout, not of the installed package",
              file=sys.stderr)
        return 2
    return subprocess.run([sys.executable, "-m", "bench", *options.rest], cwd=root).returncode


def run(options: argparse.Namespace) -> int:
    """Run a PyTorch script with the import name `torch` meaning tracejit."""
    from tracejit.debug.torch_scripts import run_script

    run_script(options.script, options.rest)
    return 0


def check(options: argparse.Namespace) -> int:
    """List the torch names of some files that tracejit does not have; return 1 where there are
    any."""
    from tracejit.debug.torch_scripts import names_in

    lacking = 0
    for script in options.scripts:
        found = names_in(Path(script).read_text(), script)
        for name in (name for name in found if not name.present):
            lacking += 1
            print(f"{script}:{name.line}: {name.dotted} is not in tracejit")
        print(f"{script}: {len(found)} names of torch, "
              f"{sum(not name.present for name in found)} missing")
    return 1 if lacking else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="python -m tracejit", description=__doc__.split("\n")[0])
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    commands.add_parser("doctor", help="what works here, what is missing, how to get it")
    caching = commands.add_parser("cache", help="list the kernels on disk, or prune them")
    caching.add_argument("action", nargs="?", choices=("list", "prune"), default="list")
    caching.add_argument("--keep", type=float, default=0.0, metavar="MB",
                         help="prune: how much may stay, the last used first (default 0)")
    commands.add_parser("bench", help="measure beside the peers (in a checkout)", add_help=False)
    running = commands.add_parser("run", help="run a PyTorch script on tracejit")
    running.add_argument("script")
    running.add_argument("rest", nargs=argparse.REMAINDER, help="the script's own arguments")
    checking = commands.add_parser("check", help="list torch names a script uses and we lack")
    checking.add_argument("scripts", nargs="+")
    return top


COMMANDS = {"doctor": doctor, "cache": cache, "bench": bench, "run": run, "check": check}


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; return the exit status."""
    options, unknown = parser().parse_known_args(argv)
    if options.command == "bench":
        options.rest = unknown  # options of `python -m bench`
    elif unknown:
        parser().error(f"unrecognized arguments: {' '.join(unknown)}")
    return COMMANDS[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
