"""`python -m bench`: every workload, every peer that is installed, one table.

    python -m bench                      all of it
    python -m bench --only gelu,mlp      workloads whose name contains one of these
    python -m bench --peers jax          beside jax alone
    python -m bench --json out.json      figures and conditions as JSON
"""

import argparse
import os
import sys
from pathlib import Path

from bench import cold, dispatch, networks, peers, places, pointwise, rows, table, training
from bench.measure import Workload, measure
from bench.selection import chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of workload names, comma separated")
    parser.add_argument("--peers", default="jax,torch", help="any of jax, torch; or none")
    parser.add_argument("--without-tracejit", action="store_true", help="measure the peers alone")
    parser.add_argument("--torch-compile", action="store_true", help="add torch.compile (slow)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--processes", type=int, default=5, help="processes per cold figure")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    return parser


def as_installed() -> None:
    """Start again without what pins OpenBLAS to an older processor's code, and say so.

    Every contender then runs as its wheels do by themselves; OpenBLAS reads the variable when it
    is loaded, which is before this line.
    """
    pinned = os.environ.pop("OPENBLAS_CORETYPE", None)
    if pinned is not None:
        print(f"OPENBLAS_CORETYPE={pinned} dropped for all contenders", flush=True)
        os.execv(sys.executable, [sys.executable, "-m", "bench", *sys.argv[1:]])


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 when a contender failed or results differ."""
    parser = _parser()
    options = parser.parse_args(argv)
    as_installed()
    wanted = [name for name in ("jax", "torch") if name in options.peers.split(",")]
    found = peers.find(["tracejit"] * (not options.without_tracejit) + wanted,
                       options.torch_compile)
    conditions = peers.conditions(found)
    groups: list[Workload] = [
        *pointwise.workloads(found), *rows.workloads(found), *training.workloads(found),
        *networks.workloads(found), *places.workloads(found)]
    names = chosen([*(w.name for w in groups), "cold start", "dispatch"], options.only, parser)
    print(table.conditions(conditions), end="\n\n", flush=True)
    work = {w.name: w for w in groups if w.name in names}
    results = {}
    for name, workload in work.items():
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        results[name] = measure(workload, options.rounds)
    figures: dict[str, dict[str, float | str]] = {}
    if "cold start" in names:
        present = [n for n in ("tracejit", "jax", "torch") if getattr(found, n) is not None]
        print("measuring cold start ...", file=sys.stderr, flush=True)
        figures = cold.measure(present, options.processes)

    costs: list[dispatch.Series] = []
    if "dispatch" in names:
        print("measuring dispatch ...", file=sys.stderr, flush=True)
        costs = dispatch.measure(found)

    remarks = table.remarks(results, work)
    remarks += [f"cold start, {c}: {row['error']}" for c, row in figures.items() if "error" in row]
    if results:
        print(table.steady(results), end="\n\n")
    if figures:
        print(table.cold(figures), end="\n\n")
    if costs:
        print(dispatch.table(costs), end="\n\n")
    print("\n".join(remarks))
    if options.json:
        options.json.write_text(table.as_json(results, figures, costs, conditions))
    return 1 if remarks else 0


if __name__ == "__main__":
    sys.exit(main())
