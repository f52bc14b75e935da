"""Kernel texts under review: `make golden` rewrites them, a change here is a change of what
runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.lowering.lower import describe, lower
from tracejit.core.ops.types import float64, int64
from tracejit.jit.passes.open_composites import open_composites

sys.path.insert(0, str(Path(__file__).parent.parent / "lowering"))
from execution import graph_of

FOLDER = Path(__file__).parent / "kernels"


def gelu():
    graph, (x, bias) = graph_of(("A", "B"), ("B",))
    y = x + bias
    graph.outputs = [0.5 * y * (1 + (0.7978845608 * (y + 0.044715 * y * y * y)).tanh())]
    return graph


def softmax_cross_entropy():
    """The mean loss of logits and classes, and its gradient."""
    graph, (x, target) = graph_of(("N", "C"), (("N",), int64))
    shifted = x - x.amax(dim=1, keepdim=True)
    total = shifted.exp().sum(dim=1, keepdim=True)
    picked = (shifted - total.log()).gather(1, target.unsqueeze(1))
    classes = target.unsqueeze(1) == _numbers(x)
    graph.outputs = [-picked.mean(), (shifted.exp() / total - classes.float()) / x.shape[0]]
    return graph


def _numbers(x):
    from tracejit.core.ops.creation import iota

    return iota(x.shape[1], x)


def layer_norm_backward():
    graph, (x, w, g) = graph_of(("N", "C"), ("C",), ("N", "C"))
    d = x - x.mean(dim=1, keepdim=True)
    r = ((d * d).mean(dim=1, keepdim=True) + 1e-5).rsqrt()
    y, h = d * r, g * w
    grad = (h - h.mean(dim=1, keepdim=True) - y * (h * y).mean(dim=1, keepdim=True)) * r
    graph.outputs = [grad, (g * y).sum(dim=0), g.sum(dim=0)]
    return graph


def adam():
    """Three parameters, one of them a matrix: one kernel."""
    shapes = [("A", "B"), ("B",), ("C",)]
    graph, values = graph_of(*[s for s in shapes for _ in range(4)], ((), float64), ((), float64))
    lr, step = values[-2:]
    for k in range(len(shapes)):
        p, g, m, v = values[4 * k : 4 * k + 4]
        m2, v2 = m + (g - m) * 0.1, v * 0.999 + g * g * 0.001
        size = lr / (1 - 0.9**step)
        root = (v2.sqrt() / (1 - 0.999**step).sqrt().float()) + 1e-8
        graph.writes += [(p, p - m2 / root * size.float()), (m, m2), (v, v2)]
    graph.writes.append((step, step + 1))
    return graph


def norm_of_everything():
    graph, (x, y) = graph_of(("A", "B"), ("C",))
    graph.outputs = [((x * x).sum() + (y * y).sum()).sqrt()]
    for v in graph.inputs:
        v.type.shape[0].scope.hints.update(A=5000, C=50000)
    return graph


def attention_heads():
    """Heads apart: a copy with the bias added, then products with folded transposes."""
    graph, (x, bias) = graph_of(("A", "B", "C", 8), ("C", 8))
    q = (x + bias).permute(0, 2, 1, 3).reshape(x.shape[0] * x.shape[2], x.shape[1], 8)
    graph.outputs = [q @ q.transpose(1, 2)]
    return graph


def embedding():
    graph, (w, i) = graph_of(("A", "B"), (("N",), int64))
    graph.outputs = [w[i] * 2]
    return graph


def falling_body():
    """A loop of numbers and of a small vector, which leaves each position: one kernel."""
    return parse_graph("""
    graph falling(in0: float32[3], in1: float32[3], in2: float32[], in3: float32[s0])
        where s0=9 in3.size[0]:
      %0: float32[3], %1: float32[3], %2: float32[s0] =
          for_loop(%in0, %in1, %in3, %in2, trip_count=s0, carried=2, scanned=1, reverse=False) {
        graph step(in0: int64[], in1: float32[3], in2: float32[3], in3: float32[], in4: float32[]):
          %0: float32[3] = mul(%in2, %in3)
          %1: float32[3] = add(%in1, %0)
          %2: float32[3] = mul(%in2, %in4)
          %3: float32[] = sum(%1, dims=(0,), keepdim=False)
          return %1, %2, %3
      }
      return %0, %1, %2
    """)


EXAMPLES = [
    gelu, softmax_cross_entropy, layer_norm_backward, adam, norm_of_everything, attention_heads,
    embedding, falling_body,
]  # fmt: skip


def printed(graph):
    """The program, one line for each instruction, then each kernel's text."""
    program = lower(open_composites(graph))
    texts = [k.source for k in program.kernels.values() if not k.name.startswith("matmul_")]
    lines = "".join(f"# {line}\n" for line in describe(program).splitlines())
    return lines + "\n" + "\n\n".join(texts)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda f: f.__name__)
def test_kernel_text(example):
    path = FOLDER / f"{example.__name__}.txt"
    text = printed(example())
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert path.exists(), f"{path} is missing: run `make golden` and review what it wrote"
    assert text == path.read_text(), f"kernels of {example.__name__} changed: `make golden`, review"


def test_texts_do_not_depend_on_when_they_are_made():
    assert printed(softmax_cross_entropy()) == printed(softmax_cross_entropy())
