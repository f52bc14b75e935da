"""Digests tell programs apart, and nothing else; copies are independent."""

import pytest

from tracejit.core.ops import pointwise, slicing  # noqa: F401  (the ops the texts name)
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.digest import digest, static_key
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.sizes import ShapeEnv

BASE = """graph step(in0: float32[s0, s1] "x", in1: float32[s1] "y") where
    s0=8 in0.size[0], s1=3 in0.size[1]:
  %0: float32[s0, s1] = mul(%in0, 2.0)  # train.py:3: y = x * 2
  %1: float32[s0, s1] = add(%0, %in1)
  %2: float32[(s0 // 2), s1] = slice(%1, dim=0, start=0, stop=(s0 // 2), step=1)
  write %in1 <- %in1
  return %2, %0
"""


@pytest.mark.parametrize("old, new", [
    ("graph step", "graph other"), ('"x"', '"model.x"'), ("s0=8", "s0=100"),
    ("train.py:3", "a.py:9"), ("%1", "%one"), ("s0", "rows"), ("s1", "a0"),
    ("# train.py:3: y = x * 2", ""),
])  # fmt: skip
def test_names_examples_and_locations_do_not_matter(old, new):
    assert old in BASE
    assert digest(parse_graph(BASE)) == digest(parse_graph(BASE.replace(old, new)))


@pytest.mark.parametrize("old, new", [
    ("2.0)", "2)"), ("2.0)", "2.5)"), ("2.0)", "-2.0)"), ("mul(", "div("), ("%2, %0", "%0, %2"),
    ("%2, %0", "%2, %1"), ("write %in1 <- %in1", ""), ("add(%0, %in1)", "add(%in1, %0)"),
    ("start=0", "start=1"), ("in0.size[1]", "in1.size[0]"),
    ('float32[s1] "y"', 'float32[s1] weak "y"'),
    ("(s0 // 2)", "(s0 // 3)"), ('float32[s0, s1] "x"', 'float32[s0, s1] strides[1, s0] "x"'),
    ('float32[s1] "y"', 'float32[s0] "y"'), ("= add", "= detached add"),
    ("return", "%3: float32[s0, s1] = neg(%0) return"),
    ('float32[s1] "y"', 'float32[s1] on cuda:0 "y"'),
])  # fmt: skip
def test_everything_else_does(old, new):
    assert old in BASE
    assert digest(parse_graph(BASE)) != digest(parse_graph(BASE.replace(old, new)))


def test_learnt_equalities_matter():
    equal = BASE + "  equal s1 = s0\n"
    assert digest(parse_graph(BASE)) != digest(parse_graph(equal))


def test_keys_of_static_data():
    scope = ShapeEnv()
    s = scope.symbol(3)
    distinct = [0.0, -0.0, 0, False, None, 1, 1.0, True, "1", (1,), [1], s, s + 1, 2 * s, s // 2,
                float("nan"), float("inf"), 1j, slice(1), slice(1, 2)]
    keys = [static_key(x) for x in distinct]
    assert len(set(keys)) == len(keys)
    assert static_key(float("nan")) == static_key(float("nan"))
    assert static_key((s * 2, 1.0)) == static_key((s + s, 1.0))
    assert scope.guards == []


def test_known_equal_sizes_have_one_key():
    scope = ShapeEnv()
    a, b = scope.symbol(3), scope.symbol(3)
    assert static_key(a) != static_key(b)
    assert a == b
    assert static_key(a) == static_key(b)


def test_a_copy_says_the_same_and_stands_alone():
    graph = parse_graph(BASE.replace('float32[s0, s1] "x"', 'float32[s0, s1] strides[1, s0] "x"'))
    graph.inputs[1].is_weak = True
    text = print_graph(graph)
    copy, values = copy_graph(graph)
    assert print_graph(copy) == text and digest(copy) == digest(graph)
    assert all(v.graph is copy for v in values.values())
    assert copy.scope is graph.scope
    copy.nodes[0].attributes["x"] = 1
    copy.nodes.pop()
    copy.outputs = []
    copy.symbol_sources.clear()
    assert print_graph(graph) == text


def test_regions_are_copied():
    graph = parse_graph("""graph f(in0: float32[2]):
      %0: float32[2] = neg(%in0) {
        graph then(in0: float32[2]):
          %0: float32[2] = mul(%in0, 2.0)
          return %0
      }
      return %0""")
    text, copy = print_graph(graph), copy_graph(graph)[0]
    assert digest(copy) == digest(graph)
    copy.nodes[0].regions[0].nodes[0].inputs = (copy.nodes[0].regions[0].inputs[0], 3.0)
    assert print_graph(graph) == text
    assert digest(copy) != digest(graph)
