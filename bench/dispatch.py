"""What a call itself costs: replays that compute next to nothing, against what they may cost.

    python -m bench --only dispatch

In: the peers found. Out: microseconds per call, the least of many runs, of functions with a growing
number of tensors, parameters (also where the result gets a history, with the last one alive as in
training loops) and guarded Python values, the slope of each by least squares, and a
whole AdamW step without the time its kernels take. Called by `bench.__main__`.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.peers import Peers

# Microseconds a call may take: at all, and for each tensor (arguments and results), parameter
# (with buffers and optimizer state) and guarded Python value.
BASE, TENSOR, PARAMETER, VALUE = 1.0, 0.4, 0.1, 0.05
ELEMENTS = 4
COUNTS = {
    "tensors": (1, 4, 16),
    "parameters": (0, 10, 100, 400),
    "parameters, with gradients": (10, 100, 400),
    "values": (0, 20, 200),
}
STEP = (2, 20, 100)
_TURN = 2e-3  # seconds of calls between two looks at the clock
_TURNS = 60

Call = Callable[[], Any]


@dataclass
class Series:
    """One kind of thing a call depends on: microseconds per call, by contender and count."""

    kind: str
    counts: tuple[int, ...]
    allowed: list[float]
    measured: dict[str, list[float]] = field(default_factory=dict)

    def slope(self, contender: str) -> float:
        """Microseconds for one more of the kind, by least squares."""
        return float(np.polyfit(self.counts, self.measured[contender], 1)[0])


def least(call: Call) -> float:
    """Microseconds per call: the least of many short runs, since whatever disturbs only adds."""
    for _ in range(5):
        call()
    begin = time.perf_counter()
    call()
    number = range(max(1, int(_TURN / max(time.perf_counter() - begin, 1e-7))))
    best = float("inf")
    gc.collect()
    for _ in range(_TURNS):
        begin = time.perf_counter()
        for _ in number:
            call()
        best = min(best, (time.perf_counter() - begin) / len(number))
    return best * 1e6


# -- the functions ----------------------------------------------------------------------------


def _compiled_text(text: str, names: dict[str, Any]) -> Any:
    namespace = {"__name__": "bench.generated", **names}
    exec(compile(text, "<bench dispatch>", "exec"), namespace)
    return namespace["run"]


def of_tensors(count: int) -> Any:
    """A sum of `count` arguments."""
    names = [f"t{k}" for k in range(count)]
    return _compiled_text(f"def run({', '.join(names)}):\n    return {' + '.join(names)} + 1.0", {})


def of_values(count: int) -> Any:
    """One addition behind `count` questions about attributes, globals and dict entries."""
    holder, table = type("Holder", (), {})(), {}
    names: dict[str, Any] = {"holder": holder, "table": table}
    lines = ["def run(x):"]
    for k in range(count):
        if k % 3 == 0:
            setattr(holder, f"a{k}", k)
            read = f"holder.a{k}"
        elif k % 3 == 1:
            table[f"k{k}"] = k
            read = f"table['k{k}']"
        else:
            names[f"g{k}"] = k
            read = f"g{k}"
        lines.append(f"    if {read} < 0: x = x + 1.0")
    return _compiled_text("\n".join([*lines, "    return x + 1.0"]), names)


def affine_model(space: Any, parameters: int) -> Any:
    """A chain of modules with a weight and a bias each; elementwise, so that it costs little."""

    class Affine(space.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = space.nn.Parameter(space.ones(ELEMENTS))
            self.bias = space.nn.Parameter(space.ones(ELEMENTS))

        def forward(self, x: Any) -> Any:
            return x * self.weight + self.bias

    return space.nn.Sequential(*[Affine() for _ in range(parameters // 2)])


# -- starting contenders ------------------------------------------------------------------------


def _torch_like(space: Any, wrap: Any, kind: str, count: int) -> Call:
    x = space.ones(ELEMENTS)
    if kind == "tensors":
        run, given = wrap(of_tensors(count)), [space.ones(ELEMENTS) for _ in range(count)]
        return lambda: run(*given)
    if kind == "values":
        run = wrap(of_values(count))
    else:
        model = affine_model(space, count)
        run = wrap(lambda x: model(x) * 1.0)
    last: list[Any] = [None]

    def call() -> Any:
        last[0] = run(x)

    return call if "gradients" in kind else lambda: run(x)


def _jax(jax: Any, kind: str, count: int) -> Call:
    x = jax.numpy.ones(ELEMENTS)
    if kind == "tensors":
        run, given = jax.jit(of_tensors(count)), [jax.numpy.ones(ELEMENTS) for _ in range(count)]
        return lambda: run(*given)
    if kind == "values":
        run = jax.jit(of_values(count))  # reads them once and for all
        return lambda: run(x)
    weights = [(jax.numpy.ones(ELEMENTS), jax.numpy.ones(ELEMENTS)) for _ in range(count // 2)]

    @jax.jit
    def chain(weights: Any, x: Any) -> Any:
        for weight, bias in weights:
            x = x * weight + bias
        return x * 1.0

    return lambda: chain(weights, x)


def _contenders(peers: Peers, kind: str, count: int) -> Iterator[tuple[str, Any, Call]]:
    if peers.tracejit is not None:
        space = peers.tracejit
        mode = space.enable_grad if "gradients" in kind else space.no_grad
        yield "tracejit", mode, _torch_like(space, space.script, kind, count)
    if peers.jax is not None and "gradients" not in kind:
        yield "jax.jit", contextlib.nullcontext, _jax(peers.jax, kind, count)
    if peers.torch is not None:
        space = peers.torch
        mode = space.enable_grad if "gradients" in kind else space.no_grad
        yield "torch eager", mode, _torch_like(space, lambda step: step, kind, count)
        if peers.torch_compile:
            yield "torch.compile", mode, _torch_like(space, space.compile, kind, count)


def _allowed(kind: str, count: int) -> float:
    each = {"tensors": TENSOR, "values": VALUE}.get(kind, PARAMETER)
    others = 1 if kind == "tensors" else 2  # the result, and x
    return BASE + others * TENSOR + count * each


def measure(peers: Peers) -> list[Series]:
    """Every series, by every contender that is there."""
    found = []
    for kind, counts in COUNTS.items():
        series = Series(kind, counts, [_allowed(kind, count) for count in counts])
        for count in counts:
            for name, mode, call in _contenders(peers, kind, count):
                with mode():
                    series.measured.setdefault(name, []).append(least(call))
        found.append(series)
    if peers.tracejit is not None:
        found.append(whole_step(peers.tracejit, peers.torch))
    return found


# -- a whole training step ------------------------------------------------------------------------


def whole_step(space: Any, torch: Any) -> Series:
    """AdamW over a growing number of parameters, what the kernels take not counted.

    Three tensors go in and out, each parameter gets a gradient tensor and has three of state.
    """
    allowed = [BASE + 3 * TENSOR + n * (TENSOR + 4 * PARAMETER) for n in STEP]
    series = Series("AdamW step, parameters", STEP, allowed)
    for count in STEP:
        call, compiled = _adamw(space, space.script, count)
        whole = least(call)
        native = least(_native(compiled))
        series.measured.setdefault("tracejit", []).append(whole - native)
        series.measured.setdefault("whole call", []).append(whole)
        if torch is not None:
            plain, _ = _adamw(torch, lambda step: step, count)
            series.measured.setdefault("torch eager", []).append(least(plain))
    return series


def _adamw(space: Any, wrap: Any, count: int) -> tuple[Call, Any]:
    model = affine_model(space, count)
    optimizer = space.optim.AdamW(model.parameters())

    @wrap
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x, y = space.ones(ELEMENTS), space.ones(ELEMENTS)
    step(x, y), step(x, y)
    return lambda: step(x, y), step


def _native(compiled: Any) -> Call:
    """The program's native call alone, on the memory of the last call."""
    (_, entry), *_ = compiled.entries
    binding = next(iter(entry.segment.bindings.values())).binding
    frame, native = binding.frames[-1], binding.native
    return lambda: native.call(frame.job)


def table(found: list[Series]) -> str:
    """A line per figure, what is asked beside what was measured."""
    lines = ["dispatch: microseconds per call (asked: "
             f"{BASE} + {TENSOR}/tensor + {PARAMETER}/parameter + {VALUE}/guarded value)"]
    for series in found:
        names = list(series.measured)
        lines.append(f"\n{series.kind:>24} " + "".join(f"{n:>15}" for n in ["asked", *names]))
        for k, count in enumerate(series.counts):
            figures = [series.allowed[k], *(series.measured[n][k] for n in names)]
            lines.append(f"{count:>24} " + "".join(f"{figure:15.2f}" for figure in figures))
        slopes = [float(np.polyfit(series.counts, series.allowed, 1)[0]),
                  *map(series.slope, names)]
        lines.append(f"{'each':>24} " + "".join(f"{slope:15.3f}" for slope in slopes))
    return "\n".join(lines)
