"""Deep training steps: seconds of each stage of compiling, and how they grow with the layers.

    python -m bench.deep                     25, 50, 100, 200, 500 and 2,000 layers
    python -m bench.deep --layers 25,50      these
    python -m bench.deep --json out.json     figures as JSON

Each depth runs in a process of its own with an empty kernel cache. `growth` is how many times
longer a stage takes than at the depth before; `layers` grow by the first column.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEPTHS = "25,50,100,200,500,2000"
STAGES = ("recording", "guards", "passes", "lowering", "kernels")


def _child(layers: int, width: int) -> None:
    import tracejit

    nn = tracejit.nn
    parts = [layer for _ in range(layers)
             for layer in (nn.Linear(width, width), nn.ReLU(), nn.LayerNorm(width))]
    model = nn.Sequential(*parts)
    optimizer = tracejit.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = tracejit.randn(8, width)
    step(x)
    eager = _seconds(step, x)
    compiled = tracejit.script(step)
    first = _seconds(compiled, x)
    compiled(x)
    replay = min(_seconds(compiled, x) for _ in range(3))
    report = compiled.report()
    nodes = sum(len(graph.nodes) for graph in report.graphs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "layers": layers, "nodes": nodes, "launches": len(report.kernels), "first": first,
        **{stage: report.compile_seconds.get(stage, 0.0) for stage in STAGES},
        "replay": replay, "eager": eager, "replayed": report.cache_hits,
        "bytes a node": peak / max(nodes, 1),
    }))


def _seconds(function, x) -> float:
    started = time.perf_counter()
    function(x)
    return time.perf_counter() - started


def measure(layers: int, width: int) -> dict:
    """The figures of one depth."""
    with tempfile.TemporaryDirectory() as cache:
        run = subprocess.run(
            [sys.executable, "-m", "bench.deep", "--child", str(layers), "--width", str(width)],
            env={**os.environ, "TRACEJIT_CACHE_DIR": cache}, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1])
    return json.loads(run.stdout.strip().splitlines()[-1])


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where a step was not replayed."""
    parser = argparse.ArgumentParser(prog="python -m bench.deep",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--layers", default=DEPTHS)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child is not None:
        _child(options.child, options.width)
        return 0
    columns = ("first", *STAGES, "replay", "eager")
    print(f"{'layers':>7} {'nodes':>8} " + "".join(f"{name:>17}" for name in columns) + "  kB/node")
    rows: list[dict] = []
    for layers in map(int, options.layers.split(",")):
        row = measure(layers, options.width)
        before = rows[-1] if rows else row
        cells = [f"{row[name]:9.3f} x{row[name] / max(before[name], 1e-9):6.2f}"
                 for name in columns]
        print(f"{layers:>7} {row['nodes']:>8} " + "".join(cells)
              + f" {row['bytes a node'] / 1024:8.1f}", flush=True)
        rows.append(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any(not row["replayed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
