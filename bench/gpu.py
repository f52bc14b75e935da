"""`python -m bench.gpu`: work on a CUDA device, beside PyTorch eager and torch.compile.

    python -m bench.gpu                  all of it; needs the extra 'cuda' and a GPU
    python -m bench.gpu --json out.json  figures and conditions as JSON

In: a device. Out: a table of milliseconds a call. A turn is calls for a tenth of a second and one
synchronization; contenders take turns, and the median of turns counts. For work that only moves
memory, the table also says how many bytes a second that is.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers, training
from bench.selection import chosen

TURNS, SECONDS = 9, 0.1


@dataclass(frozen=True)
class Work:
    """A function of a library's namespace and its inputs.

    bytes  moved at least, by a fused program; 0: the work is no copy
    """

    name: str
    function: Callable[[Any], Callable[..., Any]]
    inputs: tuple[tuple[int, ...], ...]
    bytes: int = 0


def _gelu(space: Any) -> Callable[..., Any]:
    return lambda x: 0.5 * x * (1 + space.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def _norm_gelu(space: Any) -> Callable[..., Any]:
    functional = space.nn.functional
    return lambda x, w, b: functional.gelu(functional.layer_norm(x, x.shape[-1:], w, b))


def _attention(space: Any) -> Callable[..., Any]:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return ((q @ k.transpose(-2, -1)) * 0.125).softmax(-1) @ v

    return attention


LONG, ROWS = (1 << 26,), (1 << 14, 1 << 12)
BIG = 4 << 26
WORK = [
    Work("copy", lambda space: lambda x: x.clone(), (LONG,), 2 * BIG),
    Work("GELU 64M", _gelu, (LONG,), 2 * BIG),
    Work("GELU 16", _gelu, ((16,),)),
    Work("softmax of rows", lambda space: lambda x: x.softmax(1), (ROWS,), 2 * BIG),
    Work("layer_norm, GELU", _norm_gelu, (ROWS, ROWS[1:], ROWS[1:]), 2 * BIG),
    Work("sum of all", lambda space: lambda x: x.sum(), (LONG,), BIG),
    Work("sum of rows", lambda space: lambda x: x.sum(1), (ROWS,), BIG),
    Work("sum of columns", lambda space: lambda x: x.sum(0), (ROWS,), BIG),
    Work("attention 64x512x64", _attention, ((64, 512, 64),) * 3),
    Work("product 4096", lambda space: lambda a, b: a @ b, ((1 << 12, 1 << 12),) * 2),
]


def _synchronized(space: Any, call: Callable[[], Any]) -> float:
    """Return seconds a call: calls for SECONDS, then one wait for the device."""
    space.cuda.synchronize()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS:
        call()
        count += 1
        if count % 16 == 0:  # the queue must not grow without end
            space.cuda.synchronize()
    space.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def _started(work: Work, space: Any, wrap: Callable[[Any], Any]) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    inputs = [space.from_numpy(rng.standard_normal(shape, dtype=np.float32)).to("cuda")
              for shape in work.inputs]
    function = wrap(work.function(space))
    return lambda: function(*inputs)


def _training(space: Any, wrap: Callable[[Any], Any], count: int) -> Callable[[], Any]:
    model = training.mlp(space, training.WIDE).to("cuda")
    optimizer = space.optim.Adam(model.parameters(), lr=1e-3)

    @wrap
    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        loss = space.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, target = (space.from_numpy(a).to("cuda") for a in training.batch(training.WIDE, count))
    return lambda: step(x, target)


def _measured(starters: Sequence[tuple[str, Any, Callable[[], Any]]]) -> dict[str, Any]:
    """Return figures by contender: the first call's seconds, the median turn, the result."""
    found: dict[str, Any] = {}
    calls = {}
    for column, space, start in starters:
        try:
            call = start()
            begin = time.perf_counter()
            result = call()
            space.cuda.synchronize()
            first = time.perf_counter() - begin
            numbers = np.asarray(result.detach().cpu().numpy(), np.float64)
            call()
            calls[column] = space, call
            found[column] = {"first": first, "turns": [], "result": numbers}
        except Exception as error:
            found[column] = {"error": f"{type(error).__name__}: {error}"[:300]}
    for _ in range(TURNS):
        for column, (space, call) in calls.items():
            found[column]["turns"].append(_synchronized(space, call))
    want = next((f["result"] for c, f in found.items() if c.startswith("torch") and "result" in f),
                None)
    for figures in found.values():
        if "result" in figures:
            got = figures.pop("result")
            figures["seconds"] = statistics.median(figures["turns"])
            if want is not None:
                scale = float(np.max(np.abs(want), initial=0)) or 1.0
                figures["difference"] = float(np.max(np.abs(got - want), initial=0)) / scale
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure and print. The exit status is 1 if a contender failed or results differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of names, comma separated")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(argv)
    found = peers.find(["tracejit", "torch"], torch_compile=True)
    columns = found.torch_like()
    conditions = peers.conditions(found)
    conditions["device"] = found.tracejit and found.tracejit.cuda.get_device_name(0)
    print(conditions, flush=True)
    print(f"{'':>22}" + "".join(f"{c:>18}" for c, *_ in columns) + f"{'GB/s':>8}", flush=True)
    results, bad = {}, False
    work: list[tuple[str, int, Any]] = [
        (w.name, w.bytes, lambda space, wrap, w=w: _started(w, space, wrap)) for w in WORK]
    work += [(f"MLP step, Adam, {n}", 0, lambda space, wrap, n=n: _training(space, wrap, n))
             for n in (128, 4096)]
    names = chosen((name for name, *_ in work), options.only, parser)
    for name, moved, start in work:
        if name not in names:
            continue
        figures = _measured([(c, s, partial(start, s, wrap)) for c, s, wrap in columns])
        results[name] = figures
        bad |= any("error" in f or f.get("difference", 0) > 1e-3 for f in figures.values())
        cells = [f"{f['seconds'] * 1e3:.4f}" if "seconds" in f else "failed"
                 for f in figures.values()]
        ours = figures["tracejit"].get("seconds")
        rate = f"{moved / ours / 1e9:.0f}" if moved and ours else ""
        print(f"{name:>22}" + "".join(f"{c:>18}" for c in cells) + f"{rate:>8}", flush=True)
        for column, f in figures.items():
            if "error" in f or f.get("difference", 0) > 1e-3:
                print(f"    {column}: {f.get('error', f.get('difference'))}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"conditions": conditions, "work": results}, indent=1))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
