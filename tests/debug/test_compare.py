"""Comparison of a captured function with eager execution: each node from the same operands."""

import tracejit


def rearranged(x):
    return (x.sum(0) * 3).reshape(2, 2).transpose(0, 1).clone()


def test_a_node_is_not_bad_because_one_before_it_was():
    tracejit.manual_seed(0)
    first, *others = tracejit.compare(rearranged, tracejit.randn(1000, 4)).nodes
    assert first.op == "sum" and first.max_ulp > 0  # it adds in another order
    assert [node.max_ulp for node in others] == [0.0] * len(others)
    assert others[-1].max_ulp_float64 > 0  # of all nodes together


def halved(x, steps):
    total = x
    while total.sum() > 1.0:
        total = total / 2
    for k in range(steps):
        total = total + x[k]
    return total


def test_nodes_with_regions():
    found = tracejit.compare(halved, tracejit.linspace(1, 9, 8), 3)
    assert found.first_bad is None and {"while_loop"} <= {node.op for node in found.nodes}


def test_gradients_through_a_loop():
    def f(x):
        y = x.detach().requires_grad_()
        z = y
        for _ in range(y.shape[0]):
            z = (z * 1.5).sin()
        z.sum().backward()
        return y.grad

    assert tracejit.compare(f, tracejit.linspace(0, 1, 20)).first_bad is None
