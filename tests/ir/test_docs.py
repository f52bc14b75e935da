"""The example in docs/ir.md is a graph: it reads, prints as shown and verifies."""

import re
from pathlib import Path

from tracejit.core.ops import linalg  # noqa: F401  (the example names matmul)
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.verify import verify

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ir.md"


def test_the_example_is_what_the_printer_writes():
    blocks = re.findall(r"(?:^    .*\n)+", PAGE.read_text(), re.MULTILINE)
    text = "\n".join(line[4:] for line in blocks[0].splitlines())
    graph = parse_graph(text)
    verify(graph)
    assert print_graph(graph) == text


def test_the_example_with_a_loop_is_a_graph():
    blocks = re.findall(r"(?:^    .*\n)+", PAGE.read_text(), re.MULTILINE)
    text = "\n".join(line[4:] for line in blocks[1].splitlines())
    graph = parse_graph(text)
    verify(graph)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    assert graph.nodes[0].regions
