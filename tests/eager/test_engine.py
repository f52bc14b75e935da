"""The engine where depth, order, threads and memory matter; compiled calls as one node; anomaly
mode.
"""

import subprocess
import sys
import threading
import warnings

import pytest

import tracejit
from tracejit.core.eager import tape


def leaf(*values):
    return tracejit.tensor(list(values), requires_grad=True)


@pytest.mark.full
def test_a_chain_of_100000_nodes():
    code = (
        "import tracejit\n"
        "x = tracejit.ones(2, requires_grad=True)\n"
        "y = x\n"
        "for _ in range(100_000):\n"
        "    y = y * 1.0\n"
        "y.sum().backward()\n"
        "assert x.grad.tolist() == [1, 1]\n"
        "z = x\n"
        "for _ in range(100_000):\n"
        "    z = z + 1\n"
        "del y, z\n"  # dropped without a backward: the whole chain is freed at once
        "v = tracejit.ones(100_000)\n"
        "for _ in range(20_000):\n"
        "    v = v[1:]\n"
        "del v\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done.stderr[-2000:]


def test_views_of_views_regenerate_without_recursion():
    base = tracejit.zeros(6000)
    v = base
    for _ in range(5000):
        v = v[1:]
    base.add_(leaf(2.0))
    assert v.requires_grad
    (g,) = tracejit.autograd.grad(v.sum(), base)
    assert g.sum().item() == 1000


def test_wide_graph_visits_each_node_once():
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y  # 2**60 paths
    y.sum().backward()
    assert x.grad.item() == 2.0**60


def test_gradient_buffers_are_taken_over_when_nobody_else_holds_them():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seen = []
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: seen.append([g.data_ptr() for g in gi]))
    y.sum().backward()
    assert x.grad.data_ptr() == seen[0][0] and w.grad.data_ptr() == seen[0][1]


def test_accumulation_writes_the_same_buffer():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    before, version = x.grad, x.grad._version
    address = before.data_ptr()
    (x * x).sum().backward()
    assert x.grad is before and before.data_ptr() == address and before._version == version + 1


def test_gradients_never_alias_results_or_each_other():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)

    class Pass(tracejit.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            out = a * b
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, grad):
            (out,) = ctx.saved_tensors
            return out, out

    z = Pass.apply(x, y)
    z.sum().backward()
    x.grad.zero_()
    assert y.grad.tolist() == [3, 8] and z.tolist() == [3, 8]


def test_backward_in_a_thread_has_its_own_modes():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    found = []

    def work():
        found.append(tracejit.is_grad_enabled())
        y.backward()

    with tracejit.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [True] and x.grad.tolist() == [2, 4]


def test_an_error_in_a_hook_leaves_grad_mode_as_it_was():
    x = leaf(1.0)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    assert tracejit.is_grad_enabled()


def test_wrong_hook_results():
    for bad, error in ((lambda g: "no", TypeError), (lambda g: g.double(), RuntimeError)):
        x = leaf(1.0)
        x.register_hook(bad)
        with pytest.raises(error, match="hook"):
            (x * 2).sum().backward()
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(lambda gi, go: (None, None, None, None))
    with pytest.raises(RuntimeError, match="incorrect number"):
        y.sum().backward()


def test_releasing_as_it_goes():
    """A backward without retain_graph lets go of each node's saved tensors when the node has
    run.
    """
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y * y
    node = z.grad_fn
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        node._saved_self  # noqa: B018


def compiled_square(x, saved=None):
    out = (x.detach() * x.detach()).detach()

    def backward(grads, create_graph):
        return (grads[0] * 2 * (x if create_graph else x.detach()),)

    node = tape.record_custom("CompiledBackward", (x,), (out,), backward, saved=saved or (x,))
    return out, node


def test_a_compiled_call_is_one_node():
    x = leaf(1.0, 2.0)
    out, node = compiled_square(x)
    assert out.grad_fn is node and node.name() == "CompiledBackward" == type(node).__name__
    assert node.next_functions[0][0].variable is x
    (g,) = tracejit.autograd.grad(out.sum(), x, create_graph=True)
    (h,) = tracejit.autograd.grad(g.sum(), x, retain_graph=True)
    assert g.tolist() == [2, 4] and h.tolist() == [2, 2]
    out.sum().backward()
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()


def test_a_compiled_call_notices_writes_to_what_it_saved():
    x, w = leaf(1.0, 2.0), tracejit.ones(2)
    out, _ = compiled_square(x, saved=(w,))
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_compiled_call_without_gradients_is_not_recorded():
    assert compiled_square(tracejit.ones(2))[1] is None
    with tracejit.no_grad():
        assert compiled_square(leaf(1.0))[1] is None


def test_anomaly_mode_names_the_forward_line():
    with warnings.catch_warnings(record=True) as caught, tracejit.autograd.detect_anomaly():
        warnings.simplefilter("always")
        x = leaf(0.0)
        y = x.sqrt()  # the line that makes it
        with pytest.raises(RuntimeError) as error:
            (y * 0).sum().backward()
    assert str(error.value) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    said = "".join(str(w.message) for w in caught)
    assert "Error detected in SqrtBackward0. Traceback of forward call" in said
    assert "y = x.sqrt()  # the line that makes it" in said and "test_engine.py" in said
    assert "tape.py" not in said


def test_anomaly_mode_without_forward_information():
    x = leaf(0.0)
    y = (x.sqrt() * 0).sum()
    with warnings.catch_warnings(record=True) as caught, tracejit.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            y.backward()
    assert "No forward pass information" in str(caught[0].message)
    assert not tracejit.autograd.is_anomaly_enabled()


def test_anomaly_mode_may_ignore_nan():
    x = leaf(0.0)
    with tracejit.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().all()


def test_a_leaf_frozen_since_gets_no_gradient():
    w, v = tracejit.ones(2, requires_grad=True), tracejit.ones(2, requires_grad=True)
    y = (w * v).sum()
    v.requires_grad_(False)
    y.backward()
    assert w.grad.tolist() == [1, 1] and v.grad is None
