"""Draw the site's pictures: what capture does, and the training run of `start.md`.

In: matplotlib, and the code of docs/start.md. Out: SVG texts. Called by `hooks.py` at each build;
`python docs/making/pictures.py` writes them into docs/pictures/, where README shows one.
"""

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

DOCS = Path(__file__).resolve().parents[1]
INK, SOFT, BLUE, GREEN, ORANGE = "#1f2430", "#7a8194", "#3f51b5", "#2e7d32", "#c25700"
STYLE = {"svg.hashsalt": "tracejit", "svg.fonttype": "path", "font.size": 10,
         "axes.edgecolor": SOFT, "axes.spines.top": False, "axes.spines.right": False}


def svg(figure: Figure) -> str:
    """Return a figure as SVG, the same at each build; places have two decimals."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    text = re.sub(r'(?<= )(d|x|y)="[^"]*"', lambda found: _rounded(found[0]), out.getvalue())
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _rounded(text: str) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text)


def _box(axes: Any, at: tuple[float, float], size: tuple[float, float], title: str, text: str,
         colour: str, code: bool = True) -> None:
    shape = FancyBboxPatch(at, *size, boxstyle="round,pad=0.02,rounding_size=0.12",
                           facecolor="#f6f7fb", edgecolor=colour, linewidth=1.4)
    axes.add_patch(shape)
    left, top = at[0] + 0.12, at[1] + size[1]
    axes.text(left, top - 0.1, title, color=colour, weight="bold", va="top", fontsize=10.5)
    axes.text(left, top - 0.48, text, color=INK, va="top", fontsize=9.4, linespacing=1.5,
              family="monospace" if code else "sans-serif")


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], text: str,
           bend: float = 0.0) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=13, color=SOFT,
                                   connectionstyle=f"arc3,rad={bend}", linewidth=1.3))
    middle = ((start[0] + end[0]) / 2, max(start[1], end[1]) + 0.1)
    axes.text(*middle, text, ha="center", va="bottom", color=SOFT, fontsize=8.4)


def capture() -> str:
    """Draw the way of a call: function, graph with guards, kernels, replay."""
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 4.3))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, 12)
        axes.set_ylim(0, 5.4)
        axes.axis("off")
        _box(axes, (0.2, 2.9), (3.1, 2.3), "Your function",
             "@tracejit.script\ndef score(x, w, k):\n    h = tanh(x * w)\n"
             "    return (h * k).sum(1)", BLUE)
        _box(axes, (4.45, 2.9), (3.1, 2.3), "Graph",
             "%0 = mul(x, w)\n%1 = tanh(%0)\n%2 = mul(%1, k)\n%3 = sum(%2, dims=(1,))", GREEN)
        _box(axes, (8.7, 2.9), (3.1, 2.3), "Kernel",
             "for row in range(lo, hi):\n  for i in range(n):\n"
             "    s += tanh(x*w) * k\n  y[row] = s", ORANGE)
        _box(axes, (4.45, 0.25), (3.1, 1.75), "Guards",
             "x: float32, 2 dimensions\nw: float32, 1 dimension\nk: any float\nsizes: x[1] == w[0]",
             GREEN)
        _box(axes, (8.7, 0.25), (3.1, 1.75), "Every later call",
             "Guards hold: run the kernel.\nThey do not: capture again,\n"
             "and report() names the cause.", ORANGE, code=False)
        _arrow(axes, (3.36, 4.0), (4.4, 4.0), "first call")
        _arrow(axes, (7.6, 4.0), (8.65, 4.0), "fuse, compile")
        _arrow(axes, (6.0, 2.86), (6.0, 2.06), "")
        axes.text(6.12, 2.42, "what it relied on", color=SOFT, fontsize=8.4, va="center")
        _arrow(axes, (10.25, 2.86), (10.25, 2.06), "")
        _arrow(axes, (7.6, 1.1), (8.65, 1.1), "checked")
        return svg(figure)


def _run_page(page: Path) -> dict[str, Any]:
    """Run the Python of a page, as the tests do, and return its names."""
    text = page.read_text()
    inside = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    name = f"<{page.name}>"
    linecache.cache[name] = (len(inside), None, inside.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "page"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(inside, name, "exec"), names)
    return names


def training() -> str:
    """Draw the losses of docs/start.md, eager and compiled, and what the network learnt."""
    run = _run_page(DOCS / "start.md")
    tracejit, model = run["tracejit"], run["model"]
    with rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        left.plot(run["eager_losses"], color=BLUE, linewidth=2.2, label="plain function")
        every = range(0, len(run["losses"]), 15)
        left.plot(every, [run["losses"][k] for k in every], "o", color=ORANGE, markersize=4.5,
                  label="compiled, every 15th step")
        left.set(xlabel="step", ylabel="loss", title="Loss of both runs")
        left.set_ylim(bottom=0)
        left.legend(frameon=False)
        line = tracejit.linspace(-1.25, 1.25, 60)
        down, across = tracejit.meshgrid(line, line, indexing="ij")
        with tracejit.no_grad():
            chance = model(tracejit.stack([across, down], dim=-1).reshape(-1, 2)).softmax(1)[:, 1]
        right.contourf(line.numpy(), line.numpy(), chance.reshape(60, 60).numpy(), levels=6,
                       cmap="coolwarm", alpha=0.55)
        points, classes = run["points"].numpy(), run["classes"].numpy()
        right.scatter(*points.T, c=classes, cmap="coolwarm", s=6, edgecolors="none")
        right.set(title="Classes that it learnt", aspect="equal", xticks=(), yticks=())
        return svg(figure)


def all_pictures() -> dict[str, str]:
    return {"pictures/capture.svg": capture(), "pictures/training.svg": training()}


if __name__ == "__main__":
    (DOCS / "pictures").mkdir(exist_ok=True)
    for uri, text in all_pictures().items():
        (DOCS / uri).write_text(text)
